/**
 * Server-sent events: an incremental decoder, with no I/O; the rules are those of `agents_progress/sse.py`.
 *
 * It follows the HTML standard (section "Parsing an event stream") and is stricter in one thing: bytes that are not
 * UTF-8 are refused instead of replaced, because a replaced byte is a changed fact.
 */

import { MAX_FRAME_BYTES } from "./protocol.js";

const BOM = "\ufeff";
const LINE_END = /\r\n|\r|\n/;
const MAX_RETRY_DIGITS = 15;

/** The stream is not one: bytes that are not UTF-8, or too many of them in one line or frame. */
export class BadFrame extends Error {}

/**
 * One event of a stream. `event` is `message` when it has no name; `id` is the newest id so far, or empty.
 *
 * @typedef {{event: string, data: string, id: string}} Frame
 */

/**
 * Turns the bytes of an event stream into frames, however they are cut into chunks.
 *
 * Each frame is given in the chunk that holds its last byte; one without its closing blank line is never given. After a
 * {@link BadFrame} all further input is refused, and the frames of that very chunk are not given either.
 */
export class Decoder {
  /** @type {number | null} the newest valid reconnection time in milliseconds */
  retry_ms = null;
  /** The newest id of a block that was closed, also of one without data. */
  last_event_id = "";

  #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #limit;
  /** @type {string | null} */
  #refusing = null;
  #atStart = true;
  #swallowLf = false;
  #line = "";
  #lineBytes = 0;
  /** @type {string[]} */
  #data = [];
  #dataBytes = 0;
  #event = "";
  #id = "";

  /** @param {{limit?: number}} [options] bytes of one line, and of the data of one frame */
  constructor({ limit = MAX_FRAME_BYTES } = {}) {
    this.#limit = limit;
  }

  /**
   * @param {Uint8Array} chunk
   * @returns {Frame[]} the frames that ended in it, oldest first
   */
  feed(chunk) {
    if (this.#refusing !== null) throw new BadFrame(this.#refusing);
    try {
      return this.#read(this.#text(chunk, true));
    } catch (error) {
      this.#refusing = error.message;
      throw error;
    }
  }

  /** The input ended. An unfinished last frame is dropped; an unfinished character is a {@link BadFrame}. */
  finish() {
    if (this.#refusing !== null) return;
    this.#refusing = "the stream was finished; make a new Decoder for another connection";
    this.#line = "";
    this.#data = [];
    this.#text(new Uint8Array(0), false);
  }

  #text(chunk, stream) {
    try {
      return this.#utf8.decode(chunk, { stream });
    } catch {
      throw new BadFrame("the stream is not UTF-8; reconnect after the last event id");
    }
  }

  #read(decoded) {
    /** @type {Frame[]} */
    const frames = [];
    let text = decoded;
    if (text === "") return frames;
    if (this.#atStart) {
      this.#atStart = false;
      if (text.startsWith(BOM)) text = text.slice(1);
    }
    if (this.#swallowLf && text !== "") {
      this.#swallowLf = false;
      if (text.startsWith("\n")) text = text.slice(1);
    }
    const pieces = text.split(LINE_END);
    const rest = pieces.pop();
    this.#swallowLf ||= text.endsWith("\r");
    for (const piece of pieces) {
      this.#grow(piece);
      const line = this.#line;
      this.#line = "";
      this.#lineBytes = 0;
      if (line === "") this.#closeBlock(frames);
      else this.#take(line);
    }
    this.#grow(rest);
    return frames;
  }

  #grow(piece) {
    this.#line += piece;
    this.#lineBytes += byteCount(piece);
    if (this.#lineBytes > this.#limit) {
      throw new BadFrame(`a line of the stream is over the limit of ${this.#limit} bytes`);
    }
  }

  /** One line that is not blank. A comment is a line whose name is empty, and no field has that name. */
  #take(line) {
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (name === "data") this.#takeData(value);
    else if (name === "event") this.#event = value;
    else if (name === "id") this.#id = value.includes("\0") ? this.#id : value;
    else if (name === "retry") this.#takeRetry(value);
  }

  #takeData(value) {
    this.#dataBytes += byteCount(value) + 1;
    if (this.#dataBytes > this.#limit + 1) {
      throw new BadFrame(`the data of one frame is over the limit of ${this.#limit} bytes`);
    }
    this.#data.push(value);
  }

  #takeRetry(value) {
    const digits = value.replace(/^0+(?=.)/, "");
    if (/^[0-9]+$/.test(value) && digits.length <= MAX_RETRY_DIGITS) this.retry_ms = Number(digits);
  }

  #closeBlock(frames) {
    this.last_event_id = this.#id;
    if (this.#data.length > 0) {
      frames.push({ event: this.#event || "message", data: this.#data.join("\n"), id: this.#id });
      this.#data = [];
      this.#dataBytes = 0;
    }
    this.#event = "";
  }
}

function byteCount(text) {
  return /^[\0-\x7f]*$/.test(text) ? text.length : new TextEncoder().encode(text).length;
}
