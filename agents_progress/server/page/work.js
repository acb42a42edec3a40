/** Rows of visible work: what is open first, what failed or was refused after it, and the rest behind a button. */

import { element, list, mark, write, writeOrHide } from "./draw.js";
import { ROW_ICONS, showIcon } from "./icons.js";
import { isOpen } from "./rows.js";
import { activityText, ageText, clean, depth, label, stepsText, work } from "./texts.js";

export class Work {
  #unfolded = false;
  #prints = false;
  /** @type {import("./view.js").RunView | null} */
  #view = null;

  constructor() {
    this.rows = element("ul", { part: "work", hidden: true });
    const fold = { part: "fold", id: "fold", type: "button", "aria-controls": "folded", hidden: true };
    this.fold = element("button", fold);
    this.folded = element("ul", { part: "folded", id: "folded", "aria-labelledby": "fold", hidden: true });
    this.nodes = [this.rows, this.fold, this.folded];
    const how = { key: ({ activity_id }) => activity_id, make: () => new Row() };
    this.drawRows = list(this.rows, how);
    this.drawFolded = list(this.folded, how);
    this.fold.addEventListener("click", () => {
      this.#unfolded = !this.#unfolded;
      this.draw(this.#view);
    });
  }

  /** Paper shows every step. */
  print(begins) {
    this.#prints = begins;
    if (this.#view !== null) this.draw(this.#view);
  }

  /**
   * Draws the rows as they are now; those that nobody sees cost nothing.
   *
   * @param {import("./view.js").RunView} view
   */
  draw(view) {
    this.#view = view;
    const { open, kept, folded } = work(view);
    const unfolded = this.#unfolded || this.#prints;
    mark(this.rows, { "aria-label": label("work", view.language) });
    const context = { language: view.language, live: !view.standing.ended && !view.standing.closed };
    mark(this.rows, { "data-live": context.live });
    this.drawRows([...open, ...kept], context);
    write(this.fold, stepsText(folded.length, view.language));
    mark(this.fold, { hidden: folded.length === 0, "aria-expanded": String(unfolded) });
    this.drawFolded(unfolded ? folded : [], context);
  }
}

/** One activity. Its words are those of every other display; its title stands out of them. */
class Row {
  #words = "";

  constructor() {
    this.icon = element("span", { part: "icon" });
    this.words = element("span", { part: "words", dir: "auto" });
    this.elapsed = element("span", { part: "elapsed", hidden: true });
    this.progress = element("progress", { part: "progress", hidden: true });
    this.node = element("li", { part: "activity" }, this.icon, this.words, this.elapsed, this.progress);
  }

  /**
   * A row that a run left open when it ended is as far as it is known, and neither its time nor its bar goes on.
   *
   * @param {import("./rows.js").Activity} row
   * @param {{language: "en" | "zh", live: boolean}} run
   */
  draw(row, { language, live }) {
    const open = live && isOpen(row);
    mark(this.node, { "data-id": row.activity_id, "data-state": row.state, "data-depth": depth(row) });
    showIcon(this.icon, ROW_ICONS, row.state);
    this.#say(activityText(row, language), clean(row.title), label(row.state, language).length);
    writeOrHide(this.elapsed, open ? elapsed(row, language) : null);
    const counted = open && row.total > 0 && row.current !== null; // nothing is estimated
    mark(this.progress, { hidden: !counted });
    if (counted) mark(this.progress, { max: row.total, value: row.current, "aria-label": clean(row.title) });
  }

  #say(words, title, from) {
    if (words === this.#words) return;
    this.#words = words;
    const at = words.indexOf(title, from);
    const name = element("bdi", { part: "name" }, title);
    this.words.replaceChildren(words.slice(0, at), name, words.slice(at + title.length));
  }
}

/** How long a row has been open, by the clock of this device, which may be wrong; durations come from the run. */
function elapsed({ since }, language) {
  const seconds = (Date.now() - Date.parse(since)) / 1000;
  return seconds >= 1 ? ageText(seconds, language) : null;
}
