/**
 * One step of the fold per event type: what an envelope changes in a view, and which steps contradict what was said
 * before; see `agents_progress/fold.py`. A step throws {@link Contradiction} before it changes anything.
 */

import { OPEN_STATES } from "./protocol.js";
import { Message, activity, interaction, isOpen, isTool } from "./rows.js";
import { sha256 } from "./sha256.js";

/** The envelope contradicts what the run said before. */
export class Contradiction extends Error {}

function must(holds) {
  if (!holds) throw new Contradiction();
}

/** Facts of the standing, or facts nobody shows. */
const nothing = () => {};
const keep = (name) => (view, { payload }) => { view[name] = payload; };
const appendTo = (name) => (view, { payload }) => { view[name].push(payload); };

// Runs and agents.

function runStarted(view, { payload }) {
  must(view.agent === null);
  view.agent = payload.agent;
  nameRun(view, payload);
}

function runAccepted(view, { payload }) {
  must(!view.standing.moved && !view.standing.accepted);
  nameRun(view, payload);
}

function nameRun(view, payload) {
  view.task_id = payload.task_id;
  view.title = payload.title ?? view.title;
}

function runEnded(view, { payload }) {
  if (payload.outcome === "succeeded") {
    must(!view.standing.cancel_requested);
    must(view.standing.open_interactions.length === 0);
    must(!view.activities.some((row) => isOpen(row) && isTool(row)));
  }
  view.terminal = payload;
}

function appChecked(view, { payload }) {
  must(view.standing.outcome === "succeeded" && view.terminal !== null);
  const output = view.terminal.final_output;
  must(output !== null && sha256(output) === payload.digest);
  view.verdict = payload;
}

// Responses of the model, and their text.

function modelStarted(view, { seq }) {
  view.responses.push(seq);
}

function message(view, { item_id, channel = "answer" }) {
  const key = `${channel}:${item_id}`;
  const found = view.texts.get(key) ?? new Message({ item_id, channel });
  view.texts.set(key, found);
  return found;
}

function textDelta(view, { payload, seq }) {
  const found = message(view, payload);
  const expected = payload.index === found.deltas;
  found.begin(seq);
  if (!expected) {
    found.missing_start ||= found.deltas === 0;
    found.deltas = payload.index;
  }
  found.append(payload.text);
  must(expected);
}

function textCompleted(view, { payload, seq }) {
  const found = message(view, payload);
  if (payload.text) found.begin(seq);
  if ("text" in payload) found.replace(payload.text);
  found.complete = true;
}

// Tools.

/** The tool row an envelope speaks of, which must be in one of these states. */
function toolRow(view, { payload }, states = OPEN_STATES) {
  const row = view.rows.get(payload.call_id);
  must(row !== undefined && states.includes(row.state) && isTool(row));
  return row;
}

function toolRequested(view, { payload, seq, occurred_at }) {
  const { call_id, kind, name, title = name } = payload;
  must(!view.rows.has(call_id) && !call_id.includes(":"));
  const since = occurred_at;
  const row = { activity_id: call_id, kind, name, title, seq, since, arguments: payload.arguments ?? null };
  view.rows.set(call_id, activity(row));
}

function toolStarted(view, envelope) {
  Object.assign(toolRow(view, envelope, ["requested"]), { state: "running", since: envelope.occurred_at });
}

function toolArgumentsDelta(view, envelope) {
  const row = toolRow(view, envelope);
  must(envelope.payload.index === row.argument_deltas);
  row.argument_deltas += 1;
}

function toolArgumentsCompleted(view, envelope) {
  toolRow(view, envelope).arguments = envelope.payload.arguments;
}

function toolProgress(view, envelope) {
  const { message, current, total } = envelope.payload;
  Object.assign(toolRow(view, envelope), { message, current, total });
}

const toolSettled = (state) => (view, envelope) => {
  const { payload } = envelope;
  Object.assign(toolRow(view, envelope), {
    state,
    note: payload.reason ?? payload.code ?? null,
    summary: payload.summary ?? payload.message ?? null,
    duration_ms: payload.duration_ms ?? null,
    output: payload.output ?? null,
    reused: payload.reused ?? false,
  });
};

