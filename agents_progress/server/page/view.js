/**
 * RunView: the display state of one run, a fold over its envelopes; see `agents_progress/view.py`.
 *
 * The view never says more than the envelopes prove. It accepts anything and throws for nothing: what does not fit is
 * an issue, and any issue makes the status `unknown`.
 */

import { UnknownEventType, parseEnvelope } from "./events.js";
import { FOLDS } from "./fold.js";
import { plain, read, textOf } from "./json.js";
import { MESSAGES, REMEMBERED, SNAPSHOT, SNAPSHOT_VERSION } from "./protocol.js";
import { Message, activity, interaction, isTool } from "./rows.js";
import { compile } from "./shapes.js";
import { Standing } from "./standing.js";

/** The snapshot is damaged or of another version; read the run from its first envelope instead. */
export class BadSnapshot extends Error {}

const isSnapshot = compile(SNAPSHOT);
const PLAIN = Object.keys(SNAPSHOT.properties.plain.properties);
const AMOUNT = /^[0-9]{1,40}(?:\.[0-9]{1,40})?$/;
const CURRENCY = /^[A-Z]{3}$/;

/**
 * What a reader may show about one run.
 *
 * Feed it envelopes in any form and order they arrive; read `status` and `message`. Memory grows with the text and the
 * rows, not with the number of events. Numbers beyond 2^53 are shown, and kept in a snapshot, as the nearest double.
 */
export class RunView {
  standing = new Standing();
  seq = 0;
  /** @type {string | null} */
  task_id = null;
  /** @type {string | null} */
  title = null;
  /** @type {string | null} */
  agent = null;
  /** @type {Record<string, any> | null} */
  usage = null;
  /** @type {Record<string, any> | null} */
  terminal = null;
  /** @type {Record<string, any> | null} */
  verdict = null;
  duplicates = 0;
  foreign = 0;
  /** @type {Record<string, any>[]} */
  artifacts = [];
  /** @type {Record<string, any>[]} */
  sources = [];
  /** @type {Record<string, any>[]} */
  guardrails = [];
  /** @type {Map<string, import("./rows.js").Activity>} */
  rows = new Map();
  /** @type {Map<string, import("./rows.js").Interaction>} */
  interactions = new Map();
  /** @type {Map<string, Message>} */
  texts = new Map();
  /** @type {string[]} */
  handoffs = [];
  /** @type {number[]} the `seq` with which each response of the model began */
  responses = [];

  /** @type {Map<string, number>} code to the seq where it was seen first */
  #issues = new Map();
  /** @type {Map<string, {seq: number, fingerprint: string}>} what came lately, by event id */
  #recent = new Map();

  /**
   * @param {string} run_id
   * @param {"en" | "zh"} [language]
   */
  constructor(run_id, language = "en") {
    this.run_id = run_id;
    this.language = language;
  }

  // What to show.

  /** One of the eleven statuses. */
  get status() {
    return this.standing.status;
  }

  /** The sentence of the status, in the view's language. */
  get message() {
    return MESSAGES[this.status][this.language];
  }

  /** The newest answer message, whole or as far as it came; empty when there is none. */
  get text() {
    return this.messages.findLast(({ channel }) => channel === "answer")?.text ?? "";
  }

  /** Every text of every channel, in order of first appearance. */
  get messages() {
    return [...this.texts.values()];
  }

  /** Every row of visible work, in order of first appearance. */
  get activities() {
    return [...this.rows.values()];
  }

  /** Call id to state: requested, running, returned, failed, rejected or skipped. */
  get tools() {
    return new Map(this.activities.filter(isTool).map((row) => [row.activity_id, row.state]));
  }

  /**
   * What the tokens of `usage` cost, where the application has prices; null when nothing is known of it.
   *
   * @returns {{amount: string, currency: string, at_least: boolean} | null}
   */
  get cost() {
    const { amount, currency, at_least } = this.usage?.x?.cost ?? {};
    const readable = typeof amount === "string" && AMOUNT.test(amount) && typeof currency === "string" &&
      CURRENCY.test(currency) && typeof at_least === "boolean";
    return readable ? { amount, currency, at_least } : null;
  }

