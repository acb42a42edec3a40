// The `fetch` for other front ends against a server made of answers. Prints {sentence: null or what went wrong}.

import assert from "node:assert/strict";

import { answered, BrokenOff, refusalIn, truthful } from "../../agents_progress/server/page/bridge.js";
import { dice, json, noMore, refusal, serverOf, stream } from "./fake.mjs";

const scenarios = new Map();
const scenario = (sentence, play) => scenarios.set(sentence, play);

const URL_OF_CHAT = "http://runs.test/agent/api/chat";
const OVER = ": over\n\n";
const BYE = ": bye\n\n";

/** Frames of a run: two with which a reader joins, then two of each envelope. */
function told(count = 6) {
  const join = ["run-A:0+1", "run-A:0+2"].map((id) => ({ id, text: `id: ${id}\ndata: {"at":"${id}"}\n\n` }));
  const rest = Array.from({ length: count }, (_, at) => `run-A:${1 + (at >> 1)}.${1 + (at % 2)}`);
  return [...join, ...rest.map((id) => ({ id, text: `id: ${id}\ndata: {"流":"${id}"}\n\n` }))];
}

const LAST = "data: [DONE]\n\n";
const wire = (frames) => frames.map(({ text }) => text).join("") + LAST + OVER;
const whole = (frames) => frames.map(({ text }) => text).join("") + LAST;
const after = (frames, { cursor }) => frames.slice(1 + frames.findIndex(({ id }) => id === cursor));

/** A stream of a bridge, which says where it is gone on with. */
function bridged(bytes, how, place = "chat/c%201/stream") {
  return (request) => {
    const response = stream(bytes, how)(request);
    response.headers.set("content-location", place);
    response.headers.set("x-cursor", "run-A:0+0");
    return response;
  };
}

/** What a client reads through the wrapped fetch, as far as it comes, and how it ended. */
async function read(server, init = { method: "POST", body: "{}" }, input = URL_OF_CHAT, how = {}) {
  const waited = [];
  const wait = async (ms) => { waited.push(ms); };
  const response = await truthful(server.fetch, { wait, ...how })(input, init);
  const utf8 = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of response.body) text += utf8.decode(chunk, { stream: true });
    return { text, error: null, waited, requests: server.requests, response };
  } catch (error) {
    return { text, error, waited, requests: server.requests, response };
  }
}

scenario("a stream that ends as it should is passed on without the comments", async () => {
  const frames = told();
  const { text, error, requests, response } = await read(serverOf(bridged(wire(frames))));
  assert.deepEqual([text, error, requests.length], [whole(frames), null, 1]);
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
});

scenario("a stream that is cut at any byte is gone on with after its last frame, and nothing is doubled", async () => {
  const frames = told(4);
  const bytes = new TextEncoder().encode(wire(frames));
  const lastByte = bytes.length - 1;
  for (let cut = 0; cut < lastByte; cut += 1) {
    const first = bridged(bytes.slice(0, cut), { then: cut % 2 ? "close" : "break", size: () => 13 });
    const rest = (request) => stream(wire(after(frames, request)))(request);
    const { text, error, requests } = await read(serverOf(first, rest));
    assert.equal(error, null);
    assert.equal(text.replaceAll(LAST, ""), whole(frames).replaceAll(LAST, ""), `cut at ${cut}`);
    assert.ok(text.endsWith(LAST));
    assert.equal(requests[1].url, "http://runs.test/agent/api/chat/c%201/stream");
    assert.ok(frames.some(({ id }) => id === requests[1].cursor) || requests[1].cursor === "run-A:0+0");
  }
});

scenario("a frame that comes twice is passed on once", async () => {
  const frames = told();
  const random = dice(7);
  for (let round = 0; round < 50; round += 1) {
    const seen = [];
    const doubled = frames.flatMap((frame) => {
      seen.push(frame);
      return [frame, ...(random(2) ? [seen[random(seen.length)]] : [])];
    });
    assert.equal((await read(serverOf(bridged(wire(doubled))))).text, whole(frames));
  }
});

scenario("a server that goes away is gone on with elsewhere, and its error is for others", async () => {
  const frames = told();
  const had = frames.slice(0, 4).map(({ text }) => text).join("");
  const first = `${had}${BYE}data: {"error":"try_again"}\n\n${LAST}${OVER}`;
  const server = serverOf(bridged(first), refusal(503, "draining"), (request) => stream(wire(after(frames, request))));
  const { text, error, requests } = await read(server);
  assert.deepEqual([text, error], [whole(frames), null]);
  assert.deepEqual(requests.map(({ cursor }) => cursor), [null, "run-A:1.2", "run-A:1.2"]);
});

