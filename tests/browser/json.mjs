// The one text of a JSON value, and its digest.

import { canonical, read } from "../../agents_progress/server/page/json.js";
import { sha256 } from "../../agents_progress/server/page/sha256.js";
import { answerEach } from "./each.mjs";

answerEach((text) => {
  const written = canonical(read(text).value);
  return { canonical: written, sha256: sha256(written) };
});
