/**
 * Elements made of names and texts, and lists of them that change without being made anew.
 *
 * Whatever a run says reaches the document through a text node or an attribute that holds text; there is no way in
 * here for markup. What did not change is not touched, so that focus, selections and half-typed reasons stay.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element with attributes and children; a string becomes a text node.
 *
 * @param {string} tag
 * @param {Record<string, string | number | boolean | null>} [attributes]
 * @param {...(Node | string)} children
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  mark(node, attributes);
  node.append(...children);
  return node;
}

/** A drawing on a grid of 24 by 24, made of the lines of a path. Decoration: its meaning always stands beside it. */
export function drawing(path) {
  const svg = document.createElementNS(SVG, "svg");
  mark(svg, { viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" });
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

/** Sets attributes: true is an empty one, false and null take it away. */
export function mark(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    const wanted = value === true ? "" : value === false || value === null ? null : String(value);
    if (node.getAttribute(name) === wanted) continue;
    if (wanted === null) node.removeAttribute(name);
    else node.setAttribute(name, wanted);
  }
}

/** Makes a text all that a node holds. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Writes a text where there is one, and hides the node where there is none. */
export function writeOrHide(node, text) {
  mark(node, { hidden: !text });
  write(node, text ?? "");
}

/**
 * A list whose entries stay the same nodes as long as their keys do, and that is hidden while it has none.
 *
 * @template Row, Context
 * @param {Element} parent
 * @param {object} how
 * @param {(row: Row) => string} how.key
 * @param {(row: Row) => {node: Element, draw: (row: Row, context?: Context) => void}} how.make
 * @returns {(rows: Row[], context?: Context) => void} draws these rows, in this order, and no others
 */
export function list(parent, { key, make }) {
  let shown = new Map();
  return (rows, context) => {
    const wanted = new Map(rows.map((row) => [key(row), row]));
    for (const [name, entry] of shown) if (!wanted.has(name)) entry.node.remove(); // first: nothing then moves for it
    const before = shown;
    shown = new Map();
    let place = parent.firstElementChild;
    for (const [name, row] of wanted) {
      const entry = before.get(name) ?? make(row);
      shown.set(name, entry);
      entry.draw(row, context);
      if (entry.node === place) place = place.nextElementSibling;
      else parent.insertBefore(entry.node, place);
    }
    mark(parent, { hidden: wanted.size === 0 });
  };
}

/** A list of texts, by place. `show` puts one into its node. */
export function texts(parent, show = write) {
  const make = () => {
    const node = element("li", { dir: "auto" });
    return { node, draw: ({ row }) => show(node, row) };
  };
  const draw = list(parent, { key: ({ place }) => String(place), make });
  return (rows) => draw(rows.map((row, place) => ({ row, place })));
}
