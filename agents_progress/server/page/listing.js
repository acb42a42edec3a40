/**
 * What the list of runs says, without any document: a place of the page, what it asks the server for, and the texts of
 * each row. A time is the server's: what passed since its answer is all that is measured here.
 */

import { MESSAGES } from "./protocol.js";
import { ageText, clean, costText, label, tokensText } from "./texts.js";

/** What may be asked of a list, in the hash of the page as in the query of `GET /runs`. */
const ASKED = ["status", "before", "limit"];
const RUN_ID = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}$/;
/** Says that something is not known. */
export const UNKNOWN = "–";
/** Statuses in which silence says something. */
const GOING_ON = ["accepted", "running", "waiting", "cancelling", "checking"];

/**
 * @typedef {"en" | "zh"} Language
 * @typedef {{run_id: string | null} | {query: URLSearchParams}} Place one run (null: of no possible id), or a list
 */

/**
 * Where a hash leads: `#/RUN_ID` to one run, `#?status=failed` to a part of the list.
 *
 * @param {string} hash
 * @returns {Place}
 */
export function placeOf(hash) {
  const text = hash.replace(/^#/, "");
  if (text.startsWith("/")) return { run_id: RUN_ID.test(text.slice(1)) ? text.slice(1) : null };
  const given = new URLSearchParams(text);
  return { query: new URLSearchParams(ASKED.filter((name) => given.get(name)).map((name) => [name, given.get(name)])) };
}

/** The hash of a list with something else asked; null asks for nothing. @param {URLSearchParams} query */
export function hashOf(query, changes = {}) {
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) changed.set(name, value);
    else changed.delete(name);
  }
  return changed.size === 0 ? "#" : `#?${changed}`;
}

/** Rows as they are listed: a run that was continued is left out where the run that continues it is here. */
export function folded(rows) {
  const here = new Set(rows.map(({ run_id }) => run_id));
  return rows.filter(({ continued_as }) => !here.has(continued_as));
}

/**
 * The texts of a row, all of them harmless. `run_id` is that of the run to look at: the newest one of the task.
 *
 * @param {Record<string, any>} row of the server
 * @param {Language} language
 * @param {number} since_s seconds since the server gave it
 */
export function rowTexts(row, language, since_s) {
  const continued = row.continued_as ?? null;
  const silent_s = typeof row.last_event_age === "number" ? row.last_event_age + since_s : null;
  const waits = continued === null && silent_s !== null && GOING_ON.includes(row.status);
  return {
    run_id: continued ?? row.run_id,
    name: clean(row.run_id),
    title: clean(row.title || row.run_id),
    ...(continued === null ? standing(row, language) : passedOn(continued, language)),
    activity: row.activity ? clean(row.activity) : UNKNOWN,
    started: clean(row.started_at),
    age: ago(age(row, silent_s), language),
    silent: waits ? label("silent", language, { age: ageText(silent_s, language) }) : "",
    tokens: tokensText(row.usage, language) ?? UNKNOWN,
    cost: costText(row.cost, language) ?? UNKNOWN,
  };
}

/** A status and its words; what a newer server calls a status is none that this page knows. */
function standing({ status, message }, language) {
  const known = Object.hasOwn(MESSAGES, status);
  return known ? { status, sentence: MESSAGES[status][language] } : { status: "unknown", sentence: clean(message) };
}

const passedOn = (run_id, language) => ({
  status: "continued",
  sentence: label("continued_as", language, { run_id }),
});

/** Seconds since the run began: up to the last event by its owner's clock, from then on by the store's. */
function age({ started_at, updated_at }, silent_s) {
  const until_last_ms = Date.parse(updated_at) - Date.parse(started_at);
  return silent_s === null || Number.isNaN(until_last_ms) ? null : Math.max(until_last_ms, 0) / 1000 + silent_s;
}

const ago = (seconds, language) =>
  seconds === null ? UNKNOWN : label("ago", language, { age: ageText(seconds, language) });
