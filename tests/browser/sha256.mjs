// The digest of a text.

import { sha256 } from "../../agents_progress/server/page/sha256.js";
import { answerEach } from "./each.mjs";

answerEach(sha256);
