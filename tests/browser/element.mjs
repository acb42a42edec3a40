// What the element decides without a document. Each scenario is a sentence; prints {sentence: null or what went wrong}.

import assert from "node:assert/strict";

import { Announcer } from "../../agents_progress/server/page/announce.js";
import { blockEnd } from "../../agents_progress/server/page/answer.js";
import { Changes, STATUS } from "../../agents_progress/server/page/changes.js";
import { connect } from "../../agents_progress/server/page/client.js";
import { laidOut } from "../../agents_progress/server/page/details.js";
import { RunView } from "../../agents_progress/server/page/view.js";
import { RUN, URL_OF_RUN, dice, envelope, frames, log, noMore, serverOf } from "./fake.mjs";

const scenarios = new Map();
const scenario = (sentence, play) => scenarios.set(sentence, play);

// What exactly is asked.

scenario("JSON is laid out in lines", () => {
  const laid = laidOut('{"order":4711,"items":[{"name":"blue, {cup}: \\"x\\"","count":1},{},[]],"note":null}');
  assert.equal(laid, [
    "{", '  "order": 4711,', '  "items": [', "    {", '      "name": "blue, {cup}: \\"x\\"",', '      "count": 1', "    },",
    "    {},", "    []", "  ],", '  "note": null', "}",
  ].join("\n"));
});

scenario("a long number, a name that comes twice and an escape stay as they were written", () => {
  const laid = laidOut('{ "account": 12345678901234567890, "to": 1.50, "to": 1e400, "name": "a\\u202eb" }');
  const tokens = ["12345678901234567890", '"to": 1.50', '"to": 1e400', '"a\\u202eb"'];
  for (const token of tokens) assert.ok(laid.includes(token));
});

scenario("what is no structure is shown as it is", () => {
  const texts = ["", "42", '"a  b"', "{broken", "a  b\n c", "null", '{"a":1} {"b":2}'];
  for (const text of texts) assert.equal(laidOut(text), text);
});

scenario("of any JSON only the space between its tokens changes", () => {
  const roll = dice(11);
  const word = () => JSON.stringify(["", 'q"\\', "流 {[,:]}", "a\nb\t", "\\"][roll(5)]);
  const space = () => ["", " ", "\n", "\t  "][roll(4)];
  const some = (make) => Array.from({ length: roll(4) }, make).join(`${space()},${space()}`);
  const value = (depth) => {
    const kind = depth > 5 ? roll(3) : roll(5);
    if (kind === 0) return word();
    if (kind === 1) return ["true", "null", "-0", "1.50", "2e+7", "90071992547409931"][roll(6)];
    if (kind === 2) return `[${space()}]`;
    if (kind === 3) return `[${some(() => value(depth + 1))}]`;
    return `{${space()}${some(() => `${word()}${space()}:${value(depth + 1)}`)}${space()}}`;
  };
  const bare = (text) => text.match(/"(?:[^"\\]|\\.)*"|\S/gs)?.join("") ?? "";
  for (let round = 0; round < 3000; round += 1) {
    const text = value(0);
    assert.equal(bare(laidOut(text)), bare(text));
    assert.deepEqual(JSON.parse(laidOut(text)), JSON.parse(text));
  }
});

scenario("a deep structure does not grow with the square of its depth", () => {
  const text = "[".repeat(3000) + "]".repeat(3000);
  assert.ok(laidOut(text).length < 70 * text.length);
});

// Blocks of text.

scenario("blocks joined are the text, end at line ends, and are never long", () => {
  const roll = dice(5);
  for (let round = 0; round < 200; round += 1) {
    const pieces = ["word ", "流", "🙂", "\n", "x".repeat(roll(9000)), "a b ".repeat(roll(700)), "line\n".repeat(roll(300))];
    const said = Array.from({ length: roll(60) }, () => pieces[roll(pieces.length)]);
    const blocks = [""];
    for (let text of said) {
      for (let end = blockEnd(text, blocks.at(-1).length); end !== null; end = blockEnd(text, 0)) {
        blocks[blocks.length - 1] += text.slice(0, end);
        blocks.push("");
        text = text.slice(end);
      }
      blocks[blocks.length - 1] += text;
    }
    assert.equal(blocks.join(""), said.join(""));
    for (const block of blocks) {
      assert.ok(block.length <= 16_201, String(block.length));
      assert.ok(block.isWellFormed());
    }
    for (const block of blocks.slice(0, -1)) assert.ok(block.endsWith("\n") || block.length >= 16_000);
  }
});

