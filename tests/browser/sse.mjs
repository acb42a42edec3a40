// Feeds chunks to a decoder: {"chunks": [base64], "limit"?} to {"frames", "retry_ms", "last_event_id", "refused"}.

import { BadFrame, Decoder } from "../../agents_progress/server/page/sse.js";
import { answerEach, bytes } from "./each.mjs";

answerEach(({ chunks, limit }) => {
  const decoder = new Decoder({ limit });
  const frames = [];
  let refused = null;
  try {
    for (const chunk of chunks) frames.push(decoder.feed(bytes(chunk)));
    decoder.finish();
  } catch (error) {
    if (!(error instanceof BadFrame)) throw error;
    refused = error.message;
  }
  const { retry_ms, last_event_id } = decoder;
  return { frames, retry_ms, last_event_id, refused };
});
