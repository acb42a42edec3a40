// A chat of the AI SDK, majors 6 and 7: the class behind `useChat`, its default transport, and nothing of ours.

import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";

// What a tool row comes to, by the state of its part.
const TOOLS = { "output-available": "returned", "output-error": "failed", "output-denied": "rejected" };

export function opened({ api, conversation, fetch, kept, changed }) {
  const chat = new Chat({
    id: conversation,
    messages: kept ?? [],
    transport: new DefaultChatTransport({ api, fetch }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const tell = () => changed(seen(chat));
  for (const what of ["Messages", "Status", "Error"]) chat[`~register${what}Callback`](tell);
  return {
    chat,
    seen: () => seen(chat),
    send: (text) => chat.sendMessage({ text }),
    resume: () => chat.resumeStream(),
    leave: () => chat.stop(),
    async answer(approved) {
      for (const { id } of asked(chat.messages)) await chat.addToolApprovalResponse({ id, approved });
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
    tools: calls(messages).map((part) => [part.toolCallId, TOOLS[part.state] ?? "open"]),
    asked: asked(messages).length,
    sentence: run?.data.sentence?.en ?? run?.data.sentence ?? null,
  };
}

function standing(status, messages) {
  if (status === "error") return "error";
  if (status !== "ready") return "working";
  if (messages.at(-1)?.role !== "assistant") return "idle";
  if (asked(messages).length > 0) return "asking";
  return calls([messages.at(-1)]).some(({ state }) => state === "approval-responded") ? "answered" : "success";
}

function asked(messages) {
  const waiting = calls(messages).filter(({ state }) => state === "approval-requested");
  return waiting.map(({ approval }) => approval);
}

function calls(messages) {
  const parts = messages.flatMap((message) => message.parts);
  return parts.filter(({ type }) => type === "dynamic-tool" || type.startsWith("tool-"));
}
