/**
 * One run followed over HTTP, from connection to connection. Needs a browser of 2024 or newer.
 *
 * A feed is read with `fetch` and headers: no token stands in a URL. What ends a connection says nothing of the run:
 * the next one goes on after the newest envelope, until the server says that there is no more.
 */

import { parseEnvelope } from "./events.js";
import { Refused, ask } from "./requests.js";
import { Decoder } from "./sse.js";
import { BadSnapshot, RunView } from "./view.js";

export { BadSnapshot, Refused };
export { answer, cancel, start } from "./requests.js";

/** Three heartbeats of the server. */
const SILENCE_MS = 45_000;
const FIRST_MS = 1_000;
const LEAST_MS = 100;
const LONGEST_MS = 15_000;
/** So long a page may be kept from drawing while envelopes are read. */
const BUSY_MS = 20;
/** Of what a server may ask for; a timer that is told much more goes off at once. */
const MOST_MS = 600_000;

/** Answers that another attempt may change. */
export const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Whether no other attempt would mend this. @param {unknown} error of a request */
export const isFinal = (error) =>
  error instanceof BadSnapshot || (error instanceof Refused && !PASSING.has(error.status));

/** Whether nothing can come after what a view has seen. After a success its verdict may. @param {RunView} view */
export const isOver = ({ terminal, verdict }) =>
  terminal !== null && (terminal.outcome !== "succeeded" || verdict !== null);

/**
 * How long to wait before the next connection: what the server asked for at least, longer after each failure, and not
 * the same for two readers who lost it together.
 *
 * @param {number} failures in a row
 * @param {number} asked_ms
 * @param {() => number} random
 */
export function pause(failures, asked_ms, random) {
  const least_ms = Math.min(MOST_MS, Math.max(LEAST_MS, asked_ms));
  return Math.max(least_ms, Math.min(LONGEST_MS, least_ms * 2 ** failures)) * (1 + random());
}

/** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
const wait = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(over, signal?.aborted ? 0 : ms);
  function over() {
    clearTimeout(timer);
    signal?.removeEventListener("abort", over);
    resolve();
  }
  signal?.addEventListener("abort", over);
});

/** The page's own time. */
export const CLOCK = { now: () => performance.now(), random: () => Math.random(), wait };

/**
 * Follows a run until its log is closed, and gives the view of all of it.
 *
 * A snapshot of the server replaces the view. It comes first where nobody wants the envelopes, and is asked for when
 * one is missing or damaged; those it stands for are not given to `onEnvelope`. What a callback throws is printed.
 *
 * Throws {@link Refused} when the server will not give this run, {@link BadSnapshot} when this page is older than the
 * server, and the reason of the signal.
 *
 * @param {string} url of the run, that ends in its id: `/runs/RUN_ID`
 * @param {object} [options]
 * @param {string | (() => string | Promise<string>)} [options.token] a function is asked at each connection
 * @param {"en" | "zh"} [options.language]
 * @param {RunView} [options.view] to go on from
 * @param {(view: RunView) => void} [options.onView] when it changed; it may be another object than before
 * @param {(envelope: import("./events.js").Envelope) => void} [options.onEnvelope] each one once, in order
 * @param {(link: {open: boolean, again_ms?: number, error?: Error}) => void} [options.onLink] a connection opened, or
 *   the next one will be made in so many milliseconds
 * @param {AbortSignal} [options.signal] leave; that says nothing of the run
 * @param {typeof globalThis.fetch} [options.fetch]
 * @param {number} [options.silence_ms] after it a connection counts as dead
 * @param {Partial<typeof CLOCK>} [options.clock]
 * @returns {Promise<RunView>}
 */
export async function connect(url, options = {}) {
  return new Follower(url, options).follow();
}

class Follower {
  #failures = 0;
  #retry_ms = FIRST_MS;
  #sentAway = false;

  constructor(url, { language = "en", view, silence_ms = SILENCE_MS, clock, ...options }) {
    this.url = url;
    this.language = language;
    this.silence_ms = silence_ms;
    this.clock = { ...CLOCK, ...clock };
    this.options = options;
    this.view = view ?? new RunView(decodeURIComponent(url.split("/").at(-1)), language);
    this.known = this.view.issues.length;
  }

  /** Whether the view has an issue that the journal's own has not. */
  get holed() {
    return this.view.issues.length > this.known;
  }

  get over() {
    return !this.holed && isOver(this.view);
  }

