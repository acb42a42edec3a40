// The client against a server made of answers. Each scenario is a sentence; prints {sentence: null or what went wrong}.

import assert from "node:assert/strict";

import {
  BadSnapshot, Refused, answer, cancel, connect, pause, start,
} from "../../agents_progress/server/page/client.js";
import { RunView } from "../../agents_progress/server/page/view.js";
import {
  BYE, CHECKED, RUN, SUCCEEDED, URL_OF_RUN, clock, dice, envelope, frame, frames, json, log, noMore, refusal, serverOf,
  snapshotFrame, stream,
} from "./fake.mjs";

const scenarios = new Map();
const scenario = (sentence, play) => scenarios.set(sentence, play);

function viewOf(steps) {
  const view = new RunView(RUN);
  steps.forEach((step) => view.feed(JSON.stringify(step)));
  return view;
}

/** A snapshot without what a reader counted for itself. */
function kept(view) {
  const { standing, plain, ...rest } = view.snapshot();
  return { ...rest, standing: { ...standing, closed: false }, plain: { ...plain, duplicates: 0 } };
}

const after = (steps, { cursor }) => steps.filter(({ seq }) => seq > Number(cursor ?? 0));

/** Follows a run at this server; gives what was seen. */
async function follow(server, options = {}) {
  const seen = { envelopes: [], views: [], links: [], clock: options.clock ?? clock(), requests: server.requests };
  const view = await connect(URL_OF_RUN, {
    fetch: server.fetch,
    onEnvelope: ({ seq }) => seen.envelopes.push(seq),
    onView: ({ seq, status }) => seen.views.push([seq, status]),
    onLink: (link) => seen.links.push(link),
    ...options,
    clock: seen.clock,
  });
  return { ...seen, view };
}

const refusedAs = (error, status, code) => error instanceof Refused && error.status === status && error.code === code;

const everySeq = (steps) => steps.map(({ seq }) => seq);

scenario("a connection that is cut at any byte is resumed after the newest envelope", async () => {
  const steps = log(2);
  const wire = new TextEncoder().encode(frames(steps));
  const right = kept(viewOf(steps));
  const ends = steps.map((step, place) => new TextEncoder().encode(frames(steps.slice(0, place + 1))).length);
  for (let cut = 0; cut <= wire.length; cut += 1) {
    const first = stream(wire.slice(0, cut), { then: cut % 2 ? "close" : "break", size: () => 40 + (cut % 50) });
    const rest = (request) => stream(frames(after(steps, request)), { size: () => 200 });
    const server = serverOf(first, rest, noMore());
    const { view, envelopes, requests } = await follow(server);
    assert.deepEqual(kept(view), right, `cut at ${cut}`);
    assert.deepEqual(envelopes, everySeq(steps));
    assert.equal(view.duplicates, 0);
    const whole = ends.filter((end) => end <= cut).length;
    if (whole < steps.length) assert.equal(Number(requests[1].cursor), whole);
  }
});

scenario("a truncated connection is never an end", async () => {
  const steps = log(3, []);
  for (const then of ["close", "break"]) {
    const server = serverOf(stream(frames(steps), { then }), stream("", { then }), new TypeError("network"), noMore());
    const { view, views, requests } = await follow(server);
    assert.deepEqual(views.slice(0, -1).map(([, status]) => status).filter((status) => status !== "running"), []);
    assert.deepEqual([view.status, requests.length], ["unknown", 4]); // only 204 says that there is no more
    assert.deepEqual(requests.map(({ cursor }) => cursor), [null, "4", "4", "4"]);
  }
});

scenario("after 204 there is no further request", async () => {
  const server = serverOf(noMore());
  const { view, clock: { waited } } = await follow(server);
  assert.deepEqual([server.requests.length, waited, view.status], [1, [], "unknown"]);
});

scenario("after an ending that nothing can follow there is no further request", async () => {
  const lost = log(2, [["run.lost", { reason: "lease_expired" }]]);
  const paused = log(2, [["run.ended", { outcome: "paused", final_output: null }]]);
  for (const steps of [log(), lost, paused, log(2, [SUCCEEDED, CHECKED])]) {
    for (const then of ["close", "break"]) {
      const { requests, view, clock: { waited } } = await follow(serverOf(stream(frames(steps), { then })));
      assert.deepEqual([requests.length, waited, view.seq], [1, [], steps.length]);
    }
  }
});

