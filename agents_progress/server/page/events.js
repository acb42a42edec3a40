/** Envelopes of `agents-progress/1`: read strictly from what came from outside; see `agents_progress/events.py`. */

import { canonical, plain, read, textOf } from "./json.js";
import { ENVELOPE, MAX_ENVELOPE_BYTES, NOTE_PREFIX, PAYLOADS, PROTOCOL } from "./protocol.js";
import { sha256 } from "./sha256.js";
import { compile } from "./shapes.js";

/** This is no envelope of the protocol. */
export class BadEnvelope extends Error {}
/** The payload does not fit the type. */
export class BadPayload extends Error {}
/** The protocol has no such type; show no success after it. */
export class UnknownEventType extends Error {}

const isEnvelope = compile(ENVELOPE);
const fitting = new Map(Object.entries(PAYLOADS).map(([type, schema]) => [type, compile(schema)]));

/** One fact about a run, with its identity and its place in the order. Made by {@link parseEnvelope} alone. */
export class Envelope {
  #stated;
  /** @type {string | undefined} */
  #fingerprint;

  /**
   * @param {object} stated the fields as they were read
   * @param {Record<string, any>} payload the same payload with every number a number
   */
  constructor(stated, payload) {
    this.protocol = PROTOCOL;
    this.event_id = /** @type {string} */ (stated.event_id);
    this.run_id = /** @type {string} */ (stated.run_id);
    this.seq = Number(plain(stated.seq));
    this.type = /** @type {string} */ (stated.type);
    this.occurred_at = /** @type {string} */ (stated.occurred_at);
    this.payload = payload;
    this.#stated = stated;
  }

  /** 128 bits of the SHA-256 of its content, whatever order its names came in. */
  get fingerprint() {
    const { event_id, run_id, seq, type, occurred_at, payload } = this.#stated;
    this.#fingerprint ??= sha256(canonical([event_id, run_id, seq, type, occurred_at, payload])).slice(0, 32);
    return this.#fingerprint;
  }

  /** Throws {@link UnknownEventType} or {@link BadPayload} unless the payload fits the type exactly. */
  check() {
    const fits = fitting.get(this.type);
    if (fits === undefined && !this.type.startsWith(NOTE_PREFIX)) throw new UnknownEventType(this.type);
    if (fits !== undefined && !fits(this.#stated.payload)) throw new BadPayload(this.type);
  }
}

/**
 * Reads an envelope without judging its payload; the view judges that after it dealt with repeats and other runs.
 * Throws {@link BadEnvelope} for everything that is not one.
 *
 * @param {unknown} source its JSON as text or bytes, or an object of the seven fields
 * @returns {Envelope}
 */
export function parseEnvelope(source) {
  if (source instanceof Envelope) return source;
  const { value, blurred } = stated(source);
  if (!isEnvelope(value)) throw new BadEnvelope(`not an ${PROTOCOL} envelope`);
  return new Envelope(value, blurred ? plain(value.payload) : value.payload);
}

function stated(source) {
  try {
    const text = textOf(source);
    if (text.length <= MAX_ENVELOPE_BYTES) return read(text);
  } catch (cause) {
    throw new BadEnvelope("this has no strict JSON form; send one envelope as UTF-8 JSON", { cause });
  }
  throw new BadEnvelope(`an envelope is over the limit of ${MAX_ENVELOPE_BYTES} characters`);
}
