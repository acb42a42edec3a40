// A thread of AG-UI: `HttpAgent`, which CopilotKit and others read through, and nothing of ours.

import { HttpAgent } from "@ag-ui/client";

const OUTCOMES = { success: "success", interrupt: "asking", cancelled: "stopped" };

export function opened({ api, conversation, fetch, kept, changed }) {
  const agent = new HttpAgent({ url: api, threadId: conversation, initialMessages: kept?.messages ?? [], fetch });
  let runId = kept?.runId;
  let state = "idle";
  let says = "";
  const now = (...what) => {
    [state, says] = what;
    changed(seen());
  };
  agent.subscribe({
    onRunFinishedEvent: ({ outcome }) => now(OUTCOMES[outcome], outcome),
    onRunErrorEvent: ({ event }) => now("error", `${event.code}: ${event.message}`),
    onRunFailed: ({ error }) => now("error", error.message),
    onMessagesChanged: () => changed(seen()),
  });

  async function run(more) {
    now("working", "running");
    try {
      await agent.runAgent({ runId, ...more });
      // The promise is kept: whoever awaits it and looks for no event takes that for the end of the run.
      if (state === "working") now("success", "ended");
    } catch (error) {
      now("error", error.message);
    }
  }

  function seen() {
    const texts = agent.messages.filter(({ role, content }) => role === "assistant" && content);
    const calls = agent.messages.flatMap(({ toolCalls }) => toolCalls ?? []);
    const status = agent.messages.findLast(({ id, role }) => role === "activity" && id.endsWith(":status"));
    return {
      state,
      says,
      texts: texts.map(({ content }) => content),
      tools: calls.map(({ id }) => [id, result(agent.messages.find(({ toolCallId }) => toolCallId === id))]),
      asked: state === "asking" ? agent.pendingInterrupts.length : 0,
      sentence: status?.content.message ?? null,
    };
  }

  return {
    seen,
    send(text) {
      runId = crypto.randomUUID();
      agent.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
      return run();
    },
    resume: () => run(),
    leave: () => agent.abortRun(),
    // A text is for the questions whose answer may have one.
    answer(approved, text) {
      const answers = agent.pendingInterrupts.map(({ id, responseSchema }) => ({
        interruptId: id,
        status: "resolved",
        payload: { approved, ...said(approved, text, responseSchema) },
      }));
      return run({ runId: crypto.randomUUID(), resume: answers });
    },
    // The id of the run that the message started, under which it is found again.
    kept: () => ({ runId, messages: agent.messages.filter(({ role }) => role === "user") }),
  };
}

function said(approved, text, schema) {
  if (text === undefined) return {};
  if (!approved) return { reason: text };
  return JSON.stringify(schema).includes('"text"') ? { text } : {};
}

// A result that says what became of the call beside its content.
function result(message) {
  if (message === undefined) return "open";
  return message.metadata?.["agents-progress"]?.state ?? (message.error ? "failed" : "returned");
}