scenario("a view that has seen the end asks for nothing", async () => {
  const { view, requests, views } = await follow(serverOf(), { view: viewOf(log()) });
  assert.deepEqual([view.status, requests.length, views.length], ["failed", 0, 1]);
});

scenario("a success without a verdict is asked for once more, because its verdict may come", async () => {
  const steps = log(2, [SUCCEEDED]);
  const late = { ...envelope(5, ...CHECKED) };
  const first = await follow(serverOf(stream(frames(steps)), stream(frame(late))));
  assert.deepEqual([first.view.status, first.requests.length], ["done", 2]);
  const second = await follow(serverOf(stream(frames(steps)), noMore()));
  assert.deepEqual([second.view.status, second.requests.length], ["checking", 2]);
});

scenario("the end of a followed log is no open spinner: without an ending the status is unknown", async () => {
  const { view, views } = await follow(serverOf(stream(frames(log(1, []))), noMore()));
  assert.deepEqual([view.status, views.at(-1)], ["unknown", [2, "unknown"]]);
});

scenario("an envelope that comes again is folded and given once", async () => {
  const steps = log();
  const server = serverOf(stream(frames([...steps.slice(0, 3), ...steps.slice(0, 3), ...steps])));
  const { view, envelopes } = await follow(server);
  assert.deepEqual([view.duplicates, view.issues], [6, []]);
  assert.deepEqual(envelopes, everySeq(steps));
  assert.deepEqual(kept(view), kept(viewOf(steps)));
});

scenario("a gap is shown as unknown until a snapshot heals it", async () => {
  const steps = log(6);
  const holed = stream(frames([steps[0], steps[2]]), { then: "stay" });
  const server = serverOf(
    holed, json(viewOf(steps.slice(0, 5)).snapshot()), (request) => stream(frames(after(steps, request))),
  );
  const { view, views, requests, envelopes, links } = await follow(server);
  assert.match(String(links[1].error), /missing/);
  assert.deepEqual(requests.map(({ url, cursor }) => [url, cursor]), [
    [`${URL_OF_RUN}/events`, null], [`${URL_OF_RUN}/snapshot`, null], [`${URL_OF_RUN}/events`, "5"],
  ]);
  assert.deepEqual(kept(view), kept(viewOf(steps)));
  const shown = views.map(([, status]) => status).filter((status, place, all) => status !== all[place - 1]);
  assert.deepEqual(shown, ["running", "unknown", "running", "failed"]);
  assert.deepEqual(envelopes, [1, 3, 6, 7, 8]);
});

scenario("a damaged envelope is healed, too", async () => {
  const steps = log();
  const unknown = frame({ ...steps[1], type: "brand.new" });
  for (const bad of ["data: {\n\n", 'data: {"protocol":"agents-progress/2"}\n\n', unknown]) {
    const server = serverOf(
      stream(frame(steps[0]) + bad), json(viewOf(steps.slice(0, 2)).snapshot()),
      (request) => stream(frames(after(steps, request))),
    );
    assert.deepEqual(kept((await follow(server)).view), kept(viewOf(steps)));
  }
});

scenario("an issue of the journal itself is asked about once and stays", async () => {
  const steps = log(3);
  steps[2] = envelope(3, "brand.new", {});
  const server = serverOf(
    stream(frames(steps.slice(0, 4))), json(viewOf(steps.slice(0, 4)).snapshot()),
    (request) => stream(frames(after(steps, request))),
  );
  const { view, requests } = await follow(server);
  assert.deepEqual([view.status, view.issues.length > 0, requests.length], ["unknown", true, 3]);
});

scenario("a server that leaves holes again and again is asked ever more slowly", async () => {
  const steps = log(40, []);
  let at = 0;
  const server = serverOf({ always: ({ url }) => {
    if (url.endsWith("/snapshot")) return json(viewOf(steps.slice(0, at + 1)).snapshot());
    at += 2;
    return at > 30 ? noMore() : stream(frames([steps[at]]));
  } });
  const { clock: { waited } } = await follow(server);
  assert.deepEqual(waited.slice(0, 6), [2000, 4000, 8000, 15000, 15000, 15000]);
});

scenario("a snapshot frame replaces the view", async () => {
  const steps = log(6);
  const wire = snapshotFrame(viewOf(steps.slice(0, 5)).snapshot()) + frames(steps.slice(5));
  const { view, views, envelopes } = await follow(serverOf(stream(wire)));
  assert.deepEqual(kept(view), kept(viewOf(steps)));
  assert.deepEqual([views[0], envelopes], [[5, "running"], [6, 7, 8]]);
});

