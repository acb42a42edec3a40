// A task followed in tabs that come and go. Each scenario is a sentence; prints {sentence: null or what went wrong}.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";

import { BadSnapshot, Refused } from "../../agents_progress/server/page/client.js";
import { FEEDS } from "../../agents_progress/server/page/tab.js";
import { followTask } from "../../agents_progress/server/page/task.js";
import { BYE, CHECKED, SUCCEEDED, dice, frames, json, refusal, stream } from "./fake.mjs";
import { FAILED, Locks, PAUSED, Server, Time, kept, settled, tabOf, url, viewOf, words } from "./stage.mjs";

const scenarios = new Map();
const scenario = (sentence, play) => scenarios.set(sentence, play);

/** Whoever still follows when a scenario is over. */
const following = [];

/** A server, its time and one tab. */
function stage(more = {}) {
  const server = new Server();
  const time = new Time();
  return { server, time, tab: tabOf({ server, time, ...more }) };
}

/** Follows a run in a tab; what is seen of it is written down. */
function follow(tab, run_id, options = {}) {
  const seen = { views: [], links: [], places: [], view: null, end: undefined, leaving: new AbortController() };
  following.push(seen.leaving);
  followTask(run_id.startsWith("http") ? run_id : url(run_id), {
    tab,
    signal: seen.leaving.signal,
    onView: (view, place) => {
      seen.view = view;
      seen.views.push([place.run_id, view.seq, view.status]);
      seen.places.push(place);
    },
    onLink: (link) => seen.links.push(link),
    ...options,
  }).then((view) => { seen.end = view.status; }, (error) => { seen.end = error; });
  return seen;
}

const listeners = ({ page, network }) =>
  getEventListeners(page, "visibilitychange").length + getEventListeners(network, "online").length;

const opens = ({ links }) => links.map(({ open }) => open);
const times = (count, value) => Array.from({ length: count }, () => value);

// In one tab.

scenario("whoever follows the same run shares one feed, and is told the same", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...words(0, 2));
  const all = [follow(tab, "A"), follow(tab, "A"), follow(tab, "A")];
  await time.pass(10);
  server.say("A", ...words(2, 4), ...FAILED);
  server.seal("A");
  await time.pass(60_000);
  assert.deepEqual(server.asked, ["A/events"]);
  for (const { views, end } of all) {
    assert.deepEqual(views, all[0].views);
    assert.deepEqual([views[0], views.at(-1), end], [["A", 3, "running"], ["A", 6, "failed"], "failed"]);
  }
  assert.deepEqual(all[0].views.filter(([, seq]) => seq === 6), times(2, ["A", 6, "failed"]));
  assert.deepEqual([time.waiting, listeners(tab)], [0, 0]);
});

scenario("whoever comes later is told at once what is known", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...words(0, 2));
  follow(tab, "A");
  await time.pass(10);
  const late = follow(tab, "A");
  assert.deepEqual([late.views, opens(late)], [[["A", 3, "running"]], [true]]);
  assert.equal(server.requests.length, 1);
});

scenario("another language or another token is followed on its own", async () => {
  const { server, time, tab } = stage();
  server.say("A");
  const en = follow(tab, "A", { token: "one" });
  const zh = follow(tab, "A", { token: "one", language: "zh" });
  follow(tab, "A", { token: () => "two" });
  await time.pass(10);
  assert.deepEqual([en.view.language, zh.view.language, server.open.size], ["en", "zh", 1]);
  const tokens = server.requests.map(({ headers }) => headers.get("authorization"));
  assert.deepEqual(tokens.sort(), ["Bearer one", "Bearer one", "Bearer two"]);
  assert.ok(server.requests.every(({ address }) => !/one|two/.test(address)));
});

