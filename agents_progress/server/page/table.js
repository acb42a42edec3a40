/**
 * The table of the runs. Its rows are kept by run and changed in place, so that nobody who is in the middle of one
 * loses it: the row with the focus stays until that moves on, and one with selected text is left as it is.
 */

import { element, mark, write } from "./draw.js";
import { STATUS_ICONS, showIcon } from "./icons.js";
import { UNKNOWN } from "./listing.js";
import { label } from "./texts.js";

/** Columns in their order, and the labels of their heads. */
const COLUMNS = {
  status: "status_name",
  title: "title_name",
  activity: "activity_name",
  age: "age_name",
  tokens: "tokens_name",
  cost: "cost_name",
};

const ICONS = { ...STATUS_ICONS, continued: "M4 12h15M13 6l6 6-6 6" };

/** Roles are said aloud, for on a phone the rows are shown as cards, which would be no table otherwise. */
export class Table {
  #rows = new Map();
  #heads = {};
  #body = element("tbody", { role: "rowgroup" });

  /** @param {string} labelledby the id of the heading */
  constructor(labelledby) {
    const head = element("tr", { role: "row" });
    for (const column of Object.keys(COLUMNS)) {
      this.#heads[column] = element("th", { role: "columnheader", scope: "col", class: column });
      head.append(this.#heads[column]);
    }
    this.element = element(
      "table",
      { role: "table", "aria-labelledby": labelledby },
      element("thead", { role: "rowgroup" }, head),
      this.#body,
    );
  }

  /**
   * Shows these rows, in this order.
   *
   * @param {ReturnType<typeof import("./listing.js").rowTexts>[]} rows
   * @param {"en" | "zh"} language
   */
  show(rows, language) {
    for (const [column, name] of Object.entries(COLUMNS)) write(this.#heads[column], label(name, language));
    mark(this.element, { "data-costs": rows.some(({ cost }) => cost !== UNKNOWN) });
    const wanted = new Set(rows.map(({ name }) => name));
    const selected = this.#selected(); // asked before anything changes: each answer would lay the page out anew
    this.#dropOthers(wanted, selected);
    let place = this.#body.firstChild;
    for (const texts of rows) {
      const row = this.#row(texts.name);
      if (!selected.has(row)) row.draw(texts, language);
      const isNew = row.element.parentNode === null; // it comes before a row that has yet to go
      while (!isNew && place !== null && !wanted.has(place.dataset.run)) place = place.nextSibling;
      if (row.element === place) place = place.nextSibling;
      else this.#body.insertBefore(row.element, place);
    }
  }

  #row(name) {
    if (!this.#rows.has(name)) this.#rows.set(name, new Row(name));
    return this.#rows.get(name);
  }

  /** Rows of which some text is selected. */
  #selected() {
    const selection = document.getSelection();
    if (selection === null || selection.isCollapsed) return new Set();
    return new Set([...this.#rows.values()].filter((row) => selection.containsNode(row.element, true)));
  }

  #dropOthers(wanted, selected) {
    const { activeElement } = document;
    for (const [name, row] of this.#rows) {
      if (wanted.has(name) || selected.has(row) || row.element.contains(activeElement)) continue;
      row.element.remove();
      this.#rows.delete(name);
    }
  }
}

class Row {
  #icon = element("span", { class: "icon", "aria-hidden": "true" });
  #sentence = element("span");
  #link = element("a");
  #name = element("small", { class: "name" });
  #age = element("time");
  #silent = element("small");
  #cells = {};

  constructor(run_id) {
    this.element = element("tr", { role: "row", "data-run": run_id });
    const contents = {
      status: [this.#icon, this.#sentence],
      title: [this.#link, this.#name],
      age: [this.#age, this.#silent],
    };
    for (const column of Object.keys(COLUMNS)) {
      const [tag, head] = column === "title" ? ["th", { role: "rowheader", scope: "row" }] : ["td", { role: "cell" }];
      this.#cells[column] = element(tag, { ...head, class: column }, ...(contents[column] ?? []));
    }
    this.element.append(...Object.values(this.#cells));
  }

  draw(texts, language) {
    mark(this.element, { "data-status": texts.status });
    mark(this.#link, { href: `#/${texts.run_id}` });
    mark(this.#age, { datetime: texts.started, title: texts.started });
    showIcon(this.#icon, ICONS, texts.status);
    write(this.#sentence, texts.sentence);
    write(this.#link, texts.title);
    write(this.#name, texts.title === texts.name ? "" : texts.name);
    write(this.#age, texts.age);
    write(this.#silent, texts.silent);
    for (const column of ["activity", "tokens", "cost"]) {
      write(this.#cells[column], texts[column]);
      mark(this.#cells[column], {
        "data-name": label(COLUMNS[column], language),
        "data-unknown": texts[column] === UNKNOWN,
      });
    }
  }
}
