/**
 * What everything that follows a run in one tab shares: whether anybody sees it, its time, and its one feed.
 *
 * A browser opens six connections to a host over HTTP/1.1. So a tab holds one feed at most, all tabs together
 * {@link FEEDS}, and a hidden tab none; whoever has no feed asks now and then.
 */

import { CLOCK } from "./client.js";

/** Feeds of one host in all tabs of a browser. */
export const FEEDS = 4;

/** Everything that a browser gives, and a test gives in its place. */
export class Tab {
  #seated = false;
  /** Tasks that are followed in it. */
  tasks = [];

  /**
   * @param {object} [given]
   * @param {Pick<LockManager, "request"> | null} [given.locks] null where there are none
   * @param {EventTarget & {visibilityState: string}} [given.page] tells when it is shown or hidden
   * @param {EventTarget} [given.network] tells when it is back
   * @param {Partial<typeof CLOCK>} [given.clock]
   * @param {typeof globalThis.fetch} [given.fetch]
   * @param {number} [given.answer_ms] after which a question that is no feed counts as lost
   */
  constructor({ locks, page, network, clock, fetch, answer_ms = 15_000 } = {}) {
    this.locks = locks === undefined ? globalThis.navigator?.locks ?? null : locks;
    this.page = page ?? globalThis.document ?? Object.assign(new EventTarget(), { visibilityState: "visible" });
    this.network = network ?? globalThis;
    this.clock = { ...CLOCK, ...clock };
    this.fetch = fetch;
    this.answer_ms = answer_ms;
  }

  get hidden() {
    return this.page.visibilityState === "hidden";
  }

  /**
   * Calls back whenever the page is hidden or shown.
   *
   * @param {() => void} changed
   * @param {AbortSignal} signal ends it
   */
  watch(changed, signal) {
    this.page.addEventListener("visibilitychange", changed, { signal });
  }

  /** Waits until somebody sees the page, or the signal. @param {AbortSignal} signal */
  async shown(signal) {
    while (this.hidden && !signal.aborted) await this.#until(signal, null);
  }

  /**
   * Waits for so long, or until the page is shown again, the network is back, or the signal.
   *
   * @param {number} ms
   * @param {AbortSignal} signal
   */
  wait(ms, signal) {
    return this.#until(signal, ms);
  }

  async #until(signal, ms) {
    const over = new AbortController();
    const ended = AbortSignal.any([signal, over.signal]);
    const stop = () => over.abort();
    this.watch(() => this.hidden || stop(), ended);
    this.network.addEventListener?.("online", stop, { signal: ended });
    if (ms === null) await new Promise((resolve) => aborted(ended, resolve));
    else await this.clock.wait(ms, ended);
    stop();
  }

  /**
   * The right to one feed of a host: a function that gives it back, or null while there is none.
   *
   * @param {string} host
   * @returns {Promise<(() => void) | null>}
   */
  async seat(host) {
    if (this.#seated) return null;
    this.#seated = true;
    const unlock = await this.#lock(host);
    let held = unlock !== null;
    this.#seated = held;
    return unlock && (() => {
      if (!held) return;
      held = this.#seated = false;
      unlock();
    });
  }

  async #lock(host) {
    if (this.locks === null) return () => {};
    for (let number = 1; number <= FEEDS; number += 1) {
      const unlock = await held(this.locks, `agents-progress feed ${number} of ${host}`);
      if (unlock !== null) return unlock;
    }
    return null;
  }
}

function aborted(signal, then) {
  if (signal.aborted) then();
  else signal.addEventListener("abort", then, { once: true });
}

/** Holds a lock until the function it gives is called; null where another tab has it. */
function held(locks, name) {
  return new Promise((resolve) => {
    const hold = (lock) => lock && new Promise((unlock) => { resolve(unlock); });
    // Where a browser refuses locks, as in a frame without an origin, one feed a tab is all that can be kept to.
    locks.request(name, { ifAvailable: true }, hold).then(() => resolve(null), () => resolve(() => {}));
  });
}