scenario("a tab has one feed, and what else it follows is asked about every two seconds", async () => {
  const { server, time, tab } = stage();
  for (const name of ["A", "B", "C"]) server.say(name, ...words(0, 2));
  const [, second] = [follow(tab, "A"), follow(tab, "B"), follow(tab, "C")];
  await time.pass(1_000);
  server.say("B", ...words(2, 3));
  await time.pass(8_000);
  assert.deepEqual([server.most, server.open.size], [1, 1]);
  assert.deepEqual(server.asked.filter((asked) => asked.startsWith("B")), times(5, "B/snapshot"));
  const asked = server.requests.filter(({ run_id }) => run_id === "B");
  const tags = asked.map(({ headers }) => headers.get("if-none-match"));
  assert.deepEqual(tags, [null, '"3"', '"4"', '"4"', '"4"']);
  assert.deepEqual(second.views, [["B", 3, "running"], ["B", 4, "running"]]);
  assert.deepEqual(opens(second), [true]);
});

scenario("the feed of a run that ended goes to another one within two seconds", async () => {
  const { server, time, tab } = stage();
  server.say("A");
  server.say("B");
  const [first, second] = [follow(tab, "A"), follow(tab, "B")];
  await time.pass(500);
  server.say("A", ...FAILED);
  server.seal("A");
  await time.pass(2_000);
  assert.deepEqual([first.end, [...server.open].map(({ run_id }) => run_id)], ["failed", ["B"]]);
  server.say("B", ...words(0, 1));
  await settled();
  assert.deepEqual(second.views.at(-1), ["B", 2, "running"]);
  assert.equal(server.requests.at(-1).headers.get("last-event-id"), "1");
});

scenario("who leaves leaves alone, and with the last one the feed is closed", async () => {
  const { server, time, tab } = stage();
  server.say("A");
  const [one, other] = [follow(tab, "A"), follow(tab, "A")];
  await time.pass(10);
  const reason = new Error("left");
  one.leaving.abort(reason);
  await settled();
  assert.deepEqual([one.end, other.end, server.open.size], [reason, undefined, 1]);
  server.say("A", ...words(0, 1));
  await settled();
  assert.deepEqual([one.views.length, other.views.length], [1, 2]);
  other.leaving.abort(reason);
  await time.pass(60_000);
  assert.deepEqual([other.end, server.open.size, server.requests.length, time.waiting], [reason, 0, 1, 0]);
  assert.equal(listeners(tab), 0);
});

scenario("whoever comes right after the last one left has the feed at once", async () => {
  for (const next of ["A", "B"]) {
    const { server, time, tab } = stage();
    server.say("A");
    server.say("B");
    const first = follow(tab, "A");
    await time.pass(10);
    first.leaving.abort();
    follow(tab, next);
    await settled();
    assert.deepEqual([server.asked, server.open.size], [["A/events", `${next}/events`], 1]);
  }
});

scenario("who has left before asks for nothing", async () => {
  const { server, time, tab } = stage();
  const reason = new Error("left");
  await assert.rejects(followTask(url("A"), { tab, signal: AbortSignal.abort(reason) }), reason);
  await time.pass(10_000);
  assert.equal(server.requests.length, 0);
});

scenario("who leaves after its feed went to another one takes nothing away", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...PAUSED);
  server.seal("A");
  for (const name of ["B", "C"]) server.say(name);
  const first = follow(tab, "A");
  await time.pass(100);
  follow(tab, "B");
  follow(tab, "C");
  await settled();
  first.leaving.abort();
  await time.pass(10_000);
  assert.deepEqual([server.most, [...server.open].map(({ run_id }) => run_id)], [1, ["B"]]);
});

// In many tabs.

scenario("all tabs of a browser hold four feeds of a host, and the others ask", async () => {
  const server = new Server();
  const time = new Time();
  const locks = new Locks();
  const tabs = Array.from({ length: 6 }, () => tabOf({ server, time, locks }));
  server.say("A");
  const all = tabs.map((tab) => follow(tab, "A"));
  await time.pass(10_000);
  assert.deepEqual([FEEDS, server.most, server.open.size, locks.held.size], [4, 4, 4, 4]);
  server.say("A", ...words(0, 1));
  await time.pass(2_000);
  assert.deepEqual(all.map(({ views }) => views.at(-1)), times(6, ["A", 2, "running"]));
  tabs[0].show(false);
  all[1].leaving.abort();
  await time.pass(2_000);
  assert.deepEqual([server.most, server.open.size, locks.held.size], [4, 4, 4]);
  const before = server.requests.length;
  await time.pass(10_000);
  assert.equal(server.requests.length, before); // nobody has to ask any more
});

