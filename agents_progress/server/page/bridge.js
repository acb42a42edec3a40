/**
 * A `fetch` for front ends of other protocols (AG-UI, the AI SDK), so that what they read ends truthfully.
 *
 * Their clients take the end of a connection for the end of a run, and a frame that comes twice for two. Every frame of
 * a bridge has an id, `{run_id}:{seq}.{n}` or `{run_id}:{seq}+{n}`, and the last one is followed by the comment `over`;
 * the header `x-cursor` says where a stream begins. So one that breaks off is gone on with after its last frame, a
 * repeated frame is left out, and what cannot be gone on with ends as an error. This module stands alone, in browsers
 * and in Node.
 */

const OVER = ": over";
const BYE = ": bye";
const PLACE = /^([A-Za-z0-9._-]{1,64}):(\d{1,15})[.+](\d{1,9})$/;
const LAST_MS = 8000;

/** The stream broke off and could not be gone on with: how the run stands is not known here. */
export class BrokenOff extends Error {}

/**
 * Wraps a `fetch`. What is no stream of a bridge passes through as it is. A POST is given an `Idempotency-Key`, so that
 * it starts one run however often whatever lies below sends it.
 *
 * @param {typeof globalThis.fetch} [fetch]
 * @param {{tries?: number, quiet_ms?: number, wait?: (ms: number, signal: AbortSignal) => Promise<void>}} [how]
 *   how often a stream that broke off is asked for again in a row, after how much silence it counts as broken off (the
 *   server sends something every 15 seconds), and how the time between is waited for
 * @returns {typeof globalThis.fetch}
 */
export function truthful(fetch = (...request) => globalThis.fetch(...request), how = {}) {
  return async (input, init) => {
    const response = await fetch(input, keyed(input, init));
    const place = response.headers.get("content-location");
    const streams = response.headers.get("content-type")?.startsWith("text/event-stream");
    if (!response.ok || !streams || place === null || response.body === null) return response;
    const { status, statusText, headers } = response;
    const again = { ...requestFrom(input, init, place, response.url), cursor: placeOf(headers.get("x-cursor")) };
    return new Response(whole(response.body, fetch, again, how), { status, statusText, headers });
  };
}

/**
 * The code and the sentence of a refusal, out of the error that a client of either protocol made of it.
 *
 * @param {unknown} error
 * @returns {{code: string, message: string} | null}
 */
export function refusalIn(error) {
  const text = String(error?.message ?? error);
  try {
    const { code, message } = JSON.parse(text.slice(text.indexOf("{"))).error;
    return typeof code === "string" && typeof message === "string" ? { code, message } : null;
  } catch {
    return null;
  }
}

/**
 * Whether every question of the last message that can be answered in a chat of the AI SDK is: when to send it by
 * itself. The rules of the SDK go by the calls of the last step alone, and send a message whose run is over.
 *
 * @param {{messages: {role: string, parts: object[]}[]}} chat
 * @returns {boolean}
 */
export function answered({ messages }) {
  const { role, parts = [] } = messages.at(-1) ?? {};
  const open = parts.filter(({ type, data }) => type === "data-question" && data.decision === null && data.approvable);
  return role === "assistant" && open.length > 0 && open.every(({ data }) => parts.some((part) => answers(part, data)));
}

/** Whether a part of a message holds the answer to an open question. */
function answers(part, { question_id, call_id, text }) {
  if (text !== "required" && text !== "option") {
    return part.state === "approval-responded" && part.approval?.id === question_id;
  }
  return part.toolCallId === call_id && (part.state === "output-available" || part.state === "output-error");
}

/** The settings of a request, with a key of its own where it is a POST without one. */
function keyed(input, init) {
  const asked = input instanceof Request ? input : null;
  const headers = new Headers(init?.headers ?? asked?.headers);
  if ((init?.method ?? asked?.method)?.toUpperCase() !== "POST" || headers.has("idempotency-key")) return init;
  const random = crypto.getRandomValues(new Uint8Array(16)); // pages without TLS have no `randomUUID`
  headers.set("idempotency-key", Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join(""));
  return { ...init, headers };
}

