/**
 * Plays stored streams to the AI SDK's own chat. A case is `{streams, resumes, held}`: the streams that the server gives, one
 * for each request; whether the first is asked for by a reload; the messages that are on the screen before. What the user sees
 * after the last is printed, a line of JSON for each case. `node stored.mjs FOLDER_OF_AI CASES`
 */
import { readFileSync } from "node:fs";
import { chatOf, shown } from "./chat.mjs";

const [, , folder, file] = process.argv;
const { makeChat } = await chatOf(folder);

function streamed(events) {
  const frames = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  return new Response(`${frames}data: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } });
}

for (const line of readFileSync(file, "utf8").split("\n").filter(Boolean)) {
  const { streams, resumes = false, held = [], approved = true } = JSON.parse(line);
  const sent = [];
  const replies = [...streams];
  const chat = makeChat({
    messages: held,
    automatic: true,
    fetch: async (url, { method, body }) => {
      sent.push({ url: String(url), method, body: body === undefined ? null : JSON.parse(body) });
      return streamed(replies.shift() ?? []);
    },
  });
  const settled = async () => {
    while (chat.status === "submitted" || chat.status === "streaming") await new Promise((done) => setTimeout(done, 1));
  };
  if (resumes) await chat.resumeStream();
  else await chat.sendMessage({ text: "2 EUR plus 3 EUR?" });
  while (replies.length > 0) {
    const before = sent.length;
    for (const id of shown(chat).asked) await chat.addToolApprovalResponse({ id, approved });
    for (let turn = 0; sent.length === before && turn < 100; turn++) await new Promise((done) => setTimeout(done, 1));
    await settled();
    if (sent.length === before) break;
  }
  console.log(JSON.stringify({ ...shown(chat), sent }));
}
