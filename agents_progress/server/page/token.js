/**
 * The screen that asks for the token of a server. What is typed leaves it by its callback alone.
 */

import { element, mark, write } from "./draw.js";
import { label } from "./texts.js";

/** What a header can carry. */
const SENDABLE = /^[\x21-\x7e]+$/;

export class TokenScreen {
  #language = "en";
  #wrong;
  #heading = element("h1", { id: "heading", tabindex: "-1" });
  #name = element("label", { for: "token" });
  #field = element("input", {
    id: "token",
    type: "password",
    autocomplete: "off",
    autocapitalize: "none",
    spellcheck: "false",
    required: true,
    "aria-describedby": "wrong kept",
  });
  #error = element("p", { id: "wrong", role: "alert", class: "notice" });
  #hint = element("p", { id: "kept", class: "hint" });
  #button = element("button", { type: "submit" });

  /** @param {boolean} wrong whether one was tried @param {(text: string) => void} onToken */
  constructor(wrong, onToken) {
    this.#wrong = wrong;
    const form = element("form", { novalidate: true }, this.#name, this.#field, this.#button);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = this.#field.value.trim();
      if (SENDABLE.test(text)) return onToken(text);
      this.#wrong = text !== "";
      this.speak(this.#language);
      this.focus();
    });
    this.nodes = [this.#heading, form, this.#error, this.#hint];
  }

  get title() {
    return label("token_asked", this.#language);
  }

  speak(language) {
    this.#language = language;
    write(this.#heading, this.title);
    write(this.#name, label("token", language));
    write(this.#button, label("token_use", language));
    write(this.#hint, label("token_kept", language));
    write(this.#error, this.#wrong ? label("refusal_token", language) : "");
    mark(this.#field, { "aria-invalid": this.#wrong ? "true" : null });
  }

  focus() {
    this.#field.focus();
  }

  leave() {
    this.#field.value = "";
  }
}