/** The request that goes on with a stream, given the one that began it. */
function requestFrom(input, init, place, answered) {
  const asked = input instanceof Request ? input : null;
  const headers = new Headers(init?.headers ?? asked?.headers);
  for (const name of ["content-type", "content-length", "last-event-id", "idempotency-key"]) headers.delete(name);
  const base = answered || new URL(asked?.url ?? String(input), globalThis.location?.href).href;
  const credentials = init?.credentials ?? asked?.credentials;
  const signal = init?.signal ?? asked?.signal ?? null;
  return { url: new URL(place, base).href, headers, signal, ...(credentials === undefined ? {} : { credentials }) };
}

/** All frames of a stream, each once, however often it has to be asked for. */
function whole(first, fetch, { url, headers, signal, cursor, ...settings }, how) {
  const { tries = 8, quiet_ms = 45_000, wait = asleep } = how;
  const leaving = new AbortController();
  const leave = () => leaving.abort(signal?.reason);
  if (signal?.aborted) leave();
  signal?.addEventListener("abort", leave, { once: true });
  let failed = 0;

  async function* frames() {
    for (let body = first; ; body = await asked()) {
      try {
        for await (const block of blocks(body, quiet_ms, leaving.signal)) {
          if (block === OVER) return;
          if (block === BYE) break;
          failed = 0;
          const at = placeOf(/^id: (.+)$/m.exec(block)?.[1]);
          if (at !== null && !follows(at, cursor)) continue;
          cursor = at ?? cursor;
          yield `${block}\n\n`;
        }
      } catch {
        // The connection broke, or its bytes were changed on their way.
      }
      leaving.signal.throwIfAborted();
    }
  }

  /** The rest of the stream. */
  async function asked() {
    while (failed < tries) {
      await wait(Math.min(250 * 2 ** failed, LAST_MS) * (0.5 + Math.random() / 2), leaving.signal);
      failed += 1;
      leaving.signal.throwIfAborted();
      const after = cursor === null ? {} : { "last-event-id": cursor.id };
      const request = { ...settings, cache: "no-store", signal: leaving.signal };
      request.headers = new Headers([...headers, ...Object.entries(after)]);
      const response = await fetch(url, request).catch(() => null);
      if (response?.status === 200 && response.body !== null) return response.body;
      leaving.signal.throwIfAborted();
      if (response !== null && response.status < 500 && response.status !== 429) break;
      await response?.body?.cancel();
    }
    throw new BrokenOff("the connection broke off before the end of the run; look at it again to see how it stands");
  }

  return streamOf(frames(), () => {
    signal?.removeEventListener("abort", leave);
    leaving.abort();
  });
}

/** A stream of bytes out of texts. `left` is called when nobody reads it any more, or it is over. */
function streamOf(texts, left) {
  const utf8 = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await texts.next();
        if (!done) return controller.enqueue(utf8.encode(value));
        left();
        controller.close();
      } catch (error) {
        left();
        controller.error(error);
      }
    },
    cancel: left,
  });
}

/** The blocks of an event stream as the bridges write it: LF alone ends a line. What has no end is dropped. */
async function* blocks(body, quiet_ms, signal) {
  const reader = body.getReader();
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  const leave = () => reader.cancel().catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  try {
    let rest = "";
    for (;;) {
      const quiet = setTimeout(leave, quiet_ms);
      const { done, value } = await reader.read().finally(() => clearTimeout(quiet));
      if (done) return;
      const [...found] = (rest + utf8.decode(value, { stream: true })).split("\n\n");
      rest = found.pop();
      yield* found;
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

/** Where a frame stands in the stream of its run, by its id; null for one without a place. */
function placeOf(id) {
  const found = PLACE.exec(id ?? "");
  return found && { id, run_id: found[1], seq: Number(found[2]), n: Number(found[3]) };
}

/** Whether a frame comes after what was had. */
function follows(at, had) {
  if (had === null || at.run_id !== had.run_id) return true;
  return at.seq > had.seq || (at.seq === had.seq && at.n > had.n);
}

function asleep(ms, signal) {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    signal.addEventListener("abort", over, { once: true });
  });
}