scenario("a snapshot that is older than a sound view takes nothing back", async () => {
  const steps = log(6);
  const late = snapshotFrame(viewOf(steps.slice(0, 2)).snapshot());
  const { view, views } = await follow(serverOf(stream(frames(steps.slice(0, 6)) + late + frames(steps.slice(6)))));
  assert.deepEqual(kept(view), kept(viewOf(steps)));
  assert.deepEqual(views.map(([seq]) => seq), views.map(([seq]) => seq).sort((one, other) => one - other));
});

scenario("where nobody wants the envelopes the snapshot is asked for first, and only at the beginning", async () => {
  const steps = log(6);
  const first = snapshotFrame(viewOf(steps.slice(0, 5)).snapshot());
  const server = serverOf(stream(first), (request) => stream(frames(after(steps, request))));
  const { view, requests } = await follow(server, { onEnvelope: undefined });
  assert.deepEqual(requests.map(({ url, cursor }) => [url.replace(URL_OF_RUN, ""), cursor]), [
    ["/events?snapshot=1", null], ["/events", "5"],
  ]);
  assert.deepEqual(kept(view), kept(viewOf(steps)));
});

scenario("a view that was kept goes on after its own end", async () => {
  const steps = log(6);
  const server = serverOf((request) => stream(frames(after(steps, request))));
  const { view, requests } = await follow(server, { view: RunView.fromSnapshot(viewOf(steps.slice(0, 3)).snapshot()) });
  assert.deepEqual([requests[0].cursor, view.seq], ["3", 8]);
  assert.deepEqual(kept(view), kept(viewOf(steps)));
});

scenario("a snapshot of a newer server, or of another run, is no view to go on with", async () => {
  const snapshot = viewOf(log()).snapshot();
  for (const wrong of [{ ...snapshot, version: 2 }, { ...snapshot, run_id: "run-B" }]) {
    const server = serverOf(stream(snapshotFrame(wrong)));
    await assert.rejects(follow(server), BadSnapshot);
    assert.equal(server.requests.length, 1);
  }
});

scenario("bye comes back after the time the server named, and counts as no failure", async () => {
  const steps = log();
  const server = serverOf(
    stream(frames(steps.slice(0, 2)) + BYE, { then: "stay" }), stream(BYE), stream(BYE),
    (request) => stream(frames(after(steps, request))),
  );
  const { view, requests, clock: { waited } } = await follow(server);
  assert.deepEqual(waited, [4000, 4000, 4000]);
  assert.deepEqual([requests.map(({ cursor }) => cursor), view.status], [[null, "2", "2", "2"], "failed"]);
});

scenario("a connection that gives nothing is tried ever more slowly, one that gives something soon again", async () => {
  const steps = log();
  const no = () => new TypeError("network");
  const server = serverOf(
    no(), no(), no(), no(), no(), stream(frames(steps.slice(0, 2)), { then: "break" }),
    no(), (request) => stream(frames(after(steps, request))),
  );
  const { clock: { waited }, links } = await follow(server);
  assert.deepEqual(waited, [2000, 4000, 8000, 15000, 15000, 1000, 2000]);
  assert.deepEqual(links.map(({ open }) => open), [false, false, false, false, false, true, false, false, true]);
  assert.match(String(links[0].error), /network/);
});

scenario("a connection that lived long and had nothing to say is no failure", async () => {
  let now = 0;
  const quiet = () => stream(": still here\n\n");
  const times = clock();
  times.now = () => (now += 20_000);
  const { clock: { waited } } = await follow(serverOf(quiet(), quiet(), quiet(), noMore()), { clock: times });
  assert.deepEqual(waited, [1000, 1000, 1000]);
});

scenario("pauses are spread, keep to what a server asks for, and are never none or endless", () => {
  const least = () => 0;
  assert.deepEqual([pause(0, 1000, least), pause(0, 1000, () => 0.5), pause(2, 1000, () => 0.5)], [1000, 1500, 6000]);
  assert.deepEqual([pause(9, 1000, least), pause(2000, 1000, least), pause(3, 40_000, least)], [15000, 15000, 40000]);
  assert.deepEqual([pause(0, 0, least), pause(3, 0, least)], [100, 800]);
  assert.ok(pause(5, 10 ** 15 - 1, () => 0.999) < 2 ** 31);
});

