/** What stays in sight: a run's name, its status in a sentence, the way to stop it, and a connection that is lost. */

import { element, mark, write, writeOrHide } from "./draw.js";
import { STATUS_ICONS, showIcon } from "./icons.js";
import { clean, label, refusalText, titleText } from "./texts.js";

/** Statuses in which a run can be stopped. */
const STOPPABLE = ["accepted", "running", "waiting", "cancelling"];

export class Head {
  /** What became of asking the run to stop, and of which run. */
  #stop = { run_id: null, asked: false, said: (_language) => "" };

  /** @param {() => Promise<{answer: string}>} stop asks the run to stop */
  constructor(stop) {
    this.send = stop;
    this.title = element("h2", { part: "title", id: "title", dir: "auto" });
    this.icon = element("span", { part: "icon" });
    this.sentence = element("span", { part: "sentence" });
    this.status = element("p", { part: "status", tabindex: -1 }, this.icon, this.sentence);
    this.button = element("button", { part: "stop", type: "button", hidden: true });
    this.said = element("p", { part: "stop-said", role: "status" });
    this.link = element("p", { part: "link", hidden: true });
    this.refused = element("p", { part: "refused", hidden: true });
    this.row = element("div", { part: "status-row" }, this.status, this.button);
    this.node = element("header", { part: "head" }, this.title, this.row, this.said, this.link, this.refused);
    this.button.addEventListener("click", () => this.#ask());
  }

  /** @param {import("./panel.js").Shown} shown */
  draw({ view, run_id, language, readonly, again_s, error }) {
    this.language = language;
    if (this.#stop.run_id !== run_id) this.#stop = { run_id, asked: false, said: () => "" };
    this.stoppable = view !== null && error === null && STOPPABLE.includes(view.status);
    this.cancelling = view?.status === "cancelling";
    write(this.title, view === null ? clean(run_id) : titleText(view));
    mark(this.row, { hidden: view === null && error !== null });
    mark(this.icon, { hidden: view === null });
    if (view !== null) showIcon(this.icon, STATUS_ICONS, view.status);
    write(this.sentence, view === null && error === null ? label("loading", language) : view?.message ?? "");
    writeOrHide(this.link, again_s === null || error !== null ? null : linkText(again_s, language));
    writeOrHide(this.refused, error === null ? null : refusalText(error, language));
    mark(this.button, { hidden: readonly || !this.stoppable });
    this.#drawStop();
  }

  #drawStop() {
    const { asked, said } = this.#stop;
    write(this.button, label("stop", this.language));
    mark(this.button, { "aria-disabled": asked || this.cancelling ? "true" : null });
    write(this.said, this.stoppable && !this.cancelling ? said(this.language) : "");
  }

  /** Asks once. That the run stopped is said by its log. */
  async #ask() {
    if (this.#stop.asked || this.cancelling) return;
    const stop = this.#stop;
    const say = (asked, said) => {
      Object.assign(stop, { asked, said });
      this.#drawStop();
    };
    say(true, (language) => label("stop_asked", language));
    try {
      const { answer } = await this.send();
      if (answer === "already_ended") say(true, (language) => label("already_ended", language));
    } catch (error) {
      say(false, (language) => refusalText(error, language));
    }
  }
}

const linkText = (again_s, language) =>
  again_s > 0 ? label("link_lost", language, { seconds: again_s }) : label("link_trying", language);
