// What a page says of a log: {"run_id", "language", "feeds", "closed"} to texts. Or one text alone: {"text", "cuts"}.

import { Refused } from "../../agents_progress/server/page/requests.js";
import {
  activityText, ageText, answerOf, artifactTexts, clean, cleanLines, depth, endingTexts, isApprovable, isEditable, label,
  moreLines, openQuestions, optionsOf, questionText, refusalText, sources, stepsText, textWanted, titleText, usageTexts,
  work,
} from "../../agents_progress/server/page/texts.js";
import { BadSnapshot, RunView } from "../../agents_progress/server/page/view.js";
import { answerEach, bytes } from "./each.mjs";

function ofView({ run_id, language, feeds, closed }) {
  const view = new RunView(run_id, language);
  for (const { text, base64 } of feeds) view.feed(text ?? bytes(base64));
  if (closed) view.closeTransport();
  const { open, kept, folded } = work(view);
  const ids = (rows) => rows.map(({ activity_id }) => activity_id);
  const answer = answerOf(view);
  return {
    title: titleText(view),
    ending: endingTexts(view),
    open_questions: openQuestions(view).map(({ interaction_id }) => interaction_id),
    questions: [...view.interactions.values()].map((row) => questionText(row, language)),
    approvable: [...view.interactions.values()].map(isApprovable),
    activities: view.activities.map((row) => activityText(row, language)),
    depths: view.activities.map(depth),
    work: [ids(open), ids(kept), ids(folded)],
    found: [...artifactTexts(view), ...sources(view).map(({ text }) => text)],
    usage: usageTexts(view),
    answer: answer && { ...answer, text: cleanLines(answer.text) },
  };
}

function ofText({ text, cuts }) {
  let shown = "";
  let before = "";
  const characters = [...text];
  for (const cut of [...cuts, characters.length]) {
    const now = characters.slice(0, Math.max(cut, [...before].length)).join("");
    shown += moreLines(before, now);
    before = now;
  }
  return { clean: clean(text), lines: cleanLines(text), grown: shown };
}

const ERRORS = { TypeError, BadSnapshot };

const SAYS = {
  view: ofView,
  text: ofText,
  row: ({ row, language }) => activityText(row, language),
  link: ({ url }) => sources({ sources: [{ kind: "k", url }], language: "en" })[0].url,
  label: ({ name, language, values }) => label(name, language, values),
  age: ({ seconds, language }) => ageText(seconds, language),
  steps: ({ count, language }) => stepsText(count, language),
  refusal: ({ code, names, kind, language }) => refusalText(kind ? new ERRORS[kind]() : new Refused(400, { code, names }), language),
  question: ({ row }) => ({ text: textWanted(row), options: optionsOf(row), editable: isEditable(row) }),
};

answerEach(({ what, ...asked }) => SAYS[what](asked));
