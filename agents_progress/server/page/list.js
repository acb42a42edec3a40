/**
 * The screen with the list of runs: one page of it, asked for again every three seconds while somebody can see it.
 */

import { CLOCK, isFinal, pause } from "./client.js";
import { element, mark, write } from "./draw.js";
import { folded, hashOf, rowTexts } from "./listing.js";
import { MESSAGES } from "./protocol.js";
import { ask } from "./requests.js";
import { Table } from "./table.js";
import { label, refusalText } from "./texts.js";

const EVERY_MS = 3_000;
const FIRST_MS = 1_000;
/** A list that has not come by then is asked for again. */
const PATIENCE_MS = 15_000;

export class ListScreen {
  #language = "en";
  #token;
  #onStranger;
  #left = new AbortController();
  #heading = element("h1", { id: "heading", tabindex: "-1" });
  #filterName = element("label", { for: "filter" });
  #filter = element("select", { id: "filter" });
  #notice = element("p", { role: "status", class: "notice" });
  #none = element("p", { class: "none", hidden: true });
  #older = element("a", { hidden: true });
  #newest = element("a", { hidden: true });
  #table = new Table("heading");
  /** The newest answer: its rows, the run that older ones are before (null: there are none), and when it came. */
  #listed = null;

  /**
   * @param {URLSearchParams} query what is asked of the list
   * @param {{token: () => string, onStranger: () => void}} given the second is called when nobody is known by the
   *   token
   */
  constructor(query, { token, onStranger }) {
    this.#token = token;
    this.#onStranger = onStranger;
    this.#filter.append(...["", ...Object.keys(MESSAGES)].map((status) => element("option", { value: status })));
    this.#filter.addEventListener("change", () => {
      location.hash = hashOf(this.query, { status: this.#filter.value, before: null });
    });
    const filter = element("p", { class: "filter" }, this.#filterName, this.#filter);
    const paging = element("p", { class: "paging" }, this.#newest, this.#older);
    this.nodes = [this.#heading, filter, this.#notice, this.#table.element, this.#none, paging];
    this.open(query);
  }

  /** What the page is called here. */
  get title() {
    return label("runs", this.#language);
  }

  /** Says everything in a language. */
  speak(language) {
    this.#language = language;
    write(this.#heading, this.title);
    write(this.#filterName, label("filter", language));
    for (const option of this.#filter.options) {
      write(option, option.value === "" ? label("all_statuses", language) : MESSAGES[option.value][language]);
    }
    write(this.#none, label("no_runs", language));
    write(this.#newest, label("newest_runs", language));
    write(this.#older, label("older_runs", language));
    this.#draw();
  }

  /** Goes to another part of the list; the one before is seen until this one is here. @param {URLSearchParams} query */
  open(query) {
    this.query = query;
    this.#filter.value = query.get("status") ?? "";
    mark(this.#newest, { href: hashOf(query, { before: null }), hidden: !query.has("before") });
    this.leave();
    this.#left = new AbortController();
    this.#follow(this.#left.signal);
  }

  /** Begins at the heading, but takes the focus from nobody who is choosing. */
  focus() {
    if (document.activeElement !== this.#filter) this.#heading.focus();
  }

  leave() {
    this.#left.abort();
  }

  async #follow(signal) {
    mark(this.#table.element, { "aria-busy": "true" });
    for (let failures = 0; !signal.aborted; await seen(signal)) {
      try {
        await this.#refresh(signal);
        write(this.#notice, failures === 0 ? "" : label("link_back", this.#language));
        failures = 0;
        await CLOCK.wait(EVERY_MS, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (isFinal(error)) return this.#refuse(error);
        failures += 1;
        const again_ms = pause(failures, error.retry_after_ms || FIRST_MS, CLOCK.random);
        write(this.#notice, label("link_lost", this.#language, { seconds: Math.ceil(again_ms / 1000) }));
        await CLOCK.wait(again_ms, signal);
      }
    }
  }

  async #refresh(signal) {
    const asked = this.query.size === 0 ? "runs" : `runs?${this.query}`;
    const within = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
    const answer = await ask(asked, { token: this.#token, signal: within, headers: { accept: "application/json" } });
    const { runs, older } = await answer.json();
    signal.throwIfAborted();
    this.#listed = { rows: folded(runs), before: older ? runs.at(-1).run_id : null, at_ms: performance.now() };
    mark(this.#table.element, { "aria-busy": null });
    this.#draw();
  }

  #refuse(error) {
    mark(this.#table.element, { "aria-busy": null });
    if (error.status === 401) this.#onStranger();
    else write(this.#notice, refusalText(error, this.#language));
  }

  #draw() {
    if (this.#listed === null) return;
    const { rows, before, at_ms } = this.#listed;
    const since_s = (performance.now() - at_ms) / 1000;
    this.#table.show(rows.map((row) => rowTexts(row, this.#language, since_s)), this.#language);
    this.#table.element.hidden = rows.length === 0;
    this.#none.hidden = rows.length > 0;
    mark(this.#older, { href: hashOf(this.query, { before }), hidden: before === null });
  }
}

/** Until somebody can see the page. @param {AbortSignal} signal @returns {Promise<void>} */
const seen = (signal) => new Promise((resolve) => {
  if (!document.hidden || signal.aborted) return resolve();
  document.addEventListener("visibilitychange", () => resolve(), { once: true, signal });
  signal.addEventListener("abort", () => resolve(), { once: true });
});
