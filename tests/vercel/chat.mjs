/** The AI SDK's own chat with its own transport, and what its user sees: the state that `useChat` renders. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { answered } from "../../agents_progress/server/page/bridge.js";

/** The module of a package in a folder of npm, whichever way the package names it. */
export async function packageIn(folder, name) {
  const root = join(folder, "node_modules", name);
  const { exports, module, main } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entry = exports?.["."];
  const path = entry?.import?.default ?? entry?.import ?? entry?.default ?? module ?? main;
  return import(pathToFileURL(join(root, path)));
}

class PlainState {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => void (this.messages = [...this.messages, message]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => void (this.messages = this.messages.with(index, this.snapshot(message)));
  snapshot = (thing) => structuredClone(thing);
}

/** A maker of chats of the `ai` in a folder: `makeChat({api, fetch, ...})`; they send by themselves as a rule says. */
export async function chatOf(folder) {
  const ai = await packageIn(folder, "ai");
  const rules = {
    ours: answered,
    theirs: (chat) =>
      ai.lastAssistantMessageIsCompleteWithApprovalResponses(chat) ||
      ai.lastAssistantMessageIsCompleteWithToolCalls(chat),
  };
  class Chat extends ai.AbstractChat {
    finishes = [];
    constructor({ api = "/api/chat", fetch, rule = "ours", messages = [], ...more }) {
      const state = new PlainState();
      state.messages = messages;
      super({
        ...more,
        state,
        transport: new ai.DefaultChatTransport({ api, fetch }),
        sendAutomaticallyWhen: rules[rule],
        onFinish: ({ isAbort, isDisconnect, isError, finishReason }) =>
          this.finishes.push({ isAbort, isDisconnect, isError, finishReason: finishReason ?? null }),
      });
    }
  }
  return { ai, makeChat: (options) => new Chat(options) };
}

/** What is on the screen of whoever renders a chat as its documentation does. */
export function shown(chat) {
  const { parts = [], id } = chat.messages.findLast((message) => message.role === "assistant") ?? {};
  const calls = parts.filter((part) => part.toolCallId !== undefined);
  const of = (type) => parts.filter((part) => part.type === type);
  const words = inWords(of("data-question"), calls);
  return {
    status: chat.status,
    error: chat.error?.message ?? null,
    finish: chat.finishes.at(-1) ?? null,
    messages: chat.messages.map((message) => message.role),
    message: id ?? null,
    texts: of("text").map((part) => part.text),
    writing: parts.filter((part) => part.state === "streaming").length,
    calls: calls.map((part) => [part.toolCallId, part.state]),
    order: parts.flatMap(placed),
    inputs: calls.map((part) => part.input),
    asked: calls.filter((part) => part.state === "approval-requested").map((part) => part.approval.id),
    words: words.map((part) => part.toolCallId),
    run: of("data-run").at(-1)?.data.status ?? null,
    sees: sees(chat.status, calls, words),
  };
}

/** What has a place among the rest, in its order; a text by what it says. */
function placed({ type, text, toolCallId, state }) {
  if (type === "step-start") return [["step"]];
  if (toolCallId !== undefined) return [["call", toolCallId, state]];
  return type === "text" || type === "reasoning" ? [["text", text]] : [];
}

/** The calls whose output is the user's to give: about each a question is open that wants a text. */
function inWords(questions, calls) {
  const open = questions.filter(({ data }) => data.decision === null && data.approvable);
  const asked = open.filter(({ data }) => data.text === "required" || data.text === "option");
  return calls.filter((part) => asked.some(({ data }) => data.call_id === part.toolCallId));
}

/** What that says: a chat that came to rest and asks for nothing looks as if it was done. */
function sees(status, calls, words) {
  if (status !== "ready") return status;
  if (calls.some((part) => part.state === "approval-requested")) return "question";
  if (words.length === 0) return "success";
  return words.some((part) => part.state === "input-available") ? "question" : "answered";
}
