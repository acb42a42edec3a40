/** What exactly is asked, laid out for reading. */

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs;
const EMPTY = { "{": "}", "[": "]" };

/**
 * JSON with its structure as lines; any other text as it is.
 *
 * Only the space between tokens changes. Reading and writing it again would round long numbers, keep one of two equal
 * names and resolve escapes: what is approved must be what is seen.
 *
 * @param {string} text
 */
export function laidOut(text) {
  if (!isStructure(text)) return text;
  const tokens = text.match(TOKENS);
  let [laid, depth] = ["", 0];
  const line = () => `\n${"  ".repeat(Math.min(depth, DEEPEST))}`;
  for (const [place, token] of tokens.entries()) {
    const opened = EMPTY[tokens[place - 1]];
    if (token === "}" || token === "]") {
      depth -= 1;
      laid += opened === token ? token : line() + token;
    } else {
      laid += (opened ? line() : "") + token;
      if (token === "{" || token === "[") depth += 1;
      if (token === ",") laid += line();
      if (token === ":") laid += " ";
    }
  }
  return laid;
}

/** Further in, lines would be all indent, and their length would grow with the square of the text's. */
const DEEPEST = 32;

function isStructure(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}
