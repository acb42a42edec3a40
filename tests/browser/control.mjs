// Starts, watches and answers a run at a real server: BASE_URL TOKEN. Prints what came of each step.

import { Refused, answer, cancel, connect, start } from "../../agents_progress/server/page/client.js";

const [base, token] = process.argv.slice(2);
const clock = { wait: (ms) => new Promise((resolve) => setTimeout(resolve, Math.min(ms, 20))) };

async function refused(asked) {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return [error.status, error.code, error.more];
  }
}

const asks = { arguments: { question: "go" }, title: "Ship it" };
const first = await start(`${base}/runs`, asks, { token, key: "once" });
const again = await start(`${base}/runs`, asks, { token, key: "once" });
const url = `${base}/runs/${first.run_id}`;
const paused = await connect(url, { token, clock });
const [question] = paused.interactions.values();
const { interaction_id, digest } = question;
const other = await refused(answer(url, interaction_id, { decision: "approve", digest: "a".repeat(64) }, { token }));
const given = await refused(answer(url, interaction_id, { decision: "approve", digest }, { token }));
const late = await refused(answer(url, interaction_id, { decision: "reject", digest }, { token }));
const next = `${base}/runs/${given.continued_as}`;
const ended = await connect(next, { clock, token: async () => token, language: "zh" });

console.log(JSON.stringify({
  same: first.run_id === again.run_id,
  paused: [paused.status, paused.title, question.tool],
  other,
  given: given.answer,
  late,
  ended: [ended.status, ended.message, ended.text],
  cancelled: await cancel(next, { token, mode: "after_turn" }),
  nobody: await refused(connect(url, {})),
  elsewhere: await refused(connect(`${base}/runs/run-Z`, { token })),
}));