  async follow() {
    for (;;) {
      const { seq } = this.view;
      const opened = this.clock.now();
      const { over, error } = this.over ? { over: true } : await this.#attempt();
      if (over || this.over) break;
      const fine = this.#sentAway || this.view.seq > seq || this.clock.now() - opened > LONGEST_MS;
      this.#failures = fine && !this.holed ? 0 : this.#failures + 1;
      await this.#rest(error);
    }
    this.view.closeTransport();
    this.#tell("onView", this.view);
    return this.view;
  }

  /** One connection, and what ended it. Throws what no other connection would mend. */
  async #attempt() {
    const { signal } = this.options;
    try {
      return { over: await this.#connection() };
    } catch (error) {
      signal?.throwIfAborted();
      if (isFinal(error)) throw error;
      return { over: false, error };
    }
  }

  async #rest(error) {
    const refused_ms = error instanceof Refused ? error.retry_after_ms : 0;
    const again_ms = pause(this.#failures, Math.max(refused_ms, this.#retry_ms), this.clock.random);
    this.#tell("onLink", { open: false, again_ms, error });
    await this.clock.wait(again_ms, this.options.signal);
  }

  /** Gives whether the server said that there is no more. */
  async #connection() {
    const cut = new AbortController();
    const signal = this.options.signal ? AbortSignal.any([this.options.signal, cut.signal]) : cut.signal;
    let timer;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => cut.abort(new Error(`nothing was heard for ${this.silence_ms} ms`)), this.silence_ms);
    };
    heard();
    this.#sentAway = false;
    try {
      if (this.holed) await this.#heal(signal);
      const response = await this.#feed(signal);
      if (response.status === 204) return true;
      this.#tell("onLink", { open: true });
      await this.#read(response.body.getReader(), heard);
      return false;
    } finally {
      clearTimeout(timer);
      cut.abort();
    }
  }

  #get(path, headers, signal) {
    const { token, fetch } = this.options;
    return ask(this.url + path, { token, fetch, signal, headers });
  }

  async #heal(signal) {
    const response = await this.#get("/snapshot", { accept: "application/json" }, signal);
    this.replace(new Uint8Array(await response.arrayBuffer()));
    this.#tell("onView", this.view);
  }

  async #feed(signal) {
    const { seq } = this.view;
    const whole = seq === 0 && !this.options.onEnvelope;
    const cursor = seq === 0 ? {} : { "last-event-id": String(seq) };
    const headers = { accept: "text/event-stream", ...cursor };
    const response = await this.#get(whole ? "/events?snapshot=1" : "/events", headers, signal);
    const kind = response.headers.get("content-type") ?? "";
    if (response.status !== 204 && !kind.startsWith("text/event-stream")) {
      throw new Refused(response.status, { code: "no_event_stream", message: "this address gives no event stream" });
    }
    return response;
  }

  async #read(reader, heard) {
    const decoder = new Decoder();
    let busy_ms = 0;
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      heard();
      const begun = this.clock.now();
      const frames = decoder.feed(chunk.value);
      this.#retry_ms = decoder.retry_ms ?? this.#retry_ms;
      for (const { event, data } of frames) FRAMES.get(event)?.(this, data);
      if (frames.length > 0) this.#tell("onView", this.view);
      this.#sentAway = frames.some(({ event }) => event === "bye");
      if (this.#sentAway) return;
      if (this.holed) throw new Error("an envelope is missing or damaged");
      busy_ms += this.clock.now() - begun;
      if (busy_ms > BUSY_MS) {
        await wait(0); // chunks that are here already would leave no room for a drawing
        busy_ms = 0;
      }
    }
  }

  // What a frame does.

  take(text) {
    const { seq } = this.view;
    const envelope = parsed(text);
    this.view.feed(envelope ?? text);
    if (this.view.seq > seq) this.#tell("onEnvelope", envelope);
  }

  replace(snapshot) {
    const view = RunView.fromSnapshot(snapshot, this.language);
    if (view.run_id !== this.view.run_id) throw new BadSnapshot("the snapshot is that of another run");
    if (view.seq < this.view.seq && !this.holed) return; // of a node that lags; what is shown is newer and sound
    this.view = view;
    this.known = view.issues.length;
  }

  #tell(name, what) {
    try {
      this.options[name]?.(what);
    } catch (error) {
      console.error(`${name} threw`, error);
    }
  }
}

function parsed(text) {
  try {
    return parseEnvelope(text);
  } catch {
    return null;
  }
}

/** By event name. Envelopes have none, and names of a newer server are passed over. */
const FRAMES = new Map([
  ["message", (follower, text) => follower.take(text)],
  ["snapshot", (follower, text) => follower.replace(text)],
  ["erased", () => { throw new Refused(410, { code: "erased", message: "the run was erased" }); }],
]);
