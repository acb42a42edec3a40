/** One question to a person: exactly what is asked, where, until when, what an answer carries, and the two answers. */

import { Carried } from "./carried.js";
import { laidOut } from "./details.js";
import { element, mark, write, writeOrHide } from "./draw.js";
import { clean, cleanLines, isApprovable, label, questionText, refusalText } from "./texts.js";
import { MOST_TEXT } from "./words.js";

/** For so long the buttons of a card that took the place of another one do nothing. */
const LOOK_MS = 700;

/**
 * How an answer gets to the run. It resolves when the server took it, and throws as `answer` of client.js does.
 *
 * @typedef {(interaction_id: string, given: import("./requests.js").Given) =>
 *   Promise<{continued_as?: string | null} | undefined>} Send
 */

/** A card is made for one question as it stands, and sends the digest of that one. */
export class Card {
  #pending = false;
  #readonly = false;
  #lookUntil = 0;
  /** What became of the answer, or is to be known before one is given. */
  #said = (_language) => "";

  /** @param {import("./rows.js").Interaction} row @param {Send} send @param {Card} [before] that stood in its place */
  constructor(row, send, before) {
    this.row = row;
    this.send = send;
    const id = `question-${row.interaction_id}`;
    this.title = element("h3", { part: "asked", id, dir: "auto" });
    this.exactly = element("p", { part: "exactly", id: `${id}-exactly` });
    const group = { part: "details-text", dir: "auto", role: "group", "aria-labelledby": `${id}-exactly` };
    this.details = element("pre", { ...group, hidden: row.details === null }, cleanLines(laidOut(row.details ?? "")));
    const tool = element("code", { part: "tool", dir: "auto" }, clean(row.tool));
    this.what = element("div", { part: "what" }, tool, this.details);
    this.where = element("p", { part: "where", dir: "auto" });
    this.until = element("time", { part: "until", hidden: true });
    this.node = element(
      "article", { part: "question", "data-id": row.interaction_id, "aria-labelledby": id, tabindex: -1 },
      this.title, this.exactly, this.what, this.where, this.until, ...this.#controls(id),
    );
    new ResizeObserver(() => this.#letScroll()).observe(this.details);
    if (before) this.#follow(before);
  }

  #controls(id) {
    this.carried = new Carried(this.row, id, () => this.#drawControls(this.row));
    this.reasonName = element("span", { part: "reason-name" });
    this.reason = element("input", { part: "reason", type: "text", maxlength: MOST_TEXT, autocomplete: "off" });
    this.reasonRow = element("label", { part: "reason-row" }, this.reasonName, this.reason);
    const button = { type: "button", "aria-describedby": id };
    this.approve = element("button", { part: "approve", ...button });
    this.reject = element("button", { part: "reject", ...button });
    this.buttons = element("div", { part: "answers" }, this.approve, this.reject);
    this.answered = element("p", { part: "answered", role: "status" });
    this.approve.addEventListener("click", () => this.#answer("approve"));
    this.reject.addEventListener("click", () => this.#answer("reject"));
    return [this.carried.node, this.reasonRow, this.buttons, this.answered];
  }

  /** The question became another one under the reader's fingers: what was typed stays, and nothing is hit by chance. */
  #follow(before) {
    this.reason.value = before.reason.value;
    this.carried.follow(before.carried);
    this.#lookUntil = performance.now() + LOOK_MS;
    this.#said = (language) => label("refusal_differs", language);
  }

  /** What is longer than its box must be within reach of the keyboard. */
  #letScroll() {
    const { scrollHeight, clientHeight, scrollWidth, clientWidth } = this.details;
    mark(this.details, { tabindex: scrollHeight > clientHeight || scrollWidth > clientWidth ? 0 : null });
  }

  /**
   * @param {import("./rows.js").Interaction} row
   * @param {{view: import("./view.js").RunView, readonly: boolean}} where
   */
  draw(row, { view, readonly }) {
    const { language } = view;
    this.language = language;
    this.#readonly = readonly;
    write(this.title, questionText({ ...row, expires_at: null }, language));
    write(this.exactly, label(explanation(row), language));
    write(this.where, placeText(row, view));
    drawUntil(this.until, row, language);
    this.#drawControls(row);
  }

  #drawControls(row) {
    const { language } = this;
    const expired = row.expires_at !== null && Date.parse(row.expires_at) <= Date.now();
    const [off, pending] = [this.#readonly || expired, this.#pending ? "true" : null];
    write(this.reasonName, label("answer_reason", language));
    this.carried.draw({ language, off: off || !isApprovable(row), pending: this.#pending });
    write(this.approve, label(this.carried.edited ? "approve_edited" : "approve", language));
    write(this.reject, label("reject", language));
    mark(this.reasonRow, { hidden: off });
    mark(this.buttons, { hidden: off });
    mark(this.reason, { readonly: this.#pending });
    mark(this.approve, { hidden: !isApprovable(row) || !this.carried.choosable, "aria-disabled": pending });
    mark(this.reject, { "aria-disabled": pending });
    write(this.answered, expired ? questionText({ ...row, decision: "expired" }, language) : this.#said(language));
  }

  /** Sends an answer. One that was taken is not given again: what comes of it is said by the run's log. */
  async #answer(decision) {
    if (this.#pending || performance.now() < this.#lookUntil) return;
    this.#say(true, (language) => `${label(decision, language)}: ${label("answer_sent", language)}`);
    const { interaction_id, digest } = this.row;
    const reason = this.reason.value || undefined;
    const given = { decision, reason, digest: digest ?? undefined, ...this.carried.given(decision) };
    try {
      const taken = await this.send(interaction_id, given);
      const became = taken?.continued_as === null ? "answer_kept" : "answer_taken";
      this.#say(true, (language) => `${label(decision, language)}: ${label(became, language)}`);
    } catch (error) {
      this.#say(false, (language) => refusalText(error, language));
    }
  }

  #say(pending, said) {
    this.#pending = pending;
    this.#said = said;
    this.#drawControls(this.row);
  }
}

function explanation(row) {
  if (row.details !== null) return "exactly";
  return isApprovable(row) ? "not_shown_allowed" : "not_shown";
}

function placeText({ tool, call_id }, { language, agent, run_id }) {
  return [
    label("in_tool", language, { name: tool }),
    ...(call_id === null ? [] : [label("in_call", language, { call_id })]),
    ...(agent === null ? [] : [label("in_agent", language, { name: agent })]),
    label("in_run", language, { run_id }),
  ].join(" · ");
}

/** Until when, as a clock beside the reader shows it; what is no time is shown as it is. */
function drawUntil(node, { expires_at }, language) {
  const moment = new Date(expires_at ?? NaN);
  const known = !Number.isNaN(moment.getTime());
  const local = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
  const when = known ? local.format(moment) : expires_at;
  mark(node, { datetime: known ? moment.toISOString() : null });
  writeOrHide(node, when === null ? null : label("expires", language, { when }));
}
