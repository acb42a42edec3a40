/** Single requests about a run: what may be asked of it, and how a server refuses. A token travels in a header only. */

import { Numeral, read } from "./json.js";

/** The server refused: `status` and `code` say why, `more` what else it said, `retry_after_ms` when to ask again. */
export class Refused extends Error {
  constructor(status, { code = "refused", message, ...more } = {}, retry_after_ms = 0) {
    super(message ?? `the server answered ${status}`);
    this.status = status;
    this.code = code;
    this.more = more;
    this.retry_after_ms = retry_after_ms;
  }
}

/**
 * As whom to ask, and by which means.
 *
 * @typedef {{token?: string | (() => string | Promise<string>), fetch?: typeof globalThis.fetch,
 *   signal?: AbortSignal}} Way
 */

/**
 * Makes a request. Throws {@link Refused}, or what `fetch` throws. That nothing has changed is an answer.
 *
 * @param {string} url
 * @param {Way & RequestInit} way
 * @returns {Promise<Response>}
 */
export async function ask(url, { token, fetch = globalThis.fetch, headers, ...request }) {
  const bearer = typeof token === "function" ? await token() : token;
  const authorization = bearer ? { authorization: `Bearer ${bearer}` } : {};
  const response = await fetch(url, { cache: "no-store", ...request, headers: { ...headers, ...authorization } });
  if (response.ok || response.status === 304) return response;
  const said = await response.json().catch(() => null); // a proxy answers with a page
  const seconds = Number(response.headers.get("retry-after") ?? 0);
  throw new Refused(response.status, said?.error, Number.isFinite(seconds) ? 1000 * seconds : 0);
}

async function post(url, body, { headers, ...way }) {
  const typed = { ...headers, "content-type": "application/json" };
  return (await ask(url, { ...way, method: "POST", body, headers: typed })).json();
}

/**
 * Starts a run. With a `key` of the caller's own, asking again after a lost answer starts no second one.
 *
 * @param {string} url of the runs: `/runs`
 * @param {{function?: string, arguments?: object, task_id?: string, labels?: object, title?: string}} run
 * @param {Way & {key?: string}} [way]
 * @returns {Promise<Record<string, any>>} the row of the run
 */
export function start(url, run, { key, ...way } = {}) {
  return post(url, JSON.stringify(run), { ...way, headers: key === undefined ? {} : { "idempotency-key": key } });
}

/**
 * Asks the owner of a run to stop it. The end is confirmed by the feed and by nothing else.
 *
 * @param {string} url of the run: `/runs/RUN_ID`
 * @param {Way & {mode?: "immediate" | "after_turn"}} [way]
 * @returns {Promise<{answer: "accepted" | "already_cancelling" | "already_ended"}>}
 */
export function cancel(url, { mode, ...way } = {}) {
  return post(`${url}/cancel`, JSON.stringify({ mode }), way);
}

/**
 * An answer. `arguments` are approved in the place of those that were asked about: the text of one JSON object, because
 * a tool gets the numbers that were typed, and a value would have rounded some of them.
 *
 * @typedef {{decision: "approve" | "reject", reason?: string, digest?: string, text?: string,
 *   arguments?: string}} Given
 */

/**
 * Answers a question of a run, once for all who could. One that has a digest wants it back: proof of what was seen.
 *
 * @param {string} url of the run: `/runs/RUN_ID`
 * @param {string} interaction_id
 * @param {Given} given
 * @param {Way} [way]
 * @returns {Promise<{answer: "accepted", continued_as: string | null}>}
 */
export async function answer(url, interaction_id, given, way = {}) {
  const { decision, reason, digest, text } = given;
  const fields = JSON.stringify({ decision, reason, digest, text });
  const edited = given.arguments === undefined ? "" : `,"arguments":${objectText(given.arguments)}`;
  const body = `${fields.slice(0, -1)}${edited}}`;
  return post(`${url}/interactions/${encodeURIComponent(interaction_id)}`, body, way);
}

/** The text of one JSON object; what a server would not take as one is refused here as it would be there. */
function objectText(text) {
  let value = null;
  try {
    ({ value } = read(text.trim()));
  } catch {
    value = null;
  }
  if (value === null || typeof value !== "object" || Array.isArray(value) || value instanceof Numeral) {
    throw new Refused(422, { code: "arguments_not_object" });
  }
  return text;
}
