/**
 * What a page says of a view, as `agents_progress/render.py` decides it: strings and rows, without any document.
 *
 * Every foreign text that is given is made harmless here: what a screen could obey, or nobody could see, is an escape.
 */

import { Numeral, read } from "./json.js";
import { Refused } from "./requests.js";
import { isOpen, isTool } from "./rows.js";
import { BadSnapshot } from "./view.js";
import {
  AGE_LABELS, ANSWER_LABELS, COUNTABLE, DECISION_LABELS, DEEPEST, DID_SOMETHING, ESCAPES, KEPT, LABELS, NOTE_LABELS,
  REFUSAL_LABELS, TEXTS, TO_BE_CHECKED, UNSAFE,
} from "./words.js";

/**
 * @typedef {import("./view.js").RunView} RunView
 * @typedef {import("./rows.js").Activity} Activity
 * @typedef {import("./rows.js").Interaction} Interaction
 * @typedef {"en" | "zh"} Language
 */

// Foreign text.

const point = (code) => `\\u{${code.toString(16)}}`;
const UNSAFE_SET = UNSAFE.map(([first, last]) => `${point(first)}-${point(last)}`).join("");
const UNSAFE_CHARACTER = new RegExp(`[${UNSAFE_SET}]`, "gu");
const UNSAFE_IN_LINES = new RegExp(`(?![\\n\\t])[${UNSAFE_SET}]`, "gu");

