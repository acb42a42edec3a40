// A chat of the AI SDK, majors 6 and 7: the class behind `useChat`, its default transport, and nothing of ours.

import { Chat } from "@ai-sdk/react";
import * as ai from "ai";

// What a tool row comes to, by the state of its part.
const TOOLS = { "output-available": "returned", "output-error": "failed", "output-denied": "rejected" };

const theirs = (chat) =>
  ai.lastAssistantMessageIsCompleteWithApprovalResponses(chat) || ai.lastAssistantMessageIsCompleteWithToolCalls(chat);

export function opened({ api, conversation, fetch, answered = theirs, kept, changed }) {
  const chat = new Chat({
    id: conversation,
    messages: kept ?? [],
    transport: new ai.DefaultChatTransport({ api, fetch }),
    sendAutomaticallyWhen: answered,
  });
  const tell = () => changed(seen(chat));
  for (const what of ["Messages", "Status", "Error"]) chat[`~register${what}Callback`](tell);
  return {
    chat,
    seen: () => seen(chat),
    send: (text) => chat.sendMessage({ text }),
    resume: () => chat.resumeStream(),
    leave: () => chat.stop(),
    // A text is for the questions that want one, a yes or a no for all.
    async answer(approved, text) {
      for (const { approval } of approvals(chat.messages)) {
        await chat.addToolApprovalResponse({ id: approval.id, approved });
      }
      if (approved && text === undefined) return;
      const given = approved ? { output: text } : { state: "output-error", errorText: text };
      for (const { toolName, toolCallId } of inWords(chat.messages)) {
        await chat.addToolOutput({ tool: toolName, toolCallId, ...given });
      }
    },
    // What an application has stored of a chat whose answer is still coming.
    kept: () => chat.messages.filter(({ role }) => role === "user"),
  };
}

// What a user sees of a chat. Nothing but an error tells a chat that is `ready` from one whose answer is whole.
export function seen({ status, error, messages }) {
  const parts = messages.filter(({ role }) => role === "assistant").flatMap((message) => message.parts);
  const run = parts.findLast(({ type }) => type === "data-run");
  return {
    state: standing(status, messages),
    says: error ? `${status}: ${error.message}` : status,
    texts: parts.filter(({ type }) => type === "text").map(({ text }) => text),
    tools: calls(messages).map((part) => [part.toolCallId, came(part, messages)]),
    asked: asked(messages).length,
    sentence: run?.data.sentence?.en ?? run?.data.sentence ?? null,
  };
}

function standing(status, messages) {
  if (status === "error") return "error";
  if (status !== "ready") return "working";
  if (messages.at(-1)?.role !== "assistant") return "idle";
  if (asked(messages).length > 0) return "asking";
  const last = [messages.at(-1)];
  const answers = [...calls(last).filter(({ state }) => state === "approval-responded"), ...inWords(last)];
  return answers.length > 0 ? "answered" : "success";
}

// What a call came to. The output of one about which a question is open is the user's own.
function came(part, messages) {
  return inWords(messages).includes(part) ? "open" : (TOOLS[part.state] ?? "open");
}

function asked(messages) {
  return [...approvals(messages), ...inWords(messages).filter(({ state }) => state === "input-available")];
}

function approvals(messages) {
  return calls(messages).filter(({ state }) => state === "approval-requested");
}

// The calls about which a question is open that is answered with a text.
function inWords(messages) {
  const questions = messages.flatMap(({ parts }) => parts).filter(({ type }) => type === "data-question");
  const open = questions.filter(({ data }) => data.decision === null && data.approvable);
  const ids = open.filter(({ data }) => data.text === "required" || data.text === "option");
  return calls(messages).filter(({ toolCallId }) => ids.some(({ data }) => data.call_id === toolCallId));
}

function calls(messages) {
  const parts = messages.flatMap((message) => message.parts);
  return parts.filter(({ type }) => type === "dynamic-tool" || type.startsWith("tool-"));
}
