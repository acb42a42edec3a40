/** Where a run stands: the facts a status is derived from, and the derivation; see `agents_progress/standing.py`. */

import { SNAPSHOT } from "./protocol.js";
import { rowsOf } from "./rows.js";

const standing = rowsOf(SNAPSHOT.properties.standing);

/** Facts about one run. `issues` and `closed` are a reader's own; the others come from envelopes. */
export class Standing {
  /** @param {object} [facts] of a snapshot */
  constructor(facts = {}) {
    Object.assign(this, standing(facts));
    this.open_interactions = [...(facts.open_interactions ?? [])];
  }

  /** Whether a `run.ended` or `run.lost` was seen. */
  get ended() {
    return this.outcome !== null || this.lost !== null;
  }

  /** The first line of the derivation table that holds. */
  get status() {
    return DERIVATION.find(([holds]) => holds(this))?.[1] ?? "running";
  }

  /** Takes in one accepted envelope; a note is none. */
  observe(type, payload) {
    UPDATES[type]?.(this, payload);
    if (type !== "run.accepted") this.moved = true;
  }
}

/** First match wins; a view that saw nothing is running. */
export const DERIVATION = [
  [(s) => s.issues, "unknown"],
  [(s) => s.outcome === "cancelled", "cancelled"],
  [(s) => s.outcome === "failed", "failed"],
  [(s) => s.outcome === "incomplete", "incomplete"],
  [(s) => s.outcome === "paused", "waiting"],
  [(s) => s.outcome === "succeeded" && s.unsupported, "unknown"],
  [(s) => s.outcome === "succeeded" && s.verdict === null, "checking"],
  [(s) => s.outcome === "succeeded" && s.verdict === true, "done"],
  [(s) => s.outcome === "succeeded", "rejected"],
  [(s) => s.lost !== null || s.closed, "unknown"],
  [(s) => s.open_interactions.length > 0, "waiting"],
  [(s) => s.cancel_requested, "cancelling"],
  [(s) => s.moved, "running"],
  [(s) => s.accepted, "accepted"],
];

const set = (name, value) => (facts) => { facts[name] = value; };
const copy = (name, source) => (facts, payload) => { facts[name] = payload[source]; };

/** What an envelope type changes; every type that is not here changes nothing but `moved`. */
export const UPDATES = {
  "run.accepted": set("accepted", true),
  "run.started": set("moved", true),
  "cancel.requested": set("cancel_requested", true),
  "approval.wait": (facts, payload) => { facts.open_interactions.push(payload.interaction_id); },
  "approval.resolved": (facts, payload) => {
    const place = facts.open_interactions.indexOf(payload.interaction_id);
    if (place !== -1) facts.open_interactions.splice(place, 1);
  },
  "adapter.unsupported": set("unsupported", true),
  "run.ended": copy("outcome", "outcome"),
  "run.lost": copy("lost", "reason"),
  "app.checked": copy("verdict", "ok"),
};
