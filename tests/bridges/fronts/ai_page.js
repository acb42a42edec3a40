// A page with `useChat`.

import { useChat } from "@ai-sdk/react";
import { opened, seen } from "front";
import { createElement as h, useState } from "react";
import { createRoot } from "react-dom/client";
import { begun, did, states } from "./page.js";

const front = begun(opened, () => {});

function Page() {
  const { messages, status, error } = useChat({ chat: front.chat });
  const [words, setWords] = useState("");
  const screen = seen({ messages, status, error });
  states.saw(screen.state);
  const send = () => {
    did(front, { send: words });
    setWords("");
  };
  const answers = [
    ["Approve", true],
    ["Reject", false],
    ["Reply", true, words],
    ["Decline", false, words],
  ];
  return h(
    "main",
    null,
    ...screen.texts.map((text, key) => h("p", { className: "text", key }, text)),
    ...screen.tools.map(([call, state]) => h("li", { className: "tool", "data-call": call, key: call }, state)),
    h("output", { id: "state" }, screen.state),
    h("output", { id: "says" }, screen.says),
    h("output", { id: "sentence" }, screen.sentence),
    Array.from({ length: screen.asked }, (_, key) => h("span", { className: "asked", key }, "?")),
    ...answers.map(([name, ...answer]) => h("button", { key: name, onClick: () => did(front, { answer }) }, name)),
    h("input", { value: words, onChange: ({ target }) => setWords(target.value) }),
    h("button", { onClick: send }, "Send"),
    h("button", { onClick: () => did(front, { cancel: true }) }, "Stop"),
  );
}

createRoot(document.body).render(h(Page));
