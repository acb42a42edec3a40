/**
 * `<agent-progress src="/runs/RUN_ID">`: a run in a page of yours, from its beginning to its end and over its pauses.
 *
 * See docs/page.md. It works under a strict Content-Security-Policy with no inline code or style, and under
 * `require-trusted-types-for 'script'`. The module can be read where there is no document.
 */

import { Refused, answer, cancel } from "./client.js";
import { Panel } from "./panel.js";
import { style } from "./style.js";
import { followTask } from "./task.js";
import { LANGUAGES } from "./words.js";

/** A connection that failed and is back before this was never missed. */
const UNNOTICED_MS = 700;
/** So long the server may take to come back that closed a connection in order. */
const PLANNED_MS = 5_000;
const TICK_MS = 1_000;
/** After such a refusal nothing stays of what was shown; a token that ran out takes nothing away. */
const NOT_YOURS = ["erased", "forbidden", "not_found"];
const Base = globalThis.HTMLElement ?? class {};

export class AgentProgress extends Base {
  static observedAttributes = ["src", "lang", "readonly"];

  #token;
  /** @type {Panel | null} */
  #panel = null;
  /** @type {import("./view.js").RunView | null} */
  #view = null;
  /** @type {import("./task.js").Place | null} where the run that is shown is asked and answered */
  #place = null;
  #error = null;
  /** @type {{noticed: number, again: number} | null} a lost connection, in moments of `performance.now()` */
  #lost = null;
  /** @type {AbortController | null} */
  #following = null;
  #src = "";
  #told = "";
  #startsSoon = false;
  #drawsSoon = false;
  #tick = 0;

  constructor() {
    super();
    this.attachShadow({ mode: "open" }).adoptedStyleSheets = [style()];
    if (Object.hasOwn(this, "token")) {
      this.#token = this.token; // set before the element was defined
      delete this.token;
    }
  }

  /**
   * As whom to ask: a bearer token, or a function that gives one and is asked at each request. Never an attribute,
   * which whoever reads the document could read.
   *
   * @returns {string | (() => string | Promise<string>) | undefined}
   */
  get token() {
    return this.#token;
  }

  set token(token) {
    if (token === this.#token) return;
    this.#token = token;
    this.#startSoon();
  }

  connectedCallback() {
    this.#panel?.enter();
    if (this.#following === null) this.#startSoon();
  }

  disconnectedCallback() {
    this.#panel?.leave();
    queueMicrotask(() => this.isConnected || this.#leave()); // one that is moved is back by then
  }

  attributeChangedCallback(name, before, now) {
    if (before === now) return;
    if (name === "src") this.#startSoon();
    else this.#drawSoon();
  }

  /** Starts once for all that is set in one go. */
  #startSoon() {
    if (this.#startsSoon) return;
    this.#startsSoon = true;
    queueMicrotask(() => {
      this.#startsSoon = false;
      this.#leave();
      if (this.isConnected) this.#start((this.getAttribute("src") ?? "").replace(/\/$/, ""));
    });
  }

  #leave() {
    this.#following?.abort();
    this.#following = null;
    this.#lost = null;
    clearInterval(this.#tick);
  }

  #start(src) {
    if (src !== this.#src) this.#clear();
    this.#src = src;
    this.#error = null;
    if (src === "") return;
    this.#tick = setInterval(() => this.#drawSoon(), TICK_MS);
    this.#follow(src, (this.#following = new AbortController()).signal);
    if (this.#panel !== null) this.#drawSoon(); // what comes within a moment needs no word that it is coming
  }

  #clear() {
    this.#panel?.leave();
    this.#panel = null;
    this.#view = null;
    this.shadowRoot.replaceChildren();
  }

  async #follow(src, signal) {
    const onView = (view, place) => {
      [this.#view, this.#place, this.#lost] = [view, place, null];
      this.#drawSoon();
    };
    const onLink = (link) => this.#link(link);
    try {
      await followTask(src, { token: this.#token, language: this.#language, onView, onLink, signal });
    } catch (error) {
      if (!signal.aborted) this.#refuse(error);
    }
    if (!signal.aborted) this.#leave();
    this.#drawSoon();
  }

  #link({ open, again_ms, error }) {
    const now = performance.now();
    const noticed = this.#lost?.noticed ?? now + (error ? UNNOTICED_MS : PLANNED_MS);
    this.#lost = open ? null : { noticed, again: now + again_ms };
    this.#drawSoon();
  }

  #refuse(error) {
    const { status, code } = error;
    if (NOT_YOURS.includes(code)) this.#clear();
    this.#error = error;
    if (error instanceof Refused) this.#tell("agent-progress-refused", { status, code });
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }

  /** Draws with the next frame, once for all that came until then. */
  #drawSoon() {
    if (this.#drawsSoon || this.#src === "") return;
    this.#drawsSoon = true;
    requestAnimationFrame(() => {
      this.#drawsSoon = false;
      this.#draw();
    });
  }

  #draw() {
    if (this.#src === "" || !this.isConnected) return;
    if (this.#panel === null) this.#enter();
    const [view, language] = [this.#view, this.#language];
    if (view !== null) view.language = language; // others may show the same view in another language
    this.#panel.draw({
      view,
      run_id: view?.run_id ?? this.#src.split("/").at(-1),
      language,
      readonly: this.hasAttribute("readonly"),
      again_s: this.#again_s,
      error: this.#error,
    });
    const told = `${view?.run_id} ${view?.status}`;
    if (view !== null && told !== this.#told) {
      this.#tell("agent-progress-view", { status: view.status, run_id: view.run_id });
    }
    this.#told = told;
  }

  #enter() {
    this.#panel = new Panel({
      stop: () => cancel(this.#place.url, { token: this.#token }),
      send: async (interaction_id, given) => {
        const { url, goOn } = this.#place;
        const taken = await answer(url, interaction_id, given, { token: this.#token });
        goOn(taken.continued_as);
        return taken;
      },
    });
    this.shadowRoot.append(this.#panel.node);
    this.#panel.enter();
  }

  get #again_s() {
    const now = performance.now();
    if (this.#lost === null || now < this.#lost.noticed) return null;
    return Math.max(0, Math.ceil((this.#lost.again - now) / 1000));
  }

  /** That of the element, else of what is around it, else English. */
  get #language() {
    let near = this.closest("[lang]");
    for (let root = this.getRootNode(); near === null && root.host; root = root.host.getRootNode()) {
      near = root.host.closest("[lang]");
    }
    return LANGUAGES.find((language) => near?.lang.toLowerCase().split("-")[0] === language) ?? "en";
  }
}

if (globalThis.customElements?.get("agent-progress") === undefined) {
  globalThis.customElements?.define("agent-progress", AgentProgress);
}
