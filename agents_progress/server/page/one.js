/**
 * The screen with one run: the element that anybody can put into a page, and the way back to the list.
 */

import { element, mark, write } from "./draw.js";
import "./element.js";
import { MESSAGES } from "./protocol.js";
import { label } from "./texts.js";

export class RunScreen {
  #language = "en";
  #run_id;
  #status = null;
  #back = element("a");
  #heading = element("h1", { id: "heading", tabindex: "-1" });
  #run;

  /**
   * @param {string | null} run_id null: no run can have it
   * @param {object} given
   * @param {() => string} given.token
   * @param {() => void} given.onStranger nobody is known by the token
   * @param {() => void} given.onTitle the title changed
   * @param {string} given.list the hash of the list
   */
  constructor(run_id, { token, onStranger, onTitle, list }) {
    this.#run_id = run_id;
    mark(this.#back, { href: list });
    this.#run = run_id === null ? element("p", { class: "notice", role: "alert" }) : followed(run_id, token);
    this.nodes = [element("p", { class: "back" }, this.#back), this.#heading, this.#run];
    this.#run.addEventListener("agent-progress-view", ({ detail }) => {
      this.#status = detail.status;
      onTitle();
    });
    this.#run.addEventListener("agent-progress-refused", ({ detail }) => {
      if (detail.status === 401) onStranger();
    });
  }

  get title() {
    return this.#status === null ? this.#name : `${MESSAGES[this.#status][this.#language]} · ${this.#name}`;
  }

  get #name() {
    const run_id = this.#run_id;
    return run_id === null ? label("run_name", this.#language) : label("in_run", this.#language, { run_id });
  }

  speak(language) {
    this.#language = language;
    write(this.#back, label("runs", language));
    write(this.#heading, this.#name);
    if (this.#run_id === null) write(this.#run, label("refusal_not_found", language));
    else mark(this.#run, { lang: language });
  }

  focus() {
    this.#heading.focus();
  }

  leave() {
    this.#run.remove();
  }
}

function followed(run_id, token) {
  const run = element("agent-progress", { src: new URL(`runs/${run_id}`, document.baseURI).href });
  run.token = token;
  return run;
}