scenario("a server that is away for now is asked again when it says", async () => {
  const steps = log();
  const passing = [[503, "draining"], [429, "too_many_readers"], [500, "internal"], [502, "x"], [504, "x"], [408, "x"]];
  for (const [status, code] of passing) {
    const away = refusal(status, code, {}, { "retry-after": "5" });
    const { links, clock: { waited } } = await follow(serverOf(away, stream(frames(steps))));
    assert.deepEqual([waited, links[0].error.status, links[0].error.code], [[10_000], status, code]);
  }
  const dated = { status: 502, headers: { "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" } };
  const page = new Response("<h1>Bad gateway</h1>", dated);
  assert.deepEqual((await follow(serverOf(page, stream(frames(steps))))).clock.waited, [2000]);
});

scenario("a refusal for good ends it with one request", async () => {
  const final = [[400, "cursor_ahead"], [401, "unauthenticated"], [403, "forbidden"], [404, "not_found"]];
  for (const [status, code] of final) {
    const server = serverOf(refusal(status, code));
    await assert.rejects(follow(server), (error) => refusedAs(error, status, code));
    assert.equal(server.requests.length, 1);
  }
});

scenario("an address that gives pages is no feed", async () => {
  const server = serverOf(new Response("<h1>Sign in</h1>", { headers: { "content-type": "text/html" } }));
  await assert.rejects(follow(server), (error) => refusedAs(error, 200, "no_event_stream"));
});

scenario("an erased run is refused", async () => {
  const server = serverOf(stream(`${frames(log(1, []))}event: erased\ndata: {}\n\n`));
  await assert.rejects(follow(server), (error) => refusedAs(error, 410, "erased"));
});

scenario("bytes that are not UTF-8 break the connection and change nothing", async () => {
  const steps = log();
  const bad = new Uint8Array([...new TextEncoder().encode(frames(steps.slice(0, 2))), 0x64, 0xff, 0x0a, 0x0a]);
  const server = serverOf(stream(bad), (request) => stream(frames(after(steps, request))));
  const { view } = await follow(server);
  assert.deepEqual(kept(view), kept(viewOf(steps)));
});

scenario("frames with other names are passed over", async () => {
  const steps = log();
  const other = 'event: later\ndata: {"a": 1}\n\nevent: __proto__\ndata: x\n\nevent: constructor\ndata:\n\n: ping\n\n';
  const { view } = await follow(serverOf(stream(other + frames(steps) + other)));
  assert.deepEqual([view.issues, view.seq], [[], steps.length]);
});

scenario("a connection that falls silent is left for another one", async () => {
  const steps = log();
  const silent = stream(frames(steps.slice(0, 2)), { then: "stay" });
  const mute = ({ signal }) => new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });
  const server = serverOf(silent, mute, (request) => stream(frames(after(steps, request))));
  const { view, links } = await follow(server, { silence_ms: 30 });
  assert.match(String(links[1].error), /nothing was heard for 30 ms/);
  assert.deepEqual([view.status, server.requests.length], ["failed", 3]);
});

scenario("a token stands in a header of every request and in no address, and may be fresh each time", async () => {
  const steps = log();
  let number = 0;
  const token = async () => `secret-${(number += 1)}`;
  const holed = stream(frames([steps[0], steps[2]]));
  const server = serverOf(holed, json(viewOf(steps).snapshot()), noMore(), json({}), json({}));
  await follow(server, { token });
  await cancel(URL_OF_RUN, { token, fetch: server.fetch });
  await start("http://runs.test/runs", {}, { token: "plain", fetch: server.fetch });
  const given = server.requests.map((request) => request.headers.get("authorization"));
  assert.deepEqual(given, [...[1, 2, 3, 4].map((at) => `Bearer secret-${at}`), "Bearer plain"]);
  assert.ok(server.requests.every(({ url }) => !/secret|plain/.test(url)));
  assert.ok(server.requests.every(({ cache }) => cache === "no-store"));
});

scenario("who leaves leaves at once, and that says nothing of the run", async () => {
  const reason = new Error("left");
  const steps = log(3, []);
  for (const when of ["reading", "before it waits", "waiting"]) {
    const leaving = new AbortController();
    const leave = () => leaving.abort(reason);
    const views = [];
    const server = serverOf(stream(frames(steps), { then: when === "reading" ? "stay" : "break" }));
    const following = follow(server, {
      signal: leaving.signal,
      clock: { random: () => 1000 }, // a thousand times longer than this test may take
      onLink: ({ open }) => (open ? null : when === "waiting" ? setTimeout(leave) : leave()),
      onView: ({ seq, status }) => {
        views.push(status);
        if (seq === steps.length && when === "reading") leave();
      },
    });
    await assert.rejects(following, reason);
    assert.deepEqual([server.requests.length, new Set(views)], [1, new Set(["running"])]);
  }
  const server = serverOf();
  await assert.rejects(follow(server, { signal: AbortSignal.abort(reason) }), reason);
  assert.equal(server.requests.length, 0);
});