scenario("another host has feeds of its own", async () => {
  const server = new Server();
  const time = new Time();
  const locks = new Locks();
  server.say("A");
  for (let number = 0; number < 4; number += 1) follow(tabOf({ server, time, locks }), "A");
  await settled();
  follow(tabOf({ server, time, locks }), "http://other.test/runs/A");
  await settled();
  assert.deepEqual([server.open.size, locks.held.size], [5, 5]);
});

scenario("where a browser refuses its locks there is one feed a tab", async () => {
  const locks = { request: async () => { throw new DOMException("no", "SecurityError"); } };
  const { server, time, tab } = stage({ locks });
  server.say("A");
  server.say("B");
  follow(tab, "A");
  follow(tab, "B");
  await time.pass(4_000);
  assert.deepEqual([server.most, server.open.size], [1, 1]);
});

// Nobody looks.

scenario("a hidden tab holds no feed and asks nothing, and catches up when it is shown", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...words(0, 2));
  server.say("B");
  const [seen, other] = [follow(tab, "A"), follow(tab, "B")];
  await time.pass(100);
  tab.show(false);
  await settled();
  assert.equal(server.open.size, 0);
  server.say("A", ...words(2, 5));
  server.say("B", ...words(0, 5));
  const before = server.requests.length;
  await time.pass(3_600_000);
  assert.equal(server.requests.length, before);
  assert.deepEqual(opens(seen), [true]); // nothing was lost
  tab.show(true);
  await settled();
  assert.deepEqual([seen.views.at(-1), other.views.at(-1)], [["A", 6, "running"], ["B", 6, "running"]]);
  const known = server.requests.slice(before).map(({ run_id, headers }) =>
    [run_id, headers.get("last-event-id") ?? JSON.parse(headers.get("if-none-match"))]);
  assert.deepEqual(known.sort(), [["A", "3"], ["B", "1"]]);
  assert.equal(server.open.size, 1);
});

scenario("a page that is opened behind another one asks nothing until it is shown", async () => {
  const { server, time, tab } = stage({ hidden: true });
  server.say("A", ...FAILED);
  server.seal("A");
  const seen = follow(tab, "A");
  await time.pass(60_000);
  assert.equal(server.requests.length, 0);
  tab.show(true);
  await settled();
  assert.equal(seen.end, "failed");
});

scenario("a page that is hidden while it waits for a lock opens no feed", async () => {
  const { server, time, tab } = stage({ locks: new Locks() });
  server.say("A");
  follow(tab, "A");
  tab.show(false);
  await time.pass(10_000);
  assert.deepEqual([server.most, tab.locks.held.size], [0, 0]);
});

scenario("a view with a hole is not gone on from when the page is shown again", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...words(0, 4));
  const { steps } = server.runs.get("A");
  const holed = `data: ${JSON.stringify(steps[0])}\n\ndata: ${JSON.stringify(steps[2])}\n\n`;
  server.instead.set("A/events", (request) => stream(holed, { size: () => 9999 })(request));
  const seen = follow(tab, "A");
  await time.pass(100);
  assert.equal(seen.view.status, "unknown");
  tab.show(false);
  await settled();
  server.instead.clear();
  tab.show(true);
  await settled();
  assert.equal(server.requests.at(-1).headers.get("last-event-id"), null);
  assert.deepEqual(kept(seen.view), kept(viewOf(steps)));
});

// Over a pause.

scenario("a paused run is asked every two seconds for the run that goes on from it, and that is followed", async () => {
  const { server, time, tab } = stage();
  const run = server.say("A", ...PAUSED);
  server.seal("A");
  const seen = follow(tab, "A");
  await time.pass(7_000);
  assert.deepEqual(server.asked, ["A/events", "A", "A", "A", "A"]);
  assert.deepEqual([seen.views.at(-1), seen.end, server.open.size], [["A", 3, "waiting"], undefined, 0]);
  run.continued_as = "A.2";
  server.say("A.2", ...words(0, 1));
  await time.pass(2_000);
  assert.deepEqual(seen.views.at(-1), ["A.2", 2, "running"]);
  assert.deepEqual(seen.places.at(-1).url, url("A.2"));
  server.say("A.2", ...FAILED);
  server.seal("A.2");
  await time.pass(60_000);
  assert.deepEqual([seen.end, server.asked.slice(5)], ["failed", ["A", "A.2/events"]]);
});

