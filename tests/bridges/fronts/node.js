// Plays a front end in Node as its standard input says, one command a line, and answers each with what a user sees.

import { opened } from "front";
import { createInterface } from "node:readline";
import { answered, truthful } from "ours";
import { States } from "./states.js";

const open = new Map();
const states = new Map();
process.on("unhandledRejection", (error) => console.error("unhandled rejection", error));

function start(name, { api, truth, kept }) {
  states.set(name, new States());
  const changed = ({ state }) => states.get(name).saw(state);
  const ours = truth ? { fetch: truthful(fetch), answered } : { fetch };
  open.set(name, opened({ api, conversation: name, ...ours, kept, changed }));
}

const DO = {
  open: start,
  send(name, { text }) {
    states.get(name).send();
    void open.get(name).send(text);
  },
  answer: (name, { answer }) => void open.get(name).answer(...answer),
  cancel: (name, { api }) => {
    const headers = { "content-type": "application/json" };
    void fetch(`${api}/${encodeURIComponent(name)}/cancel`, { method: "POST", headers, body: "{}" });
  },
  async reload(name, { api, truth }) {
    const kept = open.get(name).kept();
    await open.get(name).leave();
    start(name, { api, truth, kept: JSON.parse(JSON.stringify(kept)) });
    void open.get(name).resume();
  },
  see() {},
};

for await (const line of createInterface({ input: process.stdin })) {
  const { name, act, ...more } = JSON.parse(line);
  await DO[act](name, more);
  const seen = { ...open.get(name).seen(), states: states.get(name).taken() };
  console.log(JSON.stringify(seen));
}
