/**
 * Plays stored streams to the AI SDK's own chat. A case is `{streams, resumes, held, approved, said, rule}`: the streams that the
 * server gives, one for each request, or null where it refuses one; whether the first is asked for by a reload; the messages that
 * are on the screen before; what the user answers, again when an answer was refused; and by whose rule the chat sends by itself.
 * What the user sees after the last is printed, and before each answer, a line of JSON for each case.
 * `node stored.mjs FOLDER_OF_AI CASES`
 */
import { readFileSync } from "node:fs";
import { chatOf, shown } from "./chat.mjs";

const [, , folder, file] = process.argv;
const { makeChat } = await chatOf(folder);

function streamed(events) {
  if (events === null) return Response.json({ error: { code: "bad_fields", message: "Not so." } }, { status: 400 });
  const frames = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  return new Response(`${frames}data: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } });
}

for (const line of readFileSync(file, "utf8").split("\n").filter(Boolean)) {
  const { streams, resumes = false, held = [], approved = true, said = "cup", rule = "ours" } = JSON.parse(line);
  const sent = [];
  const before = [];
  const replies = [...streams];
  const chat = makeChat({
    messages: held,
    rule,
    fetch: async (url, { method, body }) => {
      sent.push({ url: String(url), method, body: body === undefined ? null : JSON.parse(body) });
      return streamed(replies.length > 0 ? replies.shift() : null);
    },
  });
  const settled = async () => {
    while (chat.status === "submitted" || chat.status === "streaming") await new Promise((done) => setTimeout(done, 1));
  };
  if (resumes) await chat.resumeStream();
  else await chat.sendMessage({ text: "2 EUR plus 3 EUR?" });
  const given = approved ? { output: said } : { state: "output-error", errorText: said };
  while (replies.length > 0) {
    const had = sent.length;
    const { asked, words, sees } = shown(chat);
    for (const id of asked) await chat.addToolApprovalResponse({ id, approved });
    for (const toolCallId of words) await chat.addToolOutput({ toolCallId, ...given });
    before.push(sees);
    for (let turn = 0; sent.length === had && turn < 100; turn++) await new Promise((done) => setTimeout(done, 1));
    await settled();
    if (sent.length === had) break;
  }
  console.log(JSON.stringify({ ...shown(chat), sent, before }));
}