scenario("what a callback throws is printed and changes nothing", async () => {
  const steps = log();
  const printed = [];
  const { error } = console;
  console.error = (...words) => printed.push(words);
  const broken = () => { throw new Error("[/typ]"); };
  try {
    const callbacks = { onView: broken, onEnvelope: broken, onLink: broken };
    const { view } = await follow(serverOf(stream(frames(steps))), callbacks);
    assert.deepEqual(kept(view), kept(viewOf(steps)));
  } finally {
    console.error = error;
  }
  assert.ok(printed.length > steps.length);
});

scenario("a run is started, cancelled and answered with JSON", async () => {
  const server = serverOf(json({ run_id: "r" }, 201), json({ answer: "accepted" }, 202), json({}, 202), json({}, 202));
  const { fetch } = server;
  const run = { function: "f", arguments: { a: 1 } };
  assert.deepEqual(await start("/runs", run, { fetch, key: "once" }), { run_id: "r" });
  assert.deepEqual(await cancel("/runs/r", { fetch, mode: "after_turn" }), { answer: "accepted" });
  await answer("/runs/r", "ask-1/é", { decision: "reject", reason: "no" }, { fetch });
  await cancel("/runs/r", { fetch });
  const asked = server.requests.map(({ method, url, body, headers }) =>
    [method, url, body, headers.get("content-type")]);
  assert.deepEqual(asked, [
    ["POST", "/runs", '{"function":"f","arguments":{"a":1}}', "application/json"],
    ["POST", "/runs/r/cancel", '{"mode":"after_turn"}', "application/json"],
    ["POST", "/runs/r/interactions/ask-1%2F%C3%A9", '{"decision":"reject","reason":"no"}', "application/json"],
    ["POST", "/runs/r/cancel", "{}", "application/json"],
  ]);
  const keys = server.requests.map(({ headers }) => headers.get("idempotency-key"));
  assert.deepEqual(keys, ["once", null, null, null]);
});

scenario("a refused answer says who was first", async () => {
  const server = serverOf(refusal(409, "already_answered", { decision: "approved", actor: "mei" }));
  await assert.rejects(answer("/runs/r", "ask-1", { decision: "approve" }, { fetch: server.fetch }), (error) => {
    assert.deepEqual(error.more, { decision: "approved", actor: "mei" });
    return refusedAs(error, 409, "already_answered");
  });
});

scenario("whatever a network does, every reader ends with the same view", async () => {
  const steps = log(60, [SUCCEEDED, CHECKED]);
  const whole = kept(viewOf(steps));
  for (let seed = 1; seed <= 100; seed += 1) {
    const roll = dice(seed);
    const size = () => 1 + roll(200);
    const snapshot = (least) => viewOf(steps.slice(0, Math.max(least, 1 + roll(steps.length)))).snapshot();
    const server = serverOf({ always: ({ url, cursor }) => {
      const from = Number(cursor ?? 0);
      if (roll(6) === 0) return [new TypeError("network"), refusal(503, "draining"), refusal(429, "x")][roll(3)];
      if (url.endsWith("/snapshot")) return json(snapshot(1));
      if (from === steps.length && roll(3) > 0) return noMore();
      const given = steps.slice(Math.max(0, from - roll(4)), from + roll(30));
      if (roll(4) === 0) given.splice(roll(given.length + 1), 1);
      const before = roll(5) === 0 ? snapshotFrame(snapshot(from || 1)) : "";
      const wire = new TextEncoder().encode(before + frames(given) + (roll(5) === 0 ? BYE : ""));
      const cut = roll(2) === 0 ? wire.length : roll(wire.length + 1);
      return stream(wire.slice(0, cut), { then: ["close", "break"][roll(2)], size });
    } });
    const { view } = await follow(server);
    assert.deepEqual(kept(view), whole, `seed ${seed}`);
  }
});

scenario("nothing goes on once a run was followed", () => {
  assert.deepEqual(process.getActiveResourcesInfo().filter((kind) => kind === "Timeout"), []);
});

const results = {};
for (const [sentence, play] of scenarios) {
  results[sentence] = await Promise.resolve().then(play).then(() => null, (error) => String(error?.stack ?? error));
}
console.log(JSON.stringify(results));
