/** What a view shows: messages, activities and interactions, as rows that can be stored and restored. */

import { JOIN_AT, OPEN_STATES, SNAPSHOT } from "./protocol.js";

/**
 * One row of visible work: a tool call, a handoff or a stage. `state` is requested, running, returned, failed, rejected
 * or skipped; `note` is the code or reason of a row that did not return; `current` and `total` are the tool's counts.
 * `seq`, here as in questions and texts, is that of the envelope that began it; 0 where an old snapshot has none.
 *
 * @typedef {{activity_id: string, kind: string, name: string, title: string, state: string, seq: number,
 *   since: string, note: string | null, summary: string | null, duration_ms: number | null, message: string | null,
 *   current: number | null, total: number | null, arguments: string | null, argument_deltas: number,
 *   output: string | null, reused: boolean}} Activity
 */

/**
 * A question to a person. `decision` is null while it waits; `details` are null where the application discloses none,
 * and `approve_blind` says that it lets people approve even so.
 *
 * @typedef {{interaction_id: string, call_id: string | null, tool: string, title: string, kind: string, seq: number,
 *   digest: string | null, details: string | null, expires_at: string | null, decision: string | null,
 *   actor: string | null, approve_blind: boolean}} Interaction
 */

/** Makes rows of a shape: its fields and no others, each with its default where it is left out. */
export function rowsOf(shape) {
  const defaults = Object.entries(shape.properties).map(([name, field]) => [name, field.default]);
  return (fields) => Object.fromEntries(defaults.map(([name, value]) => [name, name in fields ? fields[name] : value]));
}

const { rows, interactions } = SNAPSHOT.properties;

/** @type {(fields: Partial<Activity>) => Activity} */
export const activity = rowsOf(rows.items);

/** @type {(fields: Partial<Interaction>) => Interaction} */
export const interaction = rowsOf(interactions.items);

/** Whether a row is still requested or running. */
export const isOpen = (row) => OPEN_STATES.includes(row.state);

/** Whether a row is a tool's. */
export const isTool = (row) => row.kind !== "handoff" && row.kind !== "stage";

/**
 * One text item of one channel. `missing_start` says that its first delta was never seen.
 *
 * Text is kept in pieces that are joined as they grow: a slice of an envelope keeps the whole envelope in memory.
 */
export class Message {
  #pieces;
  /** @type {string[]} */
  #newest;

  constructor(fields) {
    const { item_id, channel, seq = 0, pieces = [], newest = [] } = fields;
    const { deltas = 0, complete = false, missing_start = false } = fields;
    this.item_id = item_id;
    this.channel = channel;
    this.seq = seq;
    this.deltas = deltas;
    this.complete = complete;
    this.missing_start = missing_start;
    this.#pieces = [...pieces];
    this.#newest = [...newest];
  }

  /** Adds one delta. */
  append(text) {
    this.#newest.push(text);
    this.deltas += 1;
    if (this.#newest.length >= JOIN_AT) {
      this.#pieces.push(this.#newest.join(""));
      this.#newest = [];
    }
  }

  /** Puts the authoritative text in the place of the deltas. */
  replace(text) {
    this.#pieces = [text];
    this.#newest = [];
  }

  /** Something is said of it: where that is the first of it, it begins. */
  begin(seq) {
    if (this.seq === 0 && this.deltas === 0 && this.text === "") this.seq = seq;
  }

  /** All of the text so far. */
  get text() {
    if (this.#newest.length > 0 || this.#pieces.length !== 1) {
      this.replace([...this.#pieces, ...this.#newest].join(""));
    }
    return this.#pieces[0];
  }

  /** Plain values; the text is one string. */
  toJSON() {
    const { item_id, channel, seq, text, deltas, complete, missing_start } = this;
    return { item_id, channel, seq, pieces: [text], deltas, complete, missing_start };
  }
}
