// What only JavaScript can hand to a view: every value that is no JSON, and snapshots of a wrong form.

import assert from "node:assert/strict";

import { parseEnvelope } from "../../agents_progress/server/page/events.js";
import { BadSnapshot, RunView } from "../../agents_progress/server/page/view.js";

const fields = (payload, more = {}) => ({
  protocol: "agents-progress/1", event_id: "run-A:1", run_id: "run-A", seq: 1, type: "note.a",
  occurred_at: "2026-10-07T08:00:01Z", payload, ...more,
});

const circular = {};
circular.self = circular;
let deep = {};
for (let n = 0; n < 50_000; n += 1) deep = { deep };
const hostile = new Proxy({}, { ownKeys() { throw new Error("no"); } });

function refused(source) {
  const view = new RunView("run-A");
  view.feed(source);
  view.snapshot();
  assert.deepEqual([view.status, view.issues], ["unknown", ["bad_envelope"]]);
}

const noJson = [
  undefined, NaN, Infinity, 1n, Symbol("s"), () => {}, new Date(0), new Map([["a", 1]]), new Set(), /a/, Object("text"),
  "\ud800", circular, deep, hostile, new Uint8Array([0x7b, 0x7d]), { toJSON: () => fields({}) },
];
for (const value of noJson) [value, fields(value), fields({ a: value }), fields({ a: [value] })].forEach(refused);

const noEnvelope = [
  null, 1, "text", [], {}, fields(null), fields([]), fields({}, { seq: 1.5 }), fields({}, { extra: 1 }),
  new Uint8Array([0xff]), "", "NaN", "x".repeat(17 * 1024 * 1024), "9".repeat(200_000),
  "[".repeat(1_000_000), '{"a":'.repeat(100_000),
];
noEnvelope.forEach(refused);

// An envelope is what was parsed, and nothing that looks like it.
const envelope = parseEnvelope(fields({ a: 1 }));
const twice = new RunView("run-A");
[envelope, envelope, { ...envelope }, JSON.stringify(envelope)].forEach((source) => twice.feed(source));
assert.deepEqual([twice.duplicates, twice.issues], [3, []]);

// Snapshots.
function next(view, type, payload) {
  const seq = view.seq + 1;
  view.feed(fields(payload, { type, seq, event_id: `run-A:${seq}` }));
}

const good = () => {
  const view = new RunView("run-A");
  next(view, "text.delta", { item_id: "m", index: 0, text: "a" });
  next(view, "tool.requested", { call_id: "c", name: "n", kind: "function" });
  next(view, "approval.wait", { interaction_id: "i", call_id: null, tool: "t", title: "T" });
  assert.deepEqual(view.issues, []);
  return view.snapshot();
};
assert.deepEqual(RunView.fromSnapshot(good()).snapshot(), good());
assert.deepEqual(RunView.fromSnapshot(new TextEncoder().encode(JSON.stringify(good()))).snapshot(), good());
assert.deepEqual(RunView.fromSnapshot({ ...good(), later: 1 }).snapshot(), good());
const wrong = [
  undefined, null, 3, [], "", "{", "null",
  { ...good(), version: 99 }, { ...good(), rows: 3 }, { ...good(), rows: ["x"] },
  { ...good(), seq: "1" }, { ...good(), seq: 1.5 }, JSON.stringify(good()).replace('"seq":3', '"seq":3.0'),
  { ...good(), issues: { other: 1 } }, { ...good(), recent: [["a", 1]] }, { ...good(), recent: [["a", 1, "f", 1]] },
  ...Object.keys(good()).map((name) => ({ ...good(), [name]: undefined })),
  ...Object.keys(good().plain).map((name) => ({ ...good(), plain: { ...good().plain, [name]: true } })),
];
for (const snapshot of wrong) assert.throws(() => RunView.fromSnapshot(snapshot), BadSnapshot);

// A snapshot that was kept does not change when the view goes on.
const view = RunView.fromSnapshot(good());
const kept = view.snapshot();
const before = JSON.stringify(kept);
for (const [type, payload] of [
  ["artifact.created", { artifact_id: "a", name: "n", media_type: "text/plain", bytes: 1 }],
  ["handoff.requested", { from_agent: "A", to_agent: "B" }],
  ["tool.started", { call_id: "c" }],
  ["approval.resolved", { interaction_id: "i", decision: "approved" }],
  ["text.delta", { item_id: "m", index: 1, text: "b" }],
]) next(view, type, payload);
assert.deepEqual([view.issues, view.seq], [[], 8]);
assert.equal(JSON.stringify(kept), before);

console.log("refused what should be");
