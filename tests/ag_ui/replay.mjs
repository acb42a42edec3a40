/** What AG-UI's own client makes of stored streams: `node replay.mjs FOLDER FILE`, a stream a line, an answer a line. */
import { readFileSync } from "node:fs";

import { packageIn } from "../vercel/chat.mjs";

const [folder, file] = process.argv.slice(2);
const { HttpAgent } = await packageIn(folder, "@ag-ui/client");
const OURS = console.error;
let warned = [];
console.warn = (...words) => warned.push(words.join(" "));
console.error = () => {}; // the client tells what the promise says too

async function read({ frames, history }) {
  warned = [];
  const headers = { "content-type": "text/event-stream" };
  const fetch = async () => new Response(frames, { headers });
  const agent = new HttpAgent({ url: "http://front.test", threadId: "thread", initialMessages: history, fetch });
  const seen = { ended: null, code: null, failed: null };
  const subscriber = {
    onRunFinishedEvent: ({ outcome }) => void (seen.ended = outcome),
    onRunErrorEvent: ({ event }) => void Object.assign(seen, { ended: "error", code: event.code ?? null }),
  };
  await agent.runAgent({}, subscriber).catch((error) => (seen.failed = error.message));
  const texts = {};
  const given = {};
  const results = {};
  const activities = {};
  const order = [];
  for (const message of agent.messages) {
    if (message.role === "activity") activities[message.id] = message.content;
    else if (message.role === "tool") results[message.toolCallId] = message.content;
    else if (message.toolCalls) for (const call of message.toolCalls) given[call.id] = call.function.arguments;
    else texts[message.id] = message.content;
    if (message.toolCalls) order.push(...message.toolCalls.map(({ id }) => id));
    else if (message.role !== "activity" && message.role !== "tool") order.push(message.id);
  }
  const asked = agent.pendingInterrupts.map(({ id }) => id);
  return { ...seen, warned, texts, order, arguments: given, results, activities, asked };
}

for (const line of readFileSync(file, "utf8").split("\n").filter(Boolean)) {
  try {
    console.log(JSON.stringify(await read(JSON.parse(line))));
  } catch (error) {
    OURS(error);
    process.exitCode = 1;
  }
}
