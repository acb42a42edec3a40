// One tab at a real server: BASE_URL TOKEN RUN_ID... follows these tasks to their ends. With the word `answer` before
// the ids, what they wait for is approved here. Prints {"run", "seq", "status"} at each change, then what came of it.

import { answer } from "../../agents_progress/server/page/client.js";
import { Tab } from "../../agents_progress/server/page/tab.js";
import { followTask } from "../../agents_progress/server/page/task.js";
import { openQuestions } from "../../agents_progress/server/page/texts.js";

const [base, token, ...words] = process.argv.slice(2);
const answers = words[0] === "answer";
const runs = answers ? words.slice(1) : words;
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const asked = [];
let open = 0;
let most = 0;

async function counted(url, init) {
  asked.push(new URL(url).pathname.replace("/runs/", ""));
  const response = await fetch(url, init);
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
  open += 1;
  most = Math.max(most, open);
  const count = new TransformStream({ flush: () => { open -= 1; } });
  init.signal.addEventListener("abort", () => { open -= 1; }, { once: true });
  return new Response(response.body.pipeThrough(count, { signal: init.signal }), response);
}

const soon = { wait: (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, Math.min(ms, 30));
  signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); });
}) };
const tab = new Tab({ clock: soon, fetch: counted });
const given = new Set();

async function approve(view, { url, goOn }) {
  for (const { interaction_id, digest } of openQuestions(view)) {
    if (given.has(interaction_id)) continue;
    given.add(interaction_id);
    goOn((await answer(url, interaction_id, { decision: "approve", digest }, { token })).continued_as);
  }
}

const ends = await Promise.all(runs.map((run_id) => followTask(`${base}/runs/${run_id}`, {
  token,
  tab,
  onView: (view, place) => {
    say({ run: place.run_id, seq: view.seq, status: view.status });
    if (answers) approve(view, place);
  },
})));
say({ ends: ends.map((view) => view.snapshot()), asked, most });
