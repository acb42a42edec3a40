/** What an answer may carry besides its decision and a reason: a text, an option of a choice, other arguments. */

import { laidOut } from "./details.js";
import { element, mark, write } from "./draw.js";
import { clean, isEditable, label, optionsOf, textWanted } from "./texts.js";
import { MOST_TEXT } from "./words.js";

/** The controls of one question as it stands. `changed` is called when an edit begins or ends. */
export class Carried {
  /** @param {import("./rows.js").Interaction} row @param {string} id of the card @param {() => void} changed */
  constructor(row, id, changed) {
    this.wanted = textWanted(row);
    this.asked = laidOut(row.details ?? "");
    this.options = this.#optionsOf(row, id);
    this.textName = element("span", { part: "text-name" });
    this.text = element("textarea", { part: "text", rows: 2, maxlength: MOST_TEXT, autocomplete: "off" });
    const takesText = this.wanted === "optional" || this.wanted === "required";
    this.textRow = element("label", { part: "text-row", hidden: !takesText }, this.textName, this.text);
    this.summary = element("summary", { part: "edit-name" });
    this.argumentsName = element("span", { part: "arguments-name" });
    const rows = Math.min(this.asked.split("\n").length, 12);
    const code = { spellcheck: "false", autocomplete: "off", dir: "ltr", rows };
    this.arguments = element("textarea", { part: "arguments", ...code });
    this.arguments.value = this.asked;
    const edited = element("label", { part: "arguments-row" }, this.argumentsName, this.arguments);
    this.edit = element("details", { part: "edit", hidden: !isEditable(row) }, this.summary, edited);
    this.edit.addEventListener("toggle", changed);
    this.arguments.addEventListener("input", changed);
    this.node = element("div", { part: "carried" }, this.options, this.textRow, this.edit);
  }

  #optionsOf(row, id) {
    this.legend = element("legend", { part: "choose" });
    const options = this.wanted === "option" ? optionsOf(row) : [];
    this.radios = options.map((option) => {
      const radio = element("input", { part: "option", type: "radio", name: `${id}-option` });
      radio.value = option;
      return radio;
    });
    const rows = this.radios.map((radio) => {
      const name = element("span", { dir: "auto" }, clean(radio.value));
      return element("label", { part: "option-row" }, radio, name);
    });
    return element("fieldset", { part: "options", hidden: options.length === 0 }, this.legend, ...rows);
  }

  /** Whether there is something to choose from, where something must be chosen. */
  get choosable() {
    return this.wanted !== "option" || this.radios.length > 0;
  }

  /** Whether an approval would be of other arguments than those that are asked about. */
  get edited() {
    return this.edit.open && this.arguments.value !== this.asked;
  }

  /** What an answer carries. */
  given(decision) {
    if (decision === "reject") return {};
    const chosen = this.radios.find(({ checked }) => checked)?.value;
    const text = this.wanted === "option" ? chosen : this.text.value.trim() || undefined;
    return { text, arguments: this.edited ? this.arguments.value : undefined };
  }

  /** Takes over what was typed, chosen or begun for the question as it was before. */
  follow(before) {
    this.text.value = before.text.value;
    const chosen = before.given("approve").text;
    for (const radio of this.radios) radio.checked = radio.value === chosen;
  }

  /** @param {{language: "en" | "zh", off: boolean, pending: boolean}} how */
  draw({ language, off, pending }) {
    mark(this.node, { hidden: off });
    write(this.legend, label("choose", language));
    write(this.textName, label(this.wanted === "optional" ? "answer_text_optional" : "answer_text", language));
    write(this.summary, label("edit_arguments", language));
    write(this.argumentsName, label("arguments_json", language));
    mark(this.text, { readonly: pending });
    mark(this.arguments, { readonly: pending });
    for (const radio of this.radios) mark(radio, { disabled: pending });
  }
}
