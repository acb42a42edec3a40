/**
 * A task followed over its runs: one run to the end of its log, and after a pause the run that continues it.
 *
 * Everything in a tab that follows the same task shares what it learns. One of them has the tab's feed; the others ask
 * for the snapshot every two seconds, and take the feed when it is free. See tab.js.
 */

import { connect, isFinal, isOver, pause } from "./client.js";
import { Refused, ask } from "./requests.js";
import { Tab } from "./tab.js";
import { BadSnapshot, RunView } from "./view.js";

/** Between two questions of whoever has no feed, and of whoever waits for a paused run to go on. */
const ASK_MS = 2_000;
/** The same while nobody looks. */
const ASK_HIDDEN_MS = 15_000;

/** Why the work on a run is broken off: another one goes on from it, nobody looks, or nobody follows it any more. */
const MOVED = new Error("another run goes on from this one");
const HIDDEN = new Error("the page is hidden");
const LEFT = new Error("nobody follows this run any more");

/**
 * Where what is shown comes from. `goOn` says at once what would be found out within seconds: that another run, the
 * `continued_as` of an answer, goes on from this one. Null is passed over.
 *
 * @typedef {{url: string, run_id: string, goOn: (run_id: string | null) => void}} Place
 */

/**
 * @typedef {object} Follower
 * @property {(view: RunView, place: Place) => void} [onView] when it changed; it may be another object than before
 * @property {(link: {open: boolean, again_ms?: number, error?: Error}) => void} [onLink] the server answers, or will
 *   be asked again in so many milliseconds
 */

/**
 * Follows a run, and what goes on from it after a pause, until a log is closed that nothing goes on from.
 *
 * Nothing is asked while the page is hidden, but whether a paused run was continued. What a callback throws is printed.
 * Throws {@link Refused} when the server will not give a run, {@link BadSnapshot} when this page is older than the
 * server, and the reason of the signal.
 *
 * @param {string} url of the run, that ends in its id: `/runs/RUN_ID`
 * @param {Follower & {token?: string | (() => string | Promise<string>), language?: "en" | "zh", signal?: AbortSignal,
 *   tab?: Tab}} [options] `token` is that of `connect`
 * @returns {Promise<RunView>}
 */
export async function followTask(url, { token, language = "en", signal, tab = (TAB ??= new Tab()), ...follower } = {}) {
  signal?.throwIfAborted();
  let task = tab.tasks.find((other) => other.isOf(url, token, language));
  if (task === undefined) {
    task = new Task(url, token, language, tab);
    task.begin();
  }
  return task.join(follower, signal);
}

/** @type {Tab | undefined} */
let TAB;

class Task {
  /** @type {Set<Follower>} */
  #followers = new Set();
  #failures = 0;
  /** Ends the work on the present run. */
  #leg = new AbortController();
  /** The feed's, while there is one. */
  #leave = () => {};
  /** @type {RunView | null} of the present run */
  #view = null;
  /** The view that came from a snapshot: its issues are the journal's own. */
  #stored = null;
  /** What whoever joins is told first. */
  #told = { onView: null, onLink: null };

  constructor(url, token, language, tab) {
    this.begun = url;
    this.token = token;
    this.language = language;
    this.tab = tab;
    this.#aim(url);
  }

  isOf(url, token, language) {
    return this.begun === url && this.token === token && this.language === language;
  }

  begin() {
    this.tab.tasks.push(this);
    this.end = this.#follow().finally(() => this.#close());
  }