scenario("a stream that cannot be gone on with ends as an error, never as an end", async () => {
  const cut = bridged(told()[0].text);
  for (const answer of [noMore(), refusal(404, "not_found"), refusal(410, "pruned"), refusal(401, "unauthenticated")]) {
    const { text, error } = await read(serverOf(cut, answer));
    assert.equal(text, told()[0].text);
    assert.ok(error instanceof BrokenOff);
  }
});

scenario("a server that stays away is asked eight times, at growing distances, and then it is an error", async () => {
  const full = [() => refusal(503, "full"), () => refusal(429, "too_many_readers")];
  for (const away of [new TypeError("Failed to fetch"), ...full]) {
    const server = serverOf(bridged(told()[0].text), ...Array.from({ length: 8 }, () => away));
    const { error, waited, requests } = await read(server);
    assert.ok(error instanceof BrokenOff);
    assert.equal(requests.length, 9);
    assert.equal(waited.length, 8);
    waited.forEach((ms, at) => assert.ok(ms >= Math.min(250 * 2 ** at, 8000) / 2 && ms <= 8000));
  }
});

scenario("a server that only says bye is asked eight times, and one that lives for as long as it does", async () => {
  const byes = Array.from({ length: 8 }, () => stream(BYE + OVER));
  assert.ok((await read(serverOf(bridged(told()[0].text), ...byes))).error instanceof BrokenOff);
  const beats = Array.from({ length: 30 }, () => stream(": \n\n"));
  const frames = told();
  const server = serverOf(bridged(frames[0].text), ...beats, (request) => stream(wire(after(frames, request))));
  assert.deepEqual((await read(server)).text.replaceAll(": \n\n", ""), whole(frames));
});

scenario("a request goes on as whoever began it, with its headers and without its body", async () => {
  const frames = told();
  const listed = [["Authorization", "Bearer x"], ["Content-Type", "application/json"]];
  for (const more of [{ headers: Object.fromEntries(listed) }, { headers: listed, credentials: "include" }]) {
    const init = { method: "POST", body: "{}", ...more };
    const server = serverOf(bridged(frames[0].text), (request) => stream(wire(after(frames, request))));
    const [, again] = (await read(server, init)).requests;
    assert.equal(again.headers.get("authorization"), "Bearer x");
    assert.equal(again.headers.get("content-type"), null);
    assert.deepEqual([again.method, again.body, again.credentials], ["GET", undefined, init.credentials]);
  }
});

scenario("a stream that was asked for with a Request and by GET goes on as well", async () => {
  const frames = told();
  const asked = new Request("http://runs.test/api/chat/c/stream", { headers: { authorization: "Bearer x" } });
  const server = serverOf(bridged(frames[0].text, {}, "stream"), (request) => stream(wire(after(frames, request))));
  const { text, requests } = await read(server, undefined, asked);
  assert.equal(text, whole(frames));
  assert.equal(requests[1].url, "http://runs.test/api/chat/c/stream");
  assert.equal(requests[1].headers.get("authorization"), "Bearer x");
});

scenario("a connection that says nothing for too long counts as broken off", async () => {
  const frames = told();
  const silent = bridged(frames[0].text, { then: "stay", size: () => 500 });
  const server = serverOf(silent, (request) => stream(wire(after(frames, request))));
  const { text, error, requests } = await read(server, undefined, URL_OF_CHAT, { quiet_ms: 20 });
  assert.deepEqual([text, error, requests.length], [whole(frames), null, 2]);
});

scenario("whoever leaves is not followed: nothing is asked for any more", async () => {
  for (const leave of ["abort", "cancel"]) {
    const leaving = new AbortController();
    const server = serverOf(bridged(told()[0].text, { then: "stay" }));
    const response = await truthful(server.fetch)(URL_OF_CHAT, { method: "POST", signal: leaving.signal });
    const reader = response.body.getReader();
    await reader.read();
    if (leave === "abort") {
      const next = reader.read();
      leaving.abort();
      await assert.rejects(next, { name: "AbortError" });
    } else {
      await reader.cancel();
    }
    await new Promise((resolve) => { setTimeout(resolve, 5); });
    assert.equal(server.requests.length, 1);
  }
});

scenario("an abort while a server is waited for ends the waiting", async () => {
  const leaving = new AbortController();
  const server = serverOf(bridged(told()[0].text), new TypeError("Failed to fetch"));
  const response = await truthful(server.fetch)(URL_OF_CHAT, { signal: leaving.signal });
  const reader = response.body.getReader();
  await reader.read();
  const next = reader.read();
  setTimeout(() => leaving.abort(), 5);
  await assert.rejects(next, { name: "AbortError" });
  assert.equal(server.requests.length, 1);
});

scenario("what is no stream of a bridge passes as it is", async () => {
  for (const answer of [json({ a: 1 }), noMore(), refusal(409, "busy"), stream("data: x\n\n")]) {
    const server = serverOf(answer);
    const plain = await truthful(server.fetch)(URL_OF_CHAT);
    assert.ok(!plain.headers.has("content-location"));
    await plain.text();
    assert.equal(server.requests.length, 1);
  }
  await assert.rejects(truthful(serverOf(new TypeError("Failed to fetch")).fetch)(URL_OF_CHAT), TypeError);
});

