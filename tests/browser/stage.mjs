// A server, tabs and time in one process: runs that grow, feeds that stay open, shared locks, hours that pass at once.

import { Tab } from "../../agents_progress/server/page/tab.js";
import { RunView } from "../../agents_progress/server/page/view.js";
import { frames, json, noMore, refusal } from "./fake.mjs";

const utf8 = new TextEncoder();

export const url = (run_id) => `http://runs.test/runs/${run_id}`;

const STARTED = ["run.started", { agent: "Clerk", task_id: "t", parent: null, resumed_from: null }];
export const PAUSED = [
  ["approval.wait", { interaction_id: "ask-1", call_id: null, tool: "pay", title: "Pay" }],
  ["run.ended", { outcome: "paused", final_output: null }],
];
export const FAILED = [["run.ended", { outcome: "failed", final_output: null }]];
const word = (index) => ["text.delta", { item_id: "m", index, text: `流${index} ` }];
export const words = (from, to) => Array.from({ length: to - from }, (_, at) => word(from + at));

/** What a log says, as a view. */
export function viewOf(steps, run_id = steps[0].run_id) {
  const view = new RunView(run_id);
  for (const step of steps) view.feed(JSON.stringify(step));
  return view;
}

/** A view without what its reader counted for itself. */
export function kept(view) {
  const { standing, plain, ...rest } = view.snapshot();
  return { ...rest, standing: { ...standing, closed: false }, plain: { ...plain, duplicates: 0 } };
}

/** A server of runs. `down` breaks every connection and lets none through; `mute` answers nothing. */
export class Server {
  runs = new Map();
  requests = [];
  open = new Set();
  most = 0;
  #down = false;
  mute = false;
  /** Answers in the place of the server's own, by `run_id/what`. */
  instead = new Map();

  /** Begins a run, or lets one go on. */
  say(run_id, ...said) {
    const run = this.runs.get(run_id) ?? { steps: [], sealed: false, continued_as: null };
    this.runs.set(run_id, run);
    const fresh = [...(run.steps.length === 0 ? [STARTED] : []), ...said].map(([type, payload], at) => {
      const seq = run.steps.length + at + 1;
      const occurred_at = "2026-10-07T08:00:00Z";
      return { protocol: "agents-progress/1", event_id: `${run_id}:${seq}`, run_id, seq, type, occurred_at, payload };
    });
    run.steps.push(...fresh);
    for (const feed of this.open) if (feed.run_id === run_id) feed.send(frames(fresh));
    return run;
  }

  seal(run_id) {
    this.runs.get(run_id).sealed = true;
    for (const feed of this.open) if (feed.run_id === run_id) feed.close();
  }

  set down(down) {
    this.#down = down;
    if (down) for (const feed of this.open) feed.break();
  }

  /** What was asked, in short. */
  get asked() {
    return this.requests.map(({ run_id, what }) => `${run_id}${what}`);
  }

  fetch = async (address, init) => {
    init.signal?.throwIfAborted();
    const [, run_id, path] = /\/runs\/([^/]+)(.*)$/.exec(address);
    const what = path.replace("?snapshot=1", "");
    const request = { address, run_id, what, headers: new Headers(init.headers), signal: init.signal };
    this.requests.push(request);
    await null;
    if (this.mute) return new Promise((_, reject) => left(init.signal, () => reject(init.signal.reason)));
    if (this.#down) throw new TypeError("Failed to fetch");
    const run = this.runs.get(run_id);
    const instead = this.instead.get(run_id + what);
    if (instead) return instead(request);
    return run === undefined ? refusal(404, "not_found") : ANSWERS[what](this, run, request);
  };

  feed(run, { run_id, headers, signal }) {
    const after = Number(headers.get("last-event-id") ?? 0);
    if (run.sealed && after === run.steps.length) return noMore();
    const feed = { run_id };
    const ended = (end) => () => {
      if (this.open.delete(feed)) end();
    };
    const body = new ReadableStream({
      start: (controller) => {
        feed.send = (text) => controller.enqueue(utf8.encode(text));
        feed.close = ended(() => controller.close());
        feed.break = ended(() => controller.error(new TypeError("network error")));
        left(signal, ended(() => controller.error(signal.reason)));
      },
      cancel: ended(() => {}),
    });
    this.open.add(feed);
    this.most = Math.max(this.most, this.open.size);
    feed.send(frames(run.steps.slice(after)) || ": here\n\n");
    if (run.sealed) feed.close();
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }
}

const ANSWERS = {
  "": (_, { steps, sealed, continued_as }, { run_id }) => json({ run_id, seq: steps.length, sealed, continued_as }),
  "/snapshot": (_, { steps }, { headers }) => {
    const tag = `"${steps.length}"`;
    if (headers.get("if-none-match") === tag) return new Response(null, { status: 304 });
    return json(viewOf(steps).snapshot(), 200, { etag: tag });
  },
  "/events": (server, run, request) => server.feed(run, request),
};

function left(signal, then) {
  if (signal?.aborted) then();
  else signal?.addEventListener("abort", then, { once: true });
}

/** Time that passes when a test says so. */
export class Time {
  ms = 0;
  #timers = new Set();

  now = () => this.ms;
  random = () => 0;
  wait = (ms, signal) => new Promise((resolve) => {
    const timer = { at: this.ms + ms, over: () => this.#timers.delete(timer) && resolve() };
    this.#timers.add(timer);
    left(signal, timer.over);
  });

  /** Lets so much time pass, and all happen that happens in it. */
  async pass(ms) {
    const until = this.ms + ms;
    await settled();
    for (;;) {
      const [next] = [...this.#timers].filter(({ at }) => at <= until).sort((one, other) => one.at - other.at);
      if (next === undefined) break;
      this.ms = Math.max(this.ms, next.at);
      next.over();
      await settled();
    }
    this.ms = until;
  }

  get waiting() {
    return this.#timers.size;
  }
}

/** Everything that can happen now has happened. */
export async function settled() {
  for (let turn = 0; turn < 12; turn += 1) await new Promise((resolve) => { setImmediate(resolve); });
}

/** The locks of a browser, which all its tabs share. */
export class Locks {
  held = new Set();

  async request(name, { ifAvailable }, callback) {
    if (!ifAvailable) throw new Error("nobody waits for a lock here");
    await null;
    if (this.held.has(name)) return callback(null);
    this.held.add(name);
    try {
      return await callback({ name });
    } finally {
      this.held.delete(name);
    }
  }
}

/** A tab whose page is shown or hidden by a test. */
export function tabOf({ server, time, locks = null, hidden = false, answer_ms }) {
  const page = Object.assign(new EventTarget(), { visibilityState: hidden ? "hidden" : "visible" });
  const network = new EventTarget();
  const tab = new Tab({ locks, page, network, clock: time, fetch: server.fetch, answer_ms });
  tab.show = (shown) => {
    page.visibilityState = shown ? "visible" : "hidden";
    page.dispatchEvent(new Event("visibilitychange"));
  };
  tab.online = () => network.dispatchEvent(new Event("online"));
  return tab;
}