// Handoffs, stages, interactions.

function handoffRequested(view, { payload, seq, occurred_at }) {
  const activity_id = `handoff:${view.handoffs.length + 1}`; // no call id holds a colon
  const { from_agent, to_agent: name } = payload;
  const title = `${from_agent} → ${name}`;
  view.handoffs.push(activity_id);
  const row = { activity_id, kind: "handoff", name, title, state: "running", seq, since: occurred_at };
  view.rows.set(activity_id, activity(row));
}

function handoffCompleted(view, envelope) {
  const { from_agent, to_agent: name } = envelope.payload;
  const waiting = () => view.handoffs.map((activity_id) => view.rows.get(activity_id)).filter(isOpen);
  if (waiting().length === 0) handoffRequested(view, envelope);
  const row = waiting().find((candidate) => candidate.name === name) ?? waiting().at(-1);
  Object.assign(row, { state: "returned", name, title: `${from_agent} → ${name}` });
}

function stageStarted(view, { payload, seq, occurred_at }) {
  const activity_id = `stage:${payload.stage_id}`;
  const { title } = payload;
  must(!view.rows.has(activity_id));
  const row = { activity_id, kind: "stage", name: title, title, state: "running", seq, since: occurred_at };
  view.rows.set(activity_id, activity(row));
}

function stageCompleted(view, { payload }) {
  const row = view.rows.get(`stage:${payload.stage_id}`);
  must(row !== undefined && isOpen(row));
  row.state = "returned";
}

const textOf = (value) => (typeof value === "string" ? value : null);

/** The arguments that a call may be approved with; null for what is no such list. */
function namesOf(value) {
  const fits = value !== null && typeof value === "object" && !Array.isArray(value)
    && Object.values(value).every((needed) => typeof needed === "boolean");
  return fits ? value : null;
}

/** What a question may say in its `x`, and how each is read: what does not fit is as good as absent. */
const MORE = {
  approve_blind: (value) => value === true,
  takes: namesOf,
  options_in: textOf,
  edited_from: textOf,
};

function approvalWait(view, { payload, seq }) {
  must(!view.interactions.has(payload.interaction_id));
  const more = Object.entries(MORE).filter(([name]) => name in (payload.x ?? {}));
  const read = Object.fromEntries(more.map(([name, reading]) => [name, reading(payload.x[name])]));
  view.interactions.set(payload.interaction_id, interaction({ ...payload, ...read, seq }));
}

function approvalResolved(view, { payload }) {
  const row = view.interactions.get(payload.interaction_id);
  must(row !== undefined && row.decision === null);
  const edited_from = textOf(payload.x?.edited_from) || row.edited_from;
  Object.assign(row, { decision: payload.decision, actor: payload.actor ?? null, edited_from });
}

/** The whole of it. */
export const FOLDS = {
  "run.accepted": runAccepted,
  "run.started": runStarted,
  "agent.changed": (view, { payload }) => { view.agent = payload.agent; },
  "model.started": modelStarted,
  "model.completed": nothing,
  "model.incomplete": nothing,
  "model.failed": nothing,
  "text.delta": textDelta,
  "text.completed": textCompleted,
  "tool.requested": toolRequested,
  "tool.arguments.delta": toolArgumentsDelta,
  "tool.arguments.completed": toolArgumentsCompleted,
  "tool.started": toolStarted,
  "tool.progress": toolProgress,
  "tool.finished": toolSettled("returned"),
  "tool.failed": toolSettled("failed"),
  "tool.rejected": toolSettled("rejected"),
  "tool.skipped": toolSettled("skipped"),
  "handoff.requested": handoffRequested,
  "handoff.completed": handoffCompleted,
  "approval.wait": approvalWait,
  "approval.resolved": approvalResolved,
  "guardrail.tripped": appendTo("guardrails"),
  "stage.started": stageStarted,
  "stage.completed": stageCompleted,
  "source.cited": appendTo("sources"),
  "artifact.created": appendTo("artifacts"),
  "usage.updated": keep("usage"),
  "cancel.requested": nothing,
  "adapter.unsupported": nothing,
  "run.ended": runEnded,
  "run.lost": keep("terminal"),
  "app.checked": appChecked,
};
