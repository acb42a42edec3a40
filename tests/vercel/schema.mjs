/** Holds stored parts to the schema of a release of `ai`; prints those that it refuses. `node schema.mjs FOLDER_OF_AI PARTS` */
import { readFileSync } from "node:fs";
import { packageIn } from "./chat.mjs";

const [, , folder, file] = process.argv;
const ai = await packageIn(folder, "ai");
const { validate } = ai.asSchema(await schemaOf(ai));
for (const line of readFileSync(file, "utf8").split("\n").filter(Boolean)) {
  const result = await validate(JSON.parse(line));
  if (!result.success) console.log(line);
}

/** `ai` 7 exports it as a value, the first releases of 6 as a function that makes it. */
async function schemaOf({ uiMessageChunkSchema }) {
  return typeof uiMessageChunkSchema === "function" ? uiMessageChunkSchema() : uiMessageChunkSchema;
}