scenario("a paused run is asked about more slowly while nobody looks, and at once when it is shown", async () => {
  const { server, time, tab } = stage();
  const run = server.say("A", ...PAUSED);
  server.seal("A");
  const seen = follow(tab, "A");
  await time.pass(1_000);
  tab.show(false);
  const before = server.requests.length;
  await time.pass(61_000);
  assert.equal(server.requests.length - before, 5);
  run.continued_as = "A.2";
  server.say("A.2");
  tab.show(true);
  await settled();
  assert.deepEqual(seen.views.at(-1), ["A.2", 1, "running"]);
});

scenario("a run that was continued long ago leads to the newest run of its task", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...PAUSED).continued_as = "A.3";
  server.say("A.3", ...FAILED);
  for (const name of ["A", "A.3"]) server.seal(name);
  const seen = follow(tab, "A");
  await time.pass(60_000);
  assert.deepEqual([server.asked, seen.end], [["A/events", "A", "A.3/events"], "failed"]);
});

scenario("who answered in this page goes on at once", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...PAUSED);
  server.seal("A");
  const [seen, other] = [follow(tab, "A"), follow(tab, "A")];
  await time.pass(500);
  const [place] = seen.places;
  place.goOn(null); // the server does not know yet
  place.goOn("A");
  await settled();
  assert.equal(server.requests.length, 2);
  server.say("A.2", ...words(0, 1));
  place.goOn("A.2");
  await settled();
  assert.deepEqual([seen.views.at(-1), other.views.at(-1)], times(2, ["A.2", 2, "running"]));
  place.goOn("A.9"); // said of a run that is over
  await time.pass(10_000);
  assert.deepEqual(server.asked, ["A/events", "A", "A.2/events"]);
});

scenario("who goes on while the run before is still read is told nothing more of that", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...words(0, 1));
  server.say("A.2", ...words(0, 3));
  const seen = follow(tab, "A", { onView: (view, { run_id, goOn }) => {
    seen.views.push([run_id, view.seq]);
    goOn("A.2");
  } });
  await settled();
  server.say("A", ...FAILED);
  await time.pass(10_000);
  assert.deepEqual(seen.views, [["A", 2], ["A.2", 4]]);
  assert.deepEqual([...server.open].map(({ run_id }) => run_id), ["A.2"]);
});

scenario("who goes on while a feed says its last is told nothing more of that", async () => {
  const { server, time, tab } = stage();
  const wire = frames(server.say("A", ...PAUSED).steps) + BYE;
  server.say("A.2", ...words(0, 3));
  server.instead.set("A/events", stream(wire, { size: () => 9_999 }));
  const seen = follow(tab, "A", { onView: (view, { run_id, goOn }) => {
    seen.views.push([run_id, view.seq]);
    goOn("A.2");
  } });
  await time.pass(1_000);
  assert.deepEqual(seen.views, [["A", 3], ["A.2", 4]]);
});

scenario("who goes on while the server is asked goes there, and was not cut off", async () => {
  for (const late of [false, true]) {
    const { server, time, tab } = stage();
    server.say("A", ...PAUSED);
    server.seal("A");
    server.say("A.2");
    const seen = follow(tab, "A");
    await time.pass(500);
    if (late) {
      server.instead.set("A", () => {
        seen.places[0].goOn("A.2");
        return json({ continued_as: "A.3" });
      });
      await time.pass(2_000);
    } else {
      server.mute = true;
      await time.pass(2_000);
      server.mute = false;
      seen.places[0].goOn("A.2");
      await settled();
    }
    assert.deepEqual([seen.views.at(-1), seen.end], [["A.2", 1, "running"], undefined]);
    assert.ok(seen.links.every(({ open }) => open));
  }
});

