/**
 * The part of JSON Schema that the table in protocol.js uses, read as strictly as the Python package reads it: an
 * integer is one that was written as an integer, and a length counts characters and not UTF-16 units.
 */

import { Numeral } from "./json.js";

/**
 * @param {object | boolean} schema
 * @returns {(value: any) => boolean} whether a value that json.js read fits
 */
export function compile(schema) {
  if (typeof schema === "boolean") return () => schema;
  if (schema.anyOf) {
    const either = schema.anyOf.map(compile);
    return (value) => either.some((fits) => fits(value));
  }
  if (schema.enum) return (value) => schema.enum.includes(value);
  if ("const" in schema) return (value) => value === schema.const;
  return schema.type ? KINDS[schema.type](schema) : () => true;
}

const KINDS = {
  null: () => (value) => value === null,
  boolean: () => (value) => typeof value === "boolean",
  number: () => (value) => value instanceof Numeral || typeof value === "number",

  integer: ({ minimum = -Infinity, maximum = Infinity }) => (value) => {
    const exact = value instanceof Numeral && value.whole ? BigInt(value.literal) : value;
    return (typeof exact === "bigint" || Number.isSafeInteger(exact)) && exact >= minimum && exact <= maximum;
  },

  string({ minLength = 0, maxLength = Infinity, pattern = "" }) {
    const matches = new RegExp(pattern, "u");
    const few = (text) => text.length <= maxLength || (text.length <= 2 * maxLength && [...text].length <= maxLength);
    return (value) => typeof value === "string" && value.length >= minLength && few(value) && matches.test(value);
  },

  array({ items = {}, prefixItems = [], minItems = 0, maxItems = Infinity }) {
    const [first, others] = [prefixItems.map(compile), compile(items)];
    return (value) =>
      Array.isArray(value) && value.length >= minItems && value.length <= maxItems &&
      value.every((part, place) => (first[place] ?? others)(part));
  },

  object({ properties = {}, required = [], additionalProperties = {}, propertyNames = {} }) {
    const fields = new Map(Object.entries(properties).map(([name, schema]) => [name, compile(schema)]));
    const others = compile(additionalProperties);
    const named = compile(propertyNames);
    return (value) =>
      value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Numeral) &&
      required.every((name) => name in value) &&
      Object.keys(value).every((name) => named(name) && (fields.get(name) ?? others)(value[name]));
  },
};
