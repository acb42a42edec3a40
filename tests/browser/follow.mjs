// Follows a run at a real server: RUN_URL TOKEN. Prints {"seq", "status"} at each change, then {"end", "envelopes"}.

import { connect } from "../../agents_progress/server/page/client.js";

const [url, token] = process.argv.slice(2);
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const envelopes = [];
const soon = { wait: (ms) => new Promise((resolve) => setTimeout(resolve, Math.min(ms, 20))) };

const view = await connect(url, {
  token,
  clock: soon,
  onView: ({ seq, status }) => say({ seq, status }),
  onEnvelope: ({ seq }) => envelopes.push(seq),
});
say({ end: view.snapshot(), envelopes });