scenario("a paused run in a tab without the feed is gone on from, too", async () => {
  const { server, time, tab } = stage();
  server.say("A");
  server.say("B", ...PAUSED).continued_as = "B.2";
  server.seal("B");
  server.say("B.2", ...FAILED);
  server.seal("B.2");
  follow(tab, "A");
  const seen = follow(tab, "B");
  await time.pass(60_000);
  assert.deepEqual(server.asked.sort(), ["A/events", "B", "B.2/snapshot", "B/snapshot"]);
  assert.deepEqual([seen.end, seen.views.at(-1)], ["failed", ["B.2", 2, "failed"]]);
});

scenario("a server that names a run as its own continuation is asked no faster", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...PAUSED).continued_as = "A";
  server.seal("A");
  follow(tab, "A");
  await time.pass(7_000);
  assert.equal(server.requests.length, 5);
});

// The end.

scenario("after the end of a log there is no further request, with the feed or without", async () => {
  const lost = [["run.lost", { reason: "lease_expired" }]];
  for (const [ending, status] of [[FAILED, "failed"], [[SUCCEEDED, CHECKED], "done"], [lost, "unknown"]]) {
    const { server, time, tab } = stage();
    server.say("A");
    server.say("B");
    const [first, second] = [follow(tab, "A"), follow(tab, "B")];
    await time.pass(1_000);
    server.say("B", ...ending);
    await time.pass(2_000);
    const asked = server.asked.filter((one) => one.startsWith("B")).length;
    server.say("A", ...ending);
    server.seal("A");
    await time.pass(600_000);
    assert.deepEqual([first.end, second.end, second.view.status], [status, status, status]);
    assert.deepEqual(server.asked.filter((one) => one.startsWith("B")).length, asked);
    assert.deepEqual([server.asked.filter((one) => one.startsWith("A")), time.waiting], [["A/events"], 0]);
  }
});

scenario("a success without a verdict is asked about until its log is closed, or the verdict is there", async () => {
  for (const verdict of [[], [CHECKED]]) {
    const { server, time, tab } = stage();
    server.say("A");
    server.say("B", SUCCEEDED);
    follow(tab, "A");
    const seen = follow(tab, "B");
    await time.pass(5_000);
    assert.equal(seen.end, undefined);
    server.say("B", ...verdict);
    server.seal("B");
    await time.pass(4_000);
    assert.equal(seen.end, verdict.length === 0 ? "checking" : "done");
    const before = server.requests.length;
    await time.pass(60_000);
    assert.equal(server.requests.length, before);
  }
});

scenario("a closed log that shows no end is unknown, and not asked about for ever", async () => {
  const { server, time, tab } = stage();
  server.say("A");
  server.say("B", ["brand.new", {}]);
  follow(tab, "A");
  const seen = follow(tab, "B");
  await time.pass(1_000);
  server.seal("B");
  await time.pass(60_000);
  const asked = server.requests.filter(({ run_id }) => run_id === "B");
  assert.deepEqual(asked.map(({ what }) => what), ["/snapshot", "", "/snapshot", ""]);
  assert.equal(asked[2].headers.get("if-none-match"), '"2"'); // what is wrong with it is the journal's own
  assert.deepEqual([seen.end, seen.view.standing.closed, seen.views.length], ["unknown", true, 2]);
});

scenario("a log that was closed after it was looked at is looked at once more", async () => {
  const { server, time, tab } = stage();
  server.say("A");
  const run = server.say("B", SUCCEEDED);
  server.instead.set("B", () => {
    if (!run.sealed) server.say("B", CHECKED);
    run.sealed = true;
    return json({ sealed: true, seq: run.steps.length, continued_as: null });
  });
  follow(tab, "A");
  const seen = follow(tab, "B");
  await time.pass(10_000);
  assert.equal(seen.end, "done");
});

// Outages.

scenario("a network that is cut says so and heals, with the feed and without", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...words(0, 2));
  server.say("B", ...words(0, 2));
  const both = [follow(tab, "A"), follow(tab, "B")];
  await time.pass(1_000);
  server.down = true;
  await time.pass(3_000);
  server.down = false;
  for (const name of ["A", "B"]) {
    server.say(name, ...words(2, 4), ...FAILED);
    server.seal(name);
  }
  await time.pass(10_000);
  for (const seen of both) {
    const told = opens(seen);
    assert.deepEqual([told[0], told.at(-1), told.includes(false)], [true, true, true]);
    assert.ok(seen.links.every(({ open, again_ms }) => open || again_ms >= 1_000));
    assert.ok(!seen.views.slice(0, -1).some(([, , status]) => status !== "running" && status !== "failed"));
    assert.equal(seen.end, "failed");
  }
  for (const [place, name] of ["A", "B"].entries()) {
    assert.deepEqual(kept(both[place].view), kept(viewOf(server.runs.get(name).steps)));
  }
});