  /** Codes of what did not fit, in order of first appearance. Any of them makes the status `unknown`. */
  get issues() {
    return [...this.#issues.keys()];
  }

  // Feeding it.

  /**
   * Takes in one envelope: its JSON as text or bytes, an object of its fields, or what `parseEnvelope` gave.
   *
   * @param {unknown} source
   */
  feed(source) {
    let envelope;
    try {
      envelope = parseEnvelope(source);
    } catch {
      this.#issue("bad_envelope");
      return;
    }
    const { event_id, run_id, seq } = envelope;
    const known = this.#recent.get(event_id);
    if (run_id !== this.run_id) {
      this.foreign += 1;
    } else if (seq <= this.seq || this.#remembers(known)) {
      this.#again(envelope, known);
    } else {
      if (seq !== this.seq + 1) this.#issue("sequence_gap_or_reorder", seq);
      this.seq = seq;
      this.#recent.set(event_id, envelope);
      this.#forget();
      this.#take(envelope);
    }
  }

  /** The input ended. Adds no fact: without an ending the status becomes `unknown`, with one nothing changes. */
  closeTransport() {
    this.standing.closed = true;
  }

  /** Folds the next envelope, or says what is wrong with it. */
  #take(envelope) {
    const { type, payload, seq } = envelope;
    const { standing } = this;
    try {
      envelope.check();
      const fold = FOLDS[type];
      if (fold === undefined) return; // a note
      if (!standing.ended || (type === "app.checked" && this.verdict === null)) {
        fold(this, envelope);
        standing.observe(type, payload);
      } else {
        this.#issue("event_after_terminal", seq);
      }
    } catch (error) {
      this.#issue(error instanceof UnknownEventType ? "unknown_event" : "bad_payload_or_transition", seq);
    }
  }

  #forget() {
    if (this.#recent.size > 2 * REMEMBERED) {
      this.#recent = new Map([...this.#recent].filter(([, seen]) => this.#remembers(seen)));
    }
  }

  /** Whether content is compared with this one, which came before; older ones are known by number alone. */
  #remembers(seen) {
    return seen !== undefined && seen.seq > this.seq - REMEMBERED;
  }

  /** An id that was seen, or a sequence number that has passed. */
  #again(envelope, known) {
    const { event_id, run_id, seq } = envelope;
    if (!this.#remembers(known)) {
      if (event_id === `${run_id}:${seq}`) this.duplicates += 1;
      else this.#issue("sequence_gap_or_reorder", seq);
    } else if (known.seq === seq && known.fingerprint === envelope.fingerprint) {
      this.duplicates += 1;
    } else {
      this.#issue("id_conflict", seq);
    }
  }

  #issue(code, seq = 0) {
    if (!this.#issues.has(code)) this.#issues.set(code, seq);
    this.standing.issues = true;
  }

  // Storing it.

  /** Everything the view knows, as plain JSON values that either language restores. */
  snapshot() {
    const { standing, rows, interactions, texts } = this;
    const recent = [...this.#recent].filter(([, seen]) => this.#remembers(seen));
    return {
      version: SNAPSHOT_VERSION,
      run_id: this.run_id,
      seq: this.seq,
      standing: { ...standing, open_interactions: [...standing.open_interactions] },
      plain: Object.fromEntries(PLAIN.map((name) => [name, Array.isArray(this[name]) ? [...this[name]] : this[name]])),
      rows: Array.from(rows.values(), (row) => ({ ...row })),
      interactions: Array.from(interactions.values(), (row) => ({ ...row })),
      texts: Array.from(texts.values(), (message) => message.toJSON()),
      issues: Object.fromEntries(this.#issues),
      recent: recent.map(([event_id, { seq, fingerprint }]) => [event_id, seq, fingerprint]),
    };
  }

  /**
   * A view that continues after the snapshot's `seq` as if it had seen everything before. Throws {@link BadSnapshot}.
   *
   * @param {unknown} source the snapshot, or its JSON as text or bytes
   * @param {"en" | "zh"} [language]
   */
  static fromSnapshot(source, language = "en") {
    const stored = storedIn(source);
    const view = new RunView(stored.run_id, language);
    view.seq = stored.seq;
    view.standing = new Standing(stored.standing);
    for (const name of PLAIN) view[name] = stored.plain[name] ?? view[name];
    view.rows = new Map(stored.rows.map((row) => [row.activity_id, activity(row)]));
    view.interactions = new Map(stored.interactions.map((row) => [row.interaction_id, interaction(row)]));
    view.texts = new Map(stored.texts.map((text) => [`${text.channel}:${text.item_id}`, new Message(text)]));
    view.#issues = new Map(Object.entries(stored.issues));
    view.#recent = new Map(stored.recent.map(([event_id, seq, fingerprint]) => [event_id, { seq, fingerprint }]));
    return view;
  }
}

function storedIn(source) {
  let stored;
  try {
    stored = read(textOf(source)).value;
  } catch (cause) {
    throw new BadSnapshot("the snapshot is no JSON; read the run from its first envelope instead", { cause });
  }
  if (stored?.version !== SNAPSHOT_VERSION || !isSnapshot(stored)) {
    throw new BadSnapshot("not a snapshot of this version; read the run from its first envelope instead");
  }
  return plain(stored);
}
