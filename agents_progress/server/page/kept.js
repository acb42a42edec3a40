/**
 * A text that the browser keeps for the page. Where it forbids that, the text lasts until the page is left.
 */

export class Kept {
  #storage;
  #key;
  #text = "";

  /** @param {() => Storage} storage which may throw @param {string} key */
  constructor(storage, key) {
    this.#storage = storage;
    this.#key = key;
    attempt(() => (this.#text = storage().getItem(key) ?? ""));
  }

  /** The text; empty where there is none. */
  get text() {
    return this.#text;
  }

  set text(text) {
    this.#text = text;
    attempt(() => (text === "" ? this.#storage().removeItem(this.#key) : this.#storage().setItem(this.#key, text)));
  }
}

function attempt(act) {
  try {
    act();
  } catch (error) {
    if (!(error instanceof DOMException)) throw error; // forbidden, or full
  }
}
