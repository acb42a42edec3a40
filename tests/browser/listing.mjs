// Where a hash leads, what a hash of a list is, and the texts of rows.

import { folded, hashOf, placeOf, rowTexts } from "../../agents_progress/server/page/listing.js";
import { answerEach } from "./each.mjs";

const plain = ({ query, ...place }) => (query === undefined ? place : { query: Object.fromEntries(query) });

answerEach(({ hash, query, changes, rows, language, since_s }) => {
  if (hash !== undefined) return plain(placeOf(hash));
  if (query !== undefined) return hashOf(new URLSearchParams(query), changes);
  return folded(rows).map((row) => rowTexts(row, language, since_s));
});
