/** The answer as it comes: text that grows at its end, under a name that says how far it may be trusted. */

import { element, mark, write, writeOrHide } from "./draw.js";
import { cleanLines, moreLines } from "./texts.js";

/** A block of text ends with the first line that ends beyond so many characters: what growing costs depends on it. */
const BLOCK = 2_000;
/** A line that is longer than this is broken for the same reason, at a space if there is one near. */
const LINE = 16_000;
const NEAR = 200;

export class Answer {
  /** What is shown, before it was made harmless. */
  #shown = "";
  /** @type {Text | null} of the last block */
  #last = null;

  constructor() {
    this.name = element("h3", { part: "answer-name", id: "answer-name" });
    this.missing = element("p", { part: "missing", hidden: true });
    this.text = element("div", { part: "answer-text", dir: "auto" });
    const attributes = { part: "answer", "aria-labelledby": "answer-name", tabindex: -1, hidden: true };
    this.node = element("section", attributes, this.name, this.missing, this.text);
  }

  /**
   * Gives whether there is other text than before.
   *
   * @param {ReturnType<typeof import("./texts.js").answerOf>} answer
   */
  draw(answer) {
    mark(this.node, { hidden: answer === null });
    write(this.name, answer?.label ?? "");
    writeOrHide(this.missing, answer?.missingStart ?? null);
    return this.#grow(answer?.text ?? "");
  }

  #grow(text) {
    if (text === this.#shown) return false;
    const more = moreLines(this.#shown, text);
    if (more === null) {
      this.text.replaceChildren();
      this.#last = null;
    }
    this.#shown = text;
    this.#append(more ?? cleanLines(text));
    return true;
  }

  #append(text) {
    while (text !== "") {
      if (this.#last === null) {
        this.#last = document.createTextNode("");
        this.text.append(element("div", {}, this.#last));
      }
      const end = blockEnd(text, this.#last.length);
      this.#last.appendData(end === null ? text : text.slice(0, end));
      if (end === null) return;
      text = text.slice(end);
      this.#last = null;
    }
  }
}

/** Where the block ends that has so many characters before a text, or null where all of it belongs to the block. */
export function blockEnd(text, before) {
  const line = text.indexOf("\n", Math.max(0, BLOCK - before));
  const longest = LINE - before;
  if (line !== -1 && line < longest) return line + 1;
  if (text.length <= longest + NEAR) return null;
  const from = Math.max(0, longest);
  const space = text.slice(from, longest + NEAR).search(/\s/);
  const end = space === -1 ? longest + NEAR : from + space + 1;
  return /[\ud800-\udbff]/.test(text[end - 1]) ? end + 1 : end; // never between the halves of a character
}
