// Reads a bridge of a real server through a network that breaks after every few bytes: URL TOKEN BODY. Prints what it got.

import { truthful } from "../../agents_progress/server/page/bridge.js";

const [url, token, body] = process.argv.slice(2);
let connections = 0;

/** A connection that breaks after so many bytes: more than a frame, a few more each time. */
async function chopped(input, init) {
  const response = await fetch(input, init);
  if (response.body === null) return response;
  connections += 1;
  let left = 160 + 7 * connections;
  const cut = new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.slice(0, left));
      left -= chunk.length;
      if (left <= 0) controller.error(new TypeError("terminated"));
    },
  });
  const { status, headers } = response;
  return new Response(response.body.pipeThrough(cut), { status, headers });
}

const soon = { tries: 3, wait: () => new Promise((resolve) => { setTimeout(resolve, 2); }) };
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
const response = await truthful(chopped, soon)(url, { method: "POST", headers, body });
const text = await response.text();
process.stdout.write(JSON.stringify({ status: response.status, text, connections }));
