/**
 * What is said to those who listen: activities and statuses, a sentence at a time, and never the text of an answer.
 *
 * A run may change faster than anybody can be told. Of what waits to be said the newest sentence of each subject is
 * kept, and of those the newest few; a new status is said next, and what came before it is not said any more.
 */

import { STATUS } from "./changes.js";

const PAUSE_MS = 1_200;
const WAITING = 4;

export class Announcer {
  /** @type {Map<string, string>} */
  #waiting = new Map();
  #timer = null;

  /**
   * @param {(sentence: string) => void} say
   * @param {{later?: (what: () => void, ms: number) => unknown}} [clock]
   */
  constructor(say, { later = (what, ms) => setTimeout(what, ms) } = {}) {
    this.say = say;
    this.later = later;
  }

  /** Says a sentence now, or as soon as it is its turn; another one of the same subject takes its place. */
  announce(subject, sentence) {
    if (subject === STATUS) this.#waiting.clear();
    this.#waiting.delete(subject);
    this.#waiting.set(subject, sentence);
    const others = [...this.#waiting.keys()].filter((other) => other !== STATUS);
    for (const old of others.slice(0, -WAITING)) this.#waiting.delete(old);
    if (this.#timer === null) this.#next();
  }

  /** Forgets what was not said. */
  clear() {
    this.#waiting.clear();
  }

  #next() {
    const [next] = this.#waiting;
    this.#timer = null;
    if (next === undefined) return;
    const [subject, sentence] = next;
    this.say(sentence);
    this.#waiting.delete(subject);
    this.#timer = this.later(() => this.#next(), PAUSE_MS);
  }
}
