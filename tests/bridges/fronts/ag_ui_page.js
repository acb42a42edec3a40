// A page with `HttpAgent`, drawn anew whenever something changed.

import { opened } from "front";
import { begun, did, states } from "./page.js";

const made = (tag, fields, text = "") => Object.assign(document.createElement(tag), { textContent: text }, fields);

const screen = document.body.appendChild(made("main"));
const input = document.body.appendChild(made("input"));
const front = begun(opened, draw);

function draw({ state, says, texts, tools, asked, sentence }) {
  states.saw(state);
  screen.replaceChildren(
    ...texts.map((text) => made("p", { className: "text" }, text)),
    ...tools.map(([call, text]) => {
      const row = made("li", { className: "tool" }, text);
      row.dataset.call = call;
      return row;
    }),
    made("output", { id: "state" }, state),
    made("output", { id: "says" }, says),
    made("output", { id: "sentence" }, sentence ?? ""),
    ...Array.from({ length: asked }, () => made("span", { className: "asked" }, "?")),
  );
}

const BUTTONS = {
  Send: () => ({ send: input.value }),
  Approve: () => ({ answer: [true] }),
  Reject: () => ({ answer: [false] }),
  Reply: () => ({ answer: [true, input.value] }),
  Decline: () => ({ answer: [false, input.value] }),
  Stop: () => ({ cancel: true }),
};
for (const [name, act] of Object.entries(BUTTONS)) {
  document.body.append(made("button", { onclick: () => did(front, act()) }, name));
}
draw(front.seen());
