// A server made of answers: `fetch` without a network, whose streams are cut, repeated and refused as a test wants it.

export const RUN = "run-A";
export const URL_OF_RUN = `http://runs.test/runs/${RUN}`;

const utf8 = new TextEncoder();

export const envelope = (seq, type, payload) => ({
  protocol: "agents-progress/1", event_id: `${RUN}:${seq}`, run_id: RUN, seq, type,
  occurred_at: "2026-10-07T08:00:00Z", payload,
});

/** A run of so many deltas, with its ending. */
export function log(deltas = 4, ending = [["run.ended", { outcome: "failed", final_output: null }]]) {
  const said = [["run.started", { agent: "Clerk", task_id: "t", parent: null, resumed_from: null }]];
  for (let index = 0; index < deltas; index += 1) {
    said.push(["text.delta", { item_id: "m", index, text: `流${index} ` }]);
  }
  return [...said, ...ending].map(([type, payload], place) => envelope(place + 1, type, payload));
}

export const SUCCEEDED = ["run.ended", { outcome: "succeeded", final_output: "x" }];
export const CHECKED = [
  "app.checked", { digest: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", ok: true },
];

export const frame = (step) => `id: ${step.seq}\ndata: ${JSON.stringify(step)}\n\n`;
export const frames = (steps) => steps.map(frame).join("");
export const snapshotFrame = (snapshot) =>
  `event: snapshot\nid: ${snapshot.seq}\ndata: ${JSON.stringify(snapshot)}\n\n`;
export const BYE = "event: bye\nretry: 4000\ndata: {}\n\n";

export const json = (value, status = 200, headers = {}) =>
  new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json", ...headers } });
export const noMore = () => new Response(null, { status: 204 });
export const refusal = (status, code, more = {}, headers = {}) =>
  json({ error: { code, message: `refused: ${code}`, ...more } }, status, headers);

/**
 * A stream of these bytes in pieces of such sizes, that then is closed, breaks, or stays open until its reader leaves.
 *
 * @param {string | Uint8Array} wire
 * @param {{then?: "close" | "break" | "stay", size?: () => number}} [how]
 */
export function stream(wire, { then = "close", size = () => 7 } = {}) {
  const bytes = typeof wire === "string" ? utf8.encode(wire) : wire;
  return ({ signal }) => {
    let at = 0;
    const body = new ReadableStream({
      start(controller) {
        signal?.addEventListener("abort", () => controller.error(signal.reason), { once: true });
      },
      pull(controller) {
        if (at < bytes.length) {
          const piece = bytes.slice(at, at + Math.max(1, size()));
          at += piece.length;
          controller.enqueue(piece);
        } else if (then === "break") {
          controller.error(new TypeError("terminated"));
        } else if (then === "close") {
          controller.close();
        } else {
          return new Promise(() => {});
        }
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
  };
}

/** A server that gives these answers in turn: responses, streams, errors to throw, or functions of the request. */
export function serverOf(...answers) {
  const requests = [];
  async function fetch(url, init = {}) {
    if (this !== undefined) throw new TypeError("Illegal invocation"); // as browsers do
    init.signal?.throwIfAborted();
    const request = { url: String(url), method: "GET", ...init, headers: new Headers(init.headers) };
    request.cursor = request.headers.get("last-event-id");
    requests.push(request);
    if (answers.length === 0) throw new Error("this server was asked too often");
    const answer = answers.length === 1 && answers[0].always ? answers[0].always : answers.shift();
    const given = typeof answer === "function" ? await answer(request) : answer;
    if (given instanceof Error) throw given;
    return typeof given === "function" ? given(request) : given;
  }
  return { fetch, requests };
}

/** A clock whose waiting takes no time, and is written down. */
export function clock(random = () => 0) {
  const waited = [];
  return { waited, random, now: () => 0, wait: async (ms) => { waited.push(ms); } };
}

/** Whole numbers from a seed. */
export function dice(seed) {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}
