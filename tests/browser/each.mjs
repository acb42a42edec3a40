// One JSON line in, one JSON line out.

import { readFileSync } from "node:fs";

export const PAGE = new URL("../../agents_progress/server/page/", import.meta.url);

export const bytes = (base64) => new Uint8Array(Buffer.from(base64, "base64"));

export function answerEach(answer) {
  const lines = readFileSync(process.argv[2], "ascii").split("\n").filter((line) => line !== "");
  process.stdout.write(lines.map((line) => `${JSON.stringify(answer(JSON.parse(line)))}\n`).join(""));
}
