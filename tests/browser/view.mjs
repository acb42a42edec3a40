// Folds a log in a view, and goes on from a snapshot that Python made in the middle of it.

import { RunView } from "../../agents_progress/server/page/view.js";
import { answerEach, bytes } from "./each.mjs";

const source = ({ text, base64, value }) => text ?? (base64 === undefined ? value : bytes(base64));

function shown(view) {
  const { status, message, text, tools, cost, issues, duplicates, foreign, messages } = view;
  return { status, message, text, tools: [...tools], cost, issues, duplicates, foreign, messages };
}

answerEach(({ run_id, language, feeds, cut, snapshot }) => {
  const view = new RunView(run_id, language);
  const steps = [];
  let middle = cut === 0 ? view.snapshot() : null;
  feeds.forEach((feed, place) => {
    view.feed(source(feed));
    steps.push([view.status, view.message]);
    if (place + 1 === cut) middle = view.snapshot();
  });
  const end = view.snapshot();
  let resumed = null;
  if (snapshot) {
    const other = RunView.fromSnapshot(snapshot, language);
    for (const feed of feeds.slice(cut)) other.feed(source(feed));
    resumed = other.snapshot();
  }
  const before = shown(view);
  view.closeTransport();
  return { steps, shown: before, middle, end, resumed, closed: [view.status, view.message] };
});
