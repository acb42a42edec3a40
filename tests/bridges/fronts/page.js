// What every page of a front end has: where it is told what to show, and what it keeps over a reload.

import { answered, truthful } from "/page/bridge.js";
import { States } from "./states.js";

const query = new URLSearchParams(location.search);
export const conversation = query.get("conversation");
const [api, truth] = [query.get("api"), query.get("truth") === "1"];

export const states = new States();

// The front end under the page's address; it goes on with what is kept.
export function begun(opened, changed) {
  const kept = JSON.parse(sessionStorage.getItem(conversation));
  // A bare `fetch` may not lose its window.
  const plain = (...request) => fetch(...request);
  const ours = truth ? { fetch: truthful(plain), answered } : { fetch: plain };
  const front = opened({ api, conversation, ...ours, kept, changed });
  if (kept !== null) void front.resume();
  return front;
}

export function did(front, { send, answer, cancel }) {
  if (send !== undefined) {
    states.send();
    void front.send(send);
  }
  if (answer !== undefined) void front.answer(...answer);
  if (cancel) {
    const headers = { "content-type": "application/json" };
    void fetch(`${api}/${encodeURIComponent(conversation)}/cancel`, { method: "POST", headers, body: "{}" });
  }
  sessionStorage.setItem(conversation, JSON.stringify(front.kept()));
}

// What stands on the page, and the states it showed since it was last asked.
globalThis.read = () => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const words = (selector) => document.querySelector(selector)?.textContent ?? "";
  return {
    state: words("#state"),
    says: words("#says"),
    texts: all(".text").map((each) => each.textContent),
    tools: all(".tool").map((each) => [each.dataset.call, each.textContent]),
    asked: all(".asked").length,
    sentence: words("#sentence") || null,
    states: states.taken(),
  };
};