  /** Nobody can join any more. */
  #close() {
    this.tab.tasks = this.tab.tasks.filter((task) => task !== this);
  }

  /** @param {Follower} follower @param {AbortSignal} [signal] */
  async join(follower, signal) {
    const over = new AbortController();
    const left = new Promise((_, reject) => {
      const leave = () => {
        this.#without(follower); // at once, for whoever comes next may want the feed
        reject(signal.reason);
      };
      signal?.addEventListener("abort", leave, { signal: over.signal });
    });
    this.#followers.add(follower);
    for (const [name, told] of Object.entries(this.#told)) if (told !== null) tell(follower, name, told);
    try {
      return await Promise.race([left, this.end]);
    } finally {
      over.abort();
      this.#without(follower);
    }
  }

  #without(follower) {
    this.#followers.delete(follower);
    if (this.#followers.size > 0) return;
    this.#close();
    this.#leg.abort(LEFT);
    this.#leave();
  }

  #tell(name, ...told) {
    this.#told[name] = told;
    for (const follower of this.#followers) tell(follower, name, told);
  }

  #aim(url) {
    this.url = url;
    this.run_id = decodeURIComponent(url.split("/").at(-1));
    const { run_id } = this;
    this.place = { url, run_id, goOn: (next) => { if (next && this.run_id === run_id) this.#goOn(next); } };
    this.#view = this.#stored = null;
    this.#failures = 0;
  }

  #goOn(run_id) {
    if (run_id === this.run_id || this.#leg.signal.reason === LEFT) return;
    const left = this.#leg;
    this.#leg = new AbortController();
    this.#aim(this.url.slice(0, this.url.lastIndexOf("/") + 1) + encodeURIComponent(run_id));
    left.abort(MOVED);
  }

  async #follow() {
    for (;;) {
      const { signal } = this.#leg;
      try {
        await this.#toItsEnd(signal);
        if (this.#view.standing.outcome !== "paused") return this.#view;
        this.#goOn(await this.#continuation(signal));
      } catch (error) {
        if (signal.reason !== MOVED) throw error;
      }
    }
  }

  // One run.

  async #toItsEnd(signal) {
    for (let over = false; !over;) {
      await this.tab.shown(signal);
      signal.throwIfAborted();
      const leave = await this.tab.seat(new URL(this.url, globalThis.location?.href).host);
      over = leave === null ? await this.#ask(signal, (until) => this.#look(until)) : await this.#stream(signal, leave);
      signal.throwIfAborted();
    }
    if (this.#view.standing.closed) return;
    this.#view.closeTransport();
    this.#see(this.#view);
  }

  /** Whether the view may be gone on from: what it lacks, if anything, the journal lacks. */
  get #isSound() {
    return this.#view !== null && (this.#view === this.#stored || this.#view.issues.length === 0);
  }

  #see(view) {
    this.#view = view;
    this.#tell("onView", view, this.place);
  }

  /** Reads a feed as long as somebody sees the page; gives whether the log is closed. */
  async #stream(signal, leave) {
    const hidden = new AbortController();
    const over = AbortSignal.any([signal, hidden.signal]);
    const look = () => this.tab.hidden && hidden.abort(HIDDEN);
    this.#leave = leave;
    this.tab.watch(look, over);
    look();
    try {
      await connect(this.url, {
        token: this.token,
        language: this.language,
        view: this.#isSound ? this.#view : undefined,
        onView: (view) => signal.aborted || this.#see(view),
        onLink: (link) => this.#tell("onLink", link),
        signal: over,
        fetch: this.tab.fetch,
        clock: { ...this.tab.clock, wait: (ms, until) => this.tab.wait(ms, until) },
      });
      return true;
    } catch (error) {
      if (signal.aborted || over.reason !== HIDDEN) throw error;
      return false;
    } finally {
      hidden.abort();
      leave();
    }
  }

  /** Asks for what is stored; gives whether the log is closed. */
  async #look(signal) {
    const tag = this.#isSound ? { "if-none-match": `"${this.#view.seq}"` } : {};
    const response = await this.#get("/snapshot", signal, tag);
    if (response.status !== 304) this.#store(new Uint8Array(await response.arrayBuffer()));
    if (isOver(this.#view)) return true;
    return (this.#view.standing.ended || this.#view.issues.length > 0) && this.#isSealed(signal);
  }

  #store(snapshot) {
    const view = RunView.fromSnapshot(snapshot, this.language);
    if (view.run_id !== this.run_id) throw new BadSnapshot("the snapshot is that of another run");
    if (this.#isSound && view.seq < this.#view.seq) return; // of a node that lags
    this.#stored = view;
    this.#see(view);
  }

  /** Whether a log that has no end that a reader could see is closed all the same. */
  async #isSealed(signal) {
    const { sealed, seq } = await this.#row(signal);
    return sealed && seq === this.#view.seq;
  }

  /** Waits for the run that goes on from a paused one. */
  async #continuation(signal) {
    const later = async (until) => {
      const { continued_as } = await this.#row(until);
      return continued_as === this.run_id ? null : continued_as;
    };
    for (;;) {
      const run_id = await this.#ask(signal, later);
      if (run_id) return run_id;
    }
  }

  // Single questions.

  async #row(signal) {
    return (await this.#get("", signal)).json();
  }

  #get(path, signal, headers = {}) {
    const { token, tab: { fetch } } = this;
    return ask(this.url + path, { token, fetch, signal, headers: { accept: "application/json", ...headers } });
  }

  /** What is found, or nothing, and then a while has passed. */
  async #ask(signal, look) {
    let again_ms = this.tab.hidden ? ASK_HIDDEN_MS : ASK_MS;
    try {
      const found = await look(AbortSignal.any([signal, AbortSignal.timeout(this.tab.answer_ms)]));
      signal.throwIfAborted();
      if (this.#told.onLink?.[0].open !== true) this.#tell("onLink", { open: true });
      this.#failures = 0;
      if (found) return found;
    } catch (error) {
      signal.throwIfAborted();
      if (isFinal(error)) throw error;
      again_ms = this.#failed(error);
    }
    await this.tab.wait(again_ms, signal);
    signal.throwIfAborted();
    return null;
  }

  #failed(error) {
    this.#failures += 1;
    const asked_ms = error instanceof Refused ? error.retry_after_ms : 0;
    const again_ms = pause(this.#failures, Math.max(asked_ms, ASK_MS / 2), this.tab.clock.random);
    this.#tell("onLink", { open: false, again_ms, error });
    return again_ms;
  }
}

function tell(follower, name, told) {
  try {
    follower[name]?.(...told);
  } catch (error) {
    console.error(`${name} threw`, error);
  }
}
