/** All that is shown of a run, in its order: how it stands, what needs somebody, what it does, and what it answered. */

import { Announcer } from "./announce.js";
import { Answer } from "./answer.js";
import { Changes } from "./changes.js";
import { element, mark, texts, write } from "./draw.js";
import { Head } from "./head.js";
import { Questions } from "./questions.js";
import { Scroll } from "./scroll.js";
import { answerOf, artifactTexts, endingTexts, label, sources, usageTexts } from "./texts.js";
import { Work } from "./work.js";

/**
 * What there is to show.
 *
 * @typedef {object} Shown
 * @property {import("./view.js").RunView | null} view none before the first one came
 * @property {string} run_id
 * @property {"en" | "zh"} language
 * @property {boolean} readonly
 * @property {number | null} again_s seconds until the connection that was lost is tried again, null while there is one
 * @property {unknown} error that ended it, or null
 */

export class Panel {
  #changes = new Changes();
  #begun = false;
  #lost = false;

  /** @param {{stop: () => Promise<{answer: string}>, send: import("./card.js").Send}} ways */
  constructor({ stop, send }) {
    this.head = new Head(stop);
    this.details = element("ul", { part: "details", hidden: true });
    this.questions = new Questions(send);
    this.work = new Work();
    this.answer = new Answer();
    this.files = element("ul", { part: "files", hidden: true });
    this.sources = element("ul", { part: "sources", hidden: true });
    this.usage = element("ul", { part: "usage", hidden: true });
    this.more = element("button", { part: "more", type: "button", hidden: true });
    this.end = element("div", { part: "end" });
    this.news = element("div", { part: "news", "aria-live": "polite", "aria-atomic": "true" });
    this.node = element(
      "section", { part: "run", "aria-labelledby": "title", "aria-busy": "true" },
      this.head.node, this.details, ...this.questions.nodes, ...this.work.nodes, this.answer.node, this.files,
      this.sources, this.usage, this.more, this.end, this.news,
    );
    this.drawDetails = texts(this.details);
    this.drawFiles = texts(this.files);
    this.drawSources = texts(this.sources, showSource);
    this.drawUsage = texts(this.usage);
    this.announcer = new Announcer((sentence) => write(this.news, sentence));
    this.scroll = new Scroll(this.end, () => this.#look());
    this.more.addEventListener("click", () => this.#toOffered());
    this.offered = this.end;
  }

  /** @param {Shown} shown */
  draw(shown) {
    const focused = this.node.getRootNode().activeElement;
    const { view, language } = shown;
    const busy = view === null && shown.error === null ? "true" : null;
    mark(this.node, { lang: language, "data-status": view?.status ?? null, "aria-busy": busy });
    this.head.draw(shown);
    this.#sayLink(shown);
    write(this.more, label("new_content", language));
    if (view !== null) this.#drawView(view, shown.readonly);
    const lost = focused && (!focused.isConnected || focused.closest("[hidden]"));
    if (lost) (this.questions.heir(focused) ?? this.head.status).focus({ preventScroll: true });
  }

  #drawView(view, readonly) {
    const { language } = view;
    for (const name of ["details", "files", "sources"]) mark(this[name], { "aria-label": label(name, language) });
    mark(this.usage, { "aria-label": label("tokens_name", language) });
    this.drawDetails(endingTexts(view));
    const asked = this.questions.draw(view, readonly);
    this.work.draw(view);
    const grown = this.answer.draw(answerOf(view));
    this.drawFiles(artifactTexts(view));
    this.drawSources(sources(view));
    this.drawUsage(usageTexts(view));
    for (const [subject, sentence] of this.#changes.of(view)) this.announcer.announce(subject, sentence);
    if (this.#begun) this.#takeAlong(grown, asked);
    else this.scroll.begin();
    this.#begun = true;
  }

  /** Leads readers to what is new: along with it if they are there, and with a button if they are elsewhere. */
  #takeAlong(grown, asked) {
    const unseen = grown && this.scroll.grown();
    if (asked !== null && !this.scroll.sees(asked)) this.#offer(asked);
    else if (unseen && this.more.hidden) this.#offer(this.end);
    this.#look();
  }

  /** @param {Element} what the end, or a card */
  #offer(what) {
    this.offered = what;
    mark(this.more, { hidden: false });
  }

  /** What is seen, or is gone, is not offered. */
  #look() {
    if (!this.more.hidden && (!this.offered.isConnected || this.scroll.sees(this.offered))) this.#withdraw();
  }

  #toOffered() {
    if (this.offered === this.end) this.scroll.toEnd();
    else this.offered.scrollIntoView({ block: "nearest" });
    this.#withdraw();
  }

  /** Takes the button away, and gives the focus that it may have to what it led to. */
  #withdraw() {
    const focused = this.more.matches(":focus");
    mark(this.more, { hidden: true });
    if (focused) (this.offered === this.end ? this.answer.node : this.offered).focus({ preventScroll: true });
  }

  /** A lost connection is said once, without its seconds, and that it is back. */
  #sayLink({ again_s, error, language }) {
    const lost = again_s !== null && error === null;
    if (lost !== this.#lost) this.announcer.announce("link", label(lost ? "link_trying" : "link_back", language));
    this.#lost = lost;
  }

  enter() {
    this.scroll.enter();
    addEventListener("beforeprint", this.unfold);
    addEventListener("afterprint", this.unfold);
  }

  leave() {
    this.scroll.leave();
    this.announcer.clear();
    removeEventListener("beforeprint", this.unfold);
    removeEventListener("afterprint", this.unfold);
  }

  /** Paper shows every step. */
  unfold = ({ type }) => this.work.print(type === "beforeprint");
}

/** A source leads away from the page only, and tells where it leads to nobody. */
function showSource(node, { text, url }) {
  const link = node.querySelector("a");
  if (node.textContent === text && (link?.href ?? null) === url) return;
  const away = { href: url, target: "_blank", rel: "noopener noreferrer nofollow" };
  node.replaceChildren(url === null ? text : element("a", away, text));
}
