/**
 * JSON as the Python package reads and writes it: strictly, and without blurring what a number said.
 *
 * `JSON.parse` takes `1.0` for `1`, rounds integers beyond 2^53 and lets lone surrogates pass. The protocol tells them
 * apart: an index is an integer, an id that comes again with `1.0` for `1` is another envelope, and a text is Unicode.
 * So texts are read here; values that came parsed already have lost the first two differences.
 */

/** Containers that hold something nest this deep at most. */
const MAX_DEPTH = 200;
/** Digits of an integer. */
const MAX_DIGITS = 4300;

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The text, or the value, has no strict JSON form. */
export class BadJson extends Error {}

/** A number that a JavaScript number would blur: an integer beyond 2^53, or a float that looks like an integer. */
export class Numeral {
  /** @param {string} literal the number as it was written */
  constructor(literal) {
    this.literal = literal;
  }

  /** Whether it was written as an integer. */
  get whole() {
    return !/[.eE]/.test(this.literal);
  }
}

class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.blurred = false;
  }

  document() {
    const value = this.value(1);
    this.blank();
    return this.at === this.text.length ? value : this.refuse();
  }

  /** @returns {never} */
  refuse() {
    throw new BadJson(`no strict JSON at character ${this.at}`);
  }

  /** Skips white space; gives the code of the character after it, NaN at the end. */
  blank() {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code;
      this.at += 1;
    }
  }

  value(depth) {
    switch (this.blank()) {
      case 0x22: return this.string();
      case 0x7b: return this.object(depth);
      case 0x5b: return this.array(depth);
      case 0x74: return this.word("true", true);
      case 0x66: return this.word("false", false);
      case 0x6e: return this.word("null", null);
      default: return this.number();
    }
  }

  word(name, value) {
    if (!this.text.startsWith(name, this.at)) this.refuse();
    this.at += name.length;
    return value;
  }

  string() {
    const { text, at: start } = this;
    let escaped = false;
    let end = start + 1;
    for (let code = text.charCodeAt(end); code !== 0x22; code = text.charCodeAt(end)) {
      if (!(code >= 0x20)) this.refuse(); // NaN, at the end, too
      escaped ||= code === 0x5c;
      end += code === 0x5c ? 2 : 1;
    }
    this.at = end + 1;
    if (!escaped) return text.slice(start + 1, end);
    const value = JSON.parse(text.slice(start, this.at)); // which knows the escapes
    return LONE_SURROGATE.test(value) ? this.refuse() : value;
  }

  number() {
    NUMBER.lastIndex = this.at;
    const found = NUMBER.exec(this.text);
    if (found === null) this.refuse();
    const [literal, fraction, exponent] = found;
    this.at += literal.length;
    const value = Number(literal);
    const whole = fraction === undefined && exponent === undefined;
    if (whole && literal.length > MAX_DIGITS && literal.replace("-", "").length > MAX_DIGITS) this.refuse();
    if (!whole && !Number.isFinite(value)) this.refuse();
    if (whole ? Number.isSafeInteger(value) : !Number.isInteger(value)) return value;
    this.blurred = true;
    return new Numeral(literal);
  }

  object(depth) {
    const found = Object.create(null); // "__proto__" is a name like any other
    this.at += 1;
    if (this.blank() === 0x7d) return this.closed(found);
    if (depth > MAX_DEPTH) this.refuse();
    for (;;) {
      if (this.blank() !== 0x22) this.refuse();
      const name = this.string();
      if (this.blank() !== 0x3a) this.refuse();
      this.at += 1;
      found[name] = this.value(depth + 1);
      if (this.blank() === 0x7d) return this.closed(found);
      this.comma();
    }
  }

  array(depth) {
    const found = [];
    this.at += 1;
    if (this.blank() === 0x5d) return this.closed(found);
    if (depth > MAX_DEPTH) this.refuse();
    for (;;) {
      found.push(this.value(depth + 1));
      if (this.blank() === 0x5d) return this.closed(found);
      this.comma();
    }
  }

  closed(value) {
    this.at += 1;
    return value;
  }

  comma() {
    if (this.blank() !== 0x2c) this.refuse();
    this.at += 1;
  }
}

/**
 * Reads JSON. Objects come without a prototype, and numbers that would be blurred as a {@link Numeral}; `blurred` says
 * whether there is one. Throws for everything that is not strict JSON.
 *
 * @param {string} text as {@link textOf} gives it
 * @returns {{value: any, blurred: boolean}}
 */
export function read(text) {
  const reader = new Reader(text);
  const value = reader.document();
  return { value, blurred: reader.blurred };
}

/**
 * The JSON of a source. Throws for bytes and texts that are not Unicode, and for values that have no JSON form.
 *
 * @param {unknown} source a text, its UTF-8 bytes, or a value
 * @returns {string}
 */
export function textOf(source) {
  if (source instanceof Uint8Array) return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(source);
  const text = typeof source === "string" ? source : JSON.stringify(source, onlyJson);
  if (typeof text !== "string" || LONE_SURROGATE.test(text)) throw new BadJson("this has no strict JSON form");
  return text;
}

/** What `JSON.stringify` would leave out, convert or write as null is refused instead. */
function onlyJson(name, value) {
  const kind = typeof value;
  const plain =
    value === null || kind === "string" || kind === "boolean" || Number.isFinite(value) || Array.isArray(value) ||
    Object.prototype.toString.call(value) === "[object Object]";
  if (!plain || this[name] !== value) throw new BadJson("this has no strict JSON form");
  return value;
}

/** A value with every {@link Numeral} as the number nearest to it. */
export function plain(value) {
  if (value instanceof Numeral) return Number(value.literal);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  const found = Object.create(null);
  for (const name of Object.keys(value)) found[name] = plain(value[name]);
  return found;
}

// Writing.

/**
 * The one text of a value, whatever order its names came in: what Python's `json.dumps(value, sort_keys=True,
 * separators=(",", ":"))` gives.
 */
export function canonical(value) {
  if (typeof value === "string") return ascii(value);
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : floatText(value);
  if (value instanceof Numeral) return value.whole ? value.literal : floatText(Number(value.literal));
  if (value === null || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const names = Object.keys(value).sort(byCodePoints);
  return `{${names.map((name) => `${ascii(name)}:${canonical(value[name])}`).join(",")}}`;
}

function ascii(text) {
  return JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** By code points. JavaScript sorts by UTF-16 units, which puts U+1F642 before U+FF5E. */
function byCodePoints(left, right) {
  for (let at = 0; at < left.length && at < right.length; at += 1) {
    const [one, other] = [left.charCodeAt(at), right.charCodeAt(at)];
    if (one !== other) return rank(one) - rank(other);
  }
  return left.length - right.length;
}

const rank = (unit) => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800);

/** A float as Python writes it. Both languages take the fewest digits that give the number back. */
function floatText(value) {
  if (Object.is(value, -0)) return "-0.0";
  const [digits, power] = value.toExponential().split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const text = String(value);
  return text.includes(".") ? text : `${text}.0`;
}