function escaped(character) {
  const code = character.codePointAt(0);
  if (character in ESCAPES) return ESCAPES[character];
  if (code > 0xffff) return `\\U${code.toString(16).padStart(8, "0")}`;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/**
 * A text as it may be shown in one row: every control, line end, bidirectional or unseen character as an escape.
 *
 * @param {unknown} text
 */
export const clean = (text) => String(text).replace(UNSAFE_CHARACTER, escaped);

/**
 * A text as it may be shown in lines: line feeds and tabs stay, and every other line end is a line feed.
 *
 * @param {string} text
 */
export const cleanLines = (text) => text.replace(/\r\n?/g, "\n").replace(UNSAFE_IN_LINES, escaped);

/**
 * What to add where `cleanLines(before)` is shown, so that `cleanLines(text)` is: null where it does not go on from it.
 *
 * @param {string} before
 * @param {string} text
 */
export function moreLines(before, text) {
  if (!text.startsWith(before)) return null;
  const begun = before.endsWith("\r") && text[before.length] === "\n";
  return cleanLines(text.slice(before.length + (begun ? 1 : 0)));
}

/** A foreign number, as far as it is worth writing out. */
function number(value) {
  if (!(Math.abs(value) < COUNTABLE)) return "…";
  if (Number.isInteger(value)) return String(value);
  // Halves of a hundredth go to the even one, as in Python.
  return Math.abs(value * 8) % 4 === 1 ? value.toFixed(3).slice(0, -1) : value.toFixed(2);
}

// Words.

const put = (name, language, values) =>
  LABELS[name][language].replace(/\{(\w+)\}/g, (_, place) => String(values[place]));

/**
 * A label with its values put in.
 *
 * @param {keyof typeof LABELS} name
 * @param {Language} language
 * @param {Record<string, unknown>} [values]
 */
export const label = (name, language, values = {}) => clean(put(name, language, values));

/** How many steps, of those that are folded. @param {number} count @param {Language} language */
export const stepsText = (count, language) => label(count === 1 ? "step" : "steps", language, { count });

/** How long something has lasted. @param {number} seconds @param {Language} language */
export function ageText(seconds, language) {
  const whole = Math.max(Math.trunc(seconds), 0);
  const [unit, name] = AGE_LABELS.find(([length]) => length <= whole) ?? AGE_LABELS.at(-1);
  return label(name, language, { count: Math.floor(whole / unit) });
}

/** Why nothing came of a request. @param {unknown} error that it threw @param {Language} language */
export function refusalText(error, language) {
  if (error instanceof BadSnapshot) return label("page_outdated", language);
  if (!(error instanceof Refused)) return label("not_reached", language);
  const { code, more } = error;
  const names = Array.isArray(more.names) ? more.names.join(", ") : "";
  return label(Object.hasOwn(REFUSAL_LABELS, code) ? REFUSAL_LABELS[code] : "refusal_other", language, { code, names });
}

// A run.

/** What the run is called, and the agent that works now. @param {RunView} view */
export function titleText({ title, run_id, agent }) {
  const name = title || run_id;
  return clean(agent === null ? name : `${name} · ${agent}`);
}

/** What is known about how the run ended, beside the sentence of its status. @param {RunView} view */
export function endingTexts(view) {
  const { language, guardrails, issues } = view;
  const names = effects(view);
  return [
    ...fromTerminal(view.terminal ?? {}, language),
    ...(view.status === "done" || view.status === "rejected" ? fromVerdict(view.verdict ?? {}, language) : []),
    ...guardrails.map((tripped) => label("guardrail", language, tripped)),
    ...(issues.length > 0 ? [label("issues", language, { codes: issues.join(", ") })] : []),
    ...(names.length > 0 ? [label("effects", language, { names: names.join(", ") })] : []),
  ];
}

function* fromTerminal(terminal, language) {
  if ("error" in terminal) yield label("error", language, terminal.error);
  if ("reason" in terminal) yield label("reason", language, terminal);
  if (terminal.outcome === "cancelled") {
    const name = terminal.requested_by;
    yield name ? label("cancel_by", language, { name }) : label("cancel_by_nobody", language);
  }
  if (terminal.completed_anyway) yield label("completed_anyway", language);
}

function* fromVerdict(verdict, language) {
  if ("check" in verdict) yield label("check", language, { name: verdict.check });
  if ("reason" in verdict) yield label("check_reason", language, verdict);
}

/** Tools that may have changed something in a run whose task is not finished. */
function effects({ status, standing, activities, language }) {
  if (!TO_BE_CHECKED.includes(status) || !(standing.ended || standing.closed)) return [];
  const acted = activities.filter((row) => isTool(row) && row.state in DID_SOMETHING);
  return acted.map(({ title, state, note }) => `${title} (${codeText(note, language) ?? stood(state, language)})`);
}

const stood = (state, language) => put(DID_SOMETHING[state], language, {});

// Questions.

/**
 * Questions that can be answered: those of a run that waits, and never those of a run that is over.
 *
 * @param {RunView} view
 */
export function openQuestions({ status, interactions }) {
  return status === "waiting" ? [...interactions.values()].filter(({ decision }) => decision === null) : [];
}

/** A question to a person, or what became of it. @param {Interaction} row @param {Language} language */
export function questionText({ decision, title, tool, expires_at: when, edited_from, actor }, language) {
  const text = label(decision === null ? "question" : DECISION_LABELS[decision], language, { title, tool });
  if (decision === null) return when === null ? text : `${text} · ${label("expires", language, { when })}`;
  if (edited_from === null) return text;
  return `${text} · ${label(actor === null ? "edited" : "edited_by", language, { name: actor })}`;
}

/**
 * Whether a question may be approved here: what exactly is asked is seen, or the application lets it be unseen.
 *
 * @param {Interaction} row
 */
export const isApprovable = ({ details, approve_blind }) => details !== null || approve_blind;

/**
 * What an approval of a question does with a text: it is refused, optional, required, or an option that is offered.
 *
 * @param {Interaction} row
 * @returns {"refused" | "optional" | "required" | "option"}
 */
export const textWanted = ({ kind }) => (Object.hasOwn(TEXTS, kind) ? TEXTS[kind] : "refused");

/**
 * The options of a choice, in their order and as an answer names them: the texts and whole numbers that the argument
 * of its call lists. None where it lists none.
 *
 * @param {Interaction} row
 * @returns {string[]}
 */
export function optionsOf({ details, options_in }) {
  let listed = null;
  try {
    listed = read(details ?? "").value[options_in ?? ""];
  } catch {
    return []; // what was cut is no JSON any more
  }
  return Array.isArray(listed) ? listed.map(optionText).filter((each) => each !== null) : [];
}

function optionText(value) {
  if (typeof value === "string") return value;
  if (value instanceof Numeral) return value.whole ? value.literal : null;
  return Number.isInteger(value) ? String(value) : null;
}

/** Whether somebody may approve other arguments here than those that are asked about, which are seen then. */
export const isEditable = ({ details, takes }) => details !== null && takes !== null;

// Work.

/**
 * The rows that are open, those that never fold, and those that fold into "n steps"; each in order of appearance.
 *
 * @param {RunView} view
 * @returns {{open: Activity[], kept: Activity[], folded: Activity[]}}
 */
export function work({ activities }) {
  const ended = activities.filter((row) => !isOpen(row));
  return {
    open: activities.filter(isOpen),
    kept: ended.filter(({ state }) => KEPT.includes(state)),
    folded: ended.filter(({ state }) => !KEPT.includes(state)),
  };
}

/** How deep a row is nested, as far as that is shown. @param {Activity} row */
export const depth = ({ activity_id }) => Math.min(activity_id.split("/").length - 1, DEEPEST);

/**
 * One row of visible work: its state in words, then what it says itself.
 *
 * @param {Activity} row
 * @param {Language} language
 */
export function activityText(row, language) {
  const ended = [duration(row.duration_ms), codeText(row.note, language) ?? row.note, row.summary];
  const said = isOpen(row) ? [counts(row), row.message] : ended;
  const reused = row.reused ? put("reused", language, {}) : "";
  return clean([`${put(row.state, language, {})}: ${row.title}`, reused, ...said].filter(Boolean).join(" · "));
}

/** The code of a row in words, where there are any. */
const codeText = (note, language) => Object.hasOwn(NOTE_LABELS, note) ? put(NOTE_LABELS[note], language, {}) : null;

function counts({ current, total }) {
  if (current === null) return "";
  return total === null ? number(current) : `${number(current)}/${number(total)}`;
}

function duration(milliseconds) {
  if (milliseconds === null) return "";
  return milliseconds < 1000 ? `${milliseconds} ms` : `${number(Math.min(milliseconds, 1e18) / 1000)} s`;
}

// What was found and made.

/** Files, by name. @param {RunView} view */
export const artifactTexts = ({ artifacts, language }) =>
  artifacts.map((item) => label("artifact", language, { ...item, size: number(item.bytes) }));

/**
 * Sources, and where one leads: only what a browser opens as a page, and names no user, which reads as another host.
 *
 * @param {RunView} view
 * @returns {{text: string, url: string | null}[]}
 */
export const sources = ({ sources: found, language }) =>
  found.map(({ title, url, kind }) => ({
    text: label("source", language, { title: [title, url].filter(Boolean).join(" ") || kind }),
    url: url ? linked(url) : null,
  }));

function linked(text) {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "" ? url.href : null;
}

// What it took.

const COUNTS = new Intl.NumberFormat("en");
/** At most four decimals, rounded up, as Python gives a cost. */
const AMOUNTS = new Intl.NumberFormat("en", {
  minimumFractionDigits: 4, maximumFractionDigits: 4, roundingMode: "ceil", useGrouping: false,
});

const counted = (amount, language, whole) => (whole ? amount : label("at_least", language, { amount }));

/**
 * How many tokens; null where that is not known.
 *
 * @param {Record<string, any> | null} usage
 * @param {Language} language
 */
export function tokensText(usage, language) {
  const tokens = usage?.total_tokens;
  if (typeof tokens !== "number") return null;
  return counted(tokens < COUNTABLE ? COUNTS.format(tokens) : "…", language, usage.status === "reported");
}

/**
 * What they cost; null where that is not known.
 *
 * @param {Record<string, any> | null} cost
 * @param {Language} language
 */
export function costText(cost, language) {
  if (!cost || !Number.isFinite(Number(cost.amount))) return null;
  return counted(clean(`${AMOUNTS.format(cost.amount)} ${cost.currency}`), language, !cost.at_least);
}

/** The tokens that the run took so far, and what they cost, as far as either is known. @param {RunView} view */
export function usageTexts({ usage, cost, language }) {
  const known = [["tokens_used", tokensText(usage, language)], ["costs", costText(cost, language)]];
  return known.filter(([, amount]) => amount !== null).map(([name, amount]) => label(name, language, { amount }));
}

/**
 * The newest answer under a name that says how much it is worth; null where there is nothing of it.
 *
 * `text` may be long and grows often, so it is not made harmless yet: show it by {@link cleanLines} and
 * {@link moreLines}. `missingStart` is a label, or null; `partial`, whether the run left it unfinished.
 *
 * @param {RunView} view
 * @returns {{label: string, text: string, missingStart: string | null, partial: boolean} | null}
 */
export function answerOf(view) {
  const { language, terminal, status } = view;
  const newest = view.messages.findLast(({ channel }) => channel === "answer");
  const output = terminal?.final_output ?? null;
  const text = output ?? newest?.text ?? "";
  if (text === "" && output === null) return null;
  const unfinished = output === null && newest !== undefined;
  const cutOff = (unfinished && !newest.complete) || Boolean(terminal?.partial);
  const partial = ANSWER_LABELS[status] === "answer_unconfirmed" && cutOff;
  return {
    label: label(partial ? "answer_partial" : ANSWER_LABELS[status], language),
    text: text || label("answer_empty", language),
    missingStart: unfinished && newest.missing_start ? label("beginning_missing", language) : null,
    partial,
  };
}