scenario("every POST has a key of its own unless it brings one, which stays with it and is sent with nothing else", async () => {
  const asked = new Request(URL_OF_CHAT, { method: "POST", body: "{}", headers: { authorization: "Bearer x" } });
  const requests = [
    [URL_OF_CHAT, { method: "POST", headers: { authorization: "Bearer x" } }],
    [asked],
    [URL_OF_CHAT, { method: "post", headers: { "idempotency-key": "mine", authorization: "Bearer x" } }],
  ];
  const keys = [];
  for (const [input, init] of requests) {
    const frames = told();
    const server = serverOf(bridged(frames[0].text), (request) => stream(wire(after(frames, request)))(request));
    await read(server, init ?? undefined, input);
    const [first, second] = server.requests;
    keys.push(first.headers.get("idempotency-key"));
    assert.equal(first.headers.get("authorization"), "Bearer x");
    assert.equal(second.headers.get("idempotency-key"), null);
  }
  assert.match(keys[0], /^[0-9a-f]{32}$/);
  assert.match(keys[1], /^[0-9a-f]{32}$/);
  assert.notEqual(keys[0], keys[1]);
  assert.equal(keys[2], "mine");
});

scenario("the reason of a refusal is found in what the clients make of it", () => {
  const said = JSON.stringify({ error: { code: "busy", message: "Another run", more: 1 } });
  const busy = { code: "busy", message: "Another run" };
  assert.deepEqual(refusalIn(new Error(said)), busy);
  assert.deepEqual(refusalIn(new Error(`HTTP 409: ${said}`)), busy);
  for (const other of [new Error("x"), new Error("{"), new Error("{}"), null, undefined, new Error('{"error":{}}')]) {
    assert.equal(refusalIn(other), null);
  }
});

const asked = (text, more) => {
  const data = { question_id: `run-A/ask-${text}/d`, call_id: text, text, decision: null, approvable: true, ...more };
  return { type: "data-question", id: `ask-${text}`, data };
};
const call = (text, state, approval) => ({ type: "dynamic-tool", toolCallId: text, state, approval });
const yes = (text, id = `run-A/ask-${text}/d`) => call(text, "approval-responded", { id, approved: true });
const waits = (...parts) => !answered({ messages: [{ role: "user", parts: [] }, { role: "assistant", parts }] });

scenario("a message is sent once every question of it is answered that can be answered there", () => {
  for (const text of ["refused", "optional"]) {
    assert.ok(!waits(asked(text), yes(text)));
    assert.ok(waits(asked(text), call(text, "approval-requested", { id: `run-A/ask-${text}/d` })));
    assert.ok(waits(asked(text), call(text, "output-available")));
    assert.ok(waits(asked(text), yes(text, "run-B/ask-1/d")));
  }
  for (const text of ["required", "option"]) {
    for (const state of ["output-available", "output-error"]) assert.ok(!waits(asked(text), call(text, state)));
    for (const state of ["input-available", "output-denied"]) assert.ok(waits(asked(text), call(text, state)));
    assert.ok(waits(asked(text), yes(text)));
  }
  assert.ok(!waits(asked("refused"), asked("option"), yes("refused"), call("option", "output-available")));
  assert.ok(waits(asked("refused"), asked("option"), yes("refused"), call("option", "input-available")));
  assert.ok(waits(asked("refused"), asked("option"), call("option", "output-available")));
  assert.ok(!waits(asked("refused"), asked("option", { approvable: false }), yes("refused")));
});

scenario("a message in which nothing is asked any more is never sent by itself", () => {
  assert.ok(waits());
  assert.ok(waits({ type: "text", text: "hello" }, call("c1", "output-available")));
  for (const decision of ["approved", "rejected", "expired", "cancelled"]) {
    assert.ok(waits(asked("option", { decision }), call("option", "output-available")));
    assert.ok(waits(asked("refused", { decision }), yes("refused")));
  }
  assert.ok(waits(asked("option", { approvable: false }), call("option", "output-available")));
  const parts = [asked("option"), call("option", "output-available")];
  assert.ok(!answered({ messages: [{ role: "assistant", parts }, { role: "user", parts: [] }] }));
  assert.ok(!answered({ messages: [{ role: "user", parts }] }));
  assert.ok(!answered({ messages: [] }));
});

scenario("nothing goes on once a stream was read", () => {
  assert.deepEqual(process.getActiveResourcesInfo().filter((kind) => kind === "Timeout"), []);
});

const results = {};
for (const [sentence, play] of scenarios) {
  results[sentence] = await Promise.resolve().then(play).then(() => null, (error) => error.stack);
}
process.stdout.write(JSON.stringify(results));