scenario("a network that says it is back is tried at once", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...words(0, 1));
  server.say("B", ...PAUSED);
  server.seal("B");
  const seen = follow(tab, "A");
  follow(tab, "B");
  await time.pass(1_000);
  server.down = true;
  await time.pass(600_000);
  server.down = false;
  const before = server.requests.length;
  tab.online();
  await settled();
  assert.deepEqual(server.asked.slice(before).sort(), ["A/events", "B"]);
  assert.equal(opens(seen).at(-1), true);
});

scenario("a server that is away is asked ever more slowly, and when it says", async () => {
  const { server, time, tab } = stage();
  server.say("A");
  server.say("B");
  follow(tab, "A");
  server.instead.set("B/snapshot", () => refusal(503, "draining"));
  const seen = follow(tab, "B");
  await time.pass(90_000);
  assert.deepEqual(seen.links.slice(0, 5).map(({ again_ms }) => again_ms), [2_000, 4_000, 8_000, 15_000, 15_000]);
  server.instead.set("B/snapshot", () => refusal(429, "too_many_readers", {}, { "retry-after": "40" }));
  await time.pass(15_000);
  assert.deepEqual([seen.links.at(-1).again_ms, seen.links.at(-1).error.code], [40_000, "too_many_readers"]);
  server.instead.clear();
  await time.pass(40_000);
  assert.deepEqual([opens(seen).at(-1), seen.views], [true, [["B", 1, "running"]]]);
  server.instead.set("B/snapshot", () => refusal(503, "draining"));
  await time.pass(2_000);
  assert.deepEqual(seen.links.at(-1).again_ms, 2_000); // it begins anew
});

scenario("a question that nobody answers counts as lost", async () => {
  const { server, time, tab } = stage({ answer_ms: 30 });
  server.say("A", ...PAUSED);
  server.seal("A");
  const alive = setInterval(() => {}, 1_000); // such a deadline alone keeps no process going
  const lost = new Promise((resolve) => {
    follow(tab, "A", { onLink: (link) => link.open || resolve(link) });
  });
  await settled();
  server.mute = true;
  await time.pass(2_000);
  const { error } = await lost;
  clearInterval(alive);
  assert.equal(error.name, "TimeoutError");
});

scenario("a snapshot of a node that lags takes nothing back", async () => {
  const { server, time, tab } = stage();
  server.say("A");
  const { steps } = server.say("B", ...words(0, 4));
  follow(tab, "A");
  const seen = follow(tab, "B");
  await time.pass(1_000);
  server.instead.set("B/snapshot", () => json(viewOf(steps.slice(0, 2)).snapshot()));
  await time.pass(4_000);
  assert.deepEqual(seen.views, [["B", 5, "running"]]);
});

// Refusals.

scenario("a refusal for good is thrown to everybody who follows the run, and nothing more is asked", async () => {
  for (const [path, before] of [["/events", 1], ["/snapshot", 1], ["", 2]]) {
    const { server, time, tab } = stage();
    server.say("A");
    server.say("B", ...PAUSED);
    server.seal("B");
    server.instead.set(`B${path}`, () => refusal(401, "unauthenticated"));
    if (path === "/snapshot") follow(tab, "A");
    const all = [follow(tab, "B"), follow(tab, "B")];
    await time.pass(600_000);
    assert.equal(server.asked.filter((one) => one.startsWith("B")).length, before);
    for (const { end } of all) assert.ok(end instanceof Refused && end.status === 401, String(end));
  }
});

scenario("a run that was erased is refused", async () => {
  const { server, time, tab } = stage();
  server.say("A");
  const seen = follow(tab, "A");
  await settled();
  for (const feed of server.open) feed.send("event: erased\ndata: {}\n\n");
  await time.pass(60_000);
  assert.deepEqual([seen.end.status, seen.end.code, server.requests.length], [410, "erased", 1]);
});