// Room to draw.

scenario("a flood of chunks leaves room for others between them", async () => {
  const chunks = log(400).map((step) => new TextEncoder().encode(frames([step])));
  const body = () => new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const feed = () => new Response(body(), { headers: { "content-type": "text/event-stream" } });
  let [now, others, after] = [0, 0, []];
  const clock = { now: () => (now += 1), wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) };
  const ticks = setInterval(() => { others += 1; }, 0);
  await connect(URL_OF_RUN, { fetch: serverOf(feed, noMore()).fetch, clock, onView: () => after.push(others) });
  clearInterval(ticks);
  assert.ok(after.at(-1) > 3, `others had ${after.at(-1)} turns`);
});

// What is announced.

function listener() {
  const [said, planned] = [[], []];
  const announcer = new Announcer((sentence) => said.push(sentence), { later: (what) => planned.push(what) });
  return { said, announcer, turn: () => planned.shift()?.() };
}

scenario("the first sentence is said at once and the next ones in their turn", () => {
  const { said, announcer, turn } = listener();
  for (const name of ["a", "b"]) announcer.announce(name, `${name} runs`);
  assert.deepEqual(said, ["a runs"]);
  turn();
  assert.deepEqual(said, ["a runs", "b runs"]);
  turn();
  announcer.announce("a", "a returned");
  assert.deepEqual(said, ["a runs", "b runs", "a returned"]);
});

scenario("of what waits only the newest sentence of a subject is said, and of many subjects the newest four", () => {
  const { said, announcer, turn } = listener();
  announcer.announce("first", "first");
  for (let number = 0; number < 1000; number += 1) announcer.announce(`c${number}`, `c${number} runs`);
  for (let number = 998; number < 1000; number += 1) announcer.announce(`c${number}`, `c${number} returned`);
  for (let times = 0; times < 9; times += 1) turn();
  assert.deepEqual(said, ["first", "c996 runs", "c997 runs", "c998 returned", "c999 returned"]);
});

scenario("a status is said next, and nothing that came before it", () => {
  const { said, announcer, turn } = listener();
  announcer.announce("a", "a runs");
  announcer.announce("b", "b runs");
  announcer.announce(STATUS, "failed");
  announcer.announce("c", "c runs");
  for (let times = 0; times < 4; times += 1) turn();
  assert.deepEqual(said, ["a runs", "failed", "c runs"]);
});

scenario("nothing is said of what was cleared", () => {
  const { said, announcer, turn } = listener();
  announcer.announce("a", "a runs");
  announcer.announce("b", "b runs");
  announcer.clear();
  turn();
  assert.deepEqual(said, ["a runs"]);
});

scenario("new states of rows are news, and neither counts nor text nor what was there at first", () => {
  const view = new RunView(RUN);
  const changes = new Changes();
  let seq = 0;
  const news = (type, payload) => {
    view.feed(envelope((seq += 1), type, payload));
    return changes.of(view);
  };
  view.feed(envelope((seq += 1), "run.started", { agent: "A", task_id: "t", parent: null, resumed_from: null }));
  view.feed(envelope((seq += 1), "tool.requested", { call_id: "c1", name: "look", kind: "function" }));
  assert.deepEqual(changes.of(view), [[STATUS, view.message]]);
  assert.deepEqual(news("text.delta", { item_id: "m", index: 0, text: "words" }), []);
  assert.deepEqual(news("tool.started", { call_id: "c1" }), [["c1", "running: look"]]);
  assert.deepEqual(news("tool.progress", { call_id: "c1", message: "m", current: 1, total: 2 }), []);
  assert.deepEqual(news("tool.failed", { call_id: "c1", code: "timeout" }), [["c1", "failed: look · timeout"]]);
  assert.deepEqual(news("run.ended", { outcome: "failed", final_output: null }), [[STATUS, view.message]]);
});

const results = {};
for (const [sentence, play] of scenarios) {
  results[sentence] = await Promise.resolve().then(play).then(() => null, (error) => String(error?.stack ?? error));
}
console.log(JSON.stringify(results));