scenario("a snapshot that is of another run, or of a newer server, ends it", async () => {
  const snapshot = viewOf(new Server().say("X").steps).snapshot();
  for (const wrong of [snapshot, { ...snapshot, run_id: "B", version: 2 }, "no"]) {
    const { server, time, tab } = stage();
    server.say("A");
    server.say("B");
    follow(tab, "A");
    server.instead.set("B/snapshot", () => json(wrong));
    const seen = follow(tab, "B");
    await time.pass(60_000);
    assert.ok(seen.end instanceof BadSnapshot, String(seen.end));
  }
});

scenario("a run can be followed again after it was refused", async () => {
  const { server, time, tab } = stage();
  const first = follow(tab, "A");
  await time.pass(10);
  assert.equal(first.end.code, "not_found");
  server.say("A", ...FAILED);
  server.seal("A");
  const second = follow(tab, "A");
  await time.pass(10);
  assert.equal(second.end, "failed");
});

scenario("what a callback throws is printed and changes nothing for anybody", async () => {
  const { server, time, tab } = stage();
  server.say("A", ...FAILED);
  server.seal("A");
  const printed = [];
  const { error } = console;
  console.error = (...said) => printed.push(said);
  const broken = () => { throw new Error("x"); };
  try {
    const [bad, good] = [follow(tab, "A", { onView: broken, onLink: broken }), follow(tab, "A")];
    await time.pass(10);
    assert.deepEqual([bad.end, good.end, good.view.seq], ["failed", "failed", 2]);
  } finally {
    console.error = error;
  }
  assert.ok(printed.length >= 2);
});

// Everything at once.

scenario("whatever tabs, networks and pauses do, everybody ends with the same view over few feeds", async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const roll = dice(seed);
    const server = new Server();
    const time = new Time();
    const locks = roll(4) === 0 ? null : new Locks();
    const tabs = Array.from({ length: 1 + roll(6) }, () => tabOf({ server, time, locks }));
    const runs = ["A", "B", "C"].slice(0, 1 + roll(3));
    for (const name of runs) server.say(name);
    const all = tabs.flatMap((tab) => runs.map((name) => [name, follow(tab, name)]));
    const told = new Map(runs.map((name) => [name, 0]));
    for (let step = 0; step < 60; step += 1) {
      const name = runs[roll(runs.length)];
      const deed = roll(6);
      if (deed === 0) server.down = roll(3) === 0;
      else if (deed === 1) tabs[roll(tabs.length)].show(roll(2) === 0);
      else {
        const from = told.get(name);
        told.set(name, from + 1 + roll(3));
        server.say(name, ...words(from, told.get(name)));
      }
      await time.pass(roll(4_000));
      assert.ok(server.open.size <= (locks === null ? tabs.length : Math.min(FEEDS, tabs.length)), `seed ${seed}`);
    }
    server.down = false;
    for (const tab of tabs) tab.show(true);
    for (const name of runs) {
      server.say(name, ...PAUSED).continued_as = `${name}.2`;
      server.seal(name);
      server.say(`${name}.2`, ...words(0, 3), ...FAILED);
      server.seal(`${name}.2`);
    }
    await time.pass(120_000);
    for (const [name, seen] of all) {
      assert.equal(seen.end, "failed", `seed ${seed}`);
      assert.deepEqual(kept(seen.view), kept(viewOf(server.runs.get(`${name}.2`).steps)), `seed ${seed}`);
    }
    assert.deepEqual([server.open.size, time.waiting, locks?.held.size ?? 0], [0, 0, 0], `seed ${seed}`);
  }
});

scenario("nothing goes on once nobody follows", () => {
  assert.deepEqual(process.getActiveResourcesInfo().filter((kind) => kind === "Timeout"), []);
});

const results = {};
for (const [sentence, play] of scenarios) {
  for (const leaving of following.splice(0)) leaving.abort();
  await settled();
  results[sentence] = await Promise.resolve().then(play).then(() => null, (error) => String(error?.stack ?? error));
}
console.log(JSON.stringify(results));
