/**
 * The shapes that stand beside the words of a status or a row: one each, so that nobody needs to see a colour. The
 * check mark belongs to `done` alone, and a row that returned has a dash.
 */

import { drawing } from "./draw.js";

const CIRCLE = "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18";
const OCTAGON = "M8.3 3h7.4L21 8.3v7.4L15.7 21H8.3L3 15.7V8.3z";
const EXCLAMATION = "M12 8v5M12 16h.01";

/** By status. */
export const STATUS_ICONS = {
  accepted: `${CIRCLE}M12 7.5V12l3 2`,
  running: "M12 3a9 9 0 1 1-9 9",
  waiting: "M4 4h16v12h-7l-5 4v-4H4zM12 7v3.5M12 13h.01",
  cancelling: `${CIRCLE}M9.5 9.5h5v5h-5z`,
  checking: "M10.5 4a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13M15.2 15.2L20 20",
  done: `${CIRCLE}M8 12.3l2.8 2.8L16 9.5`,
  rejected: "M5 4h14v16H5zM9.2 9.2l5.6 5.6M14.8 9.2l-5.6 5.6",
  cancelled: `${CIRCLE}M5.7 5.7l12.6 12.6`,
  failed: `${OCTAGON}${EXCLAMATION}`,
  incomplete: "M3 12h11M10 8l4 4-4 4M19 4v16",
  unknown: "M12 2.5L21.5 12L12 21.5L2.5 12zM10 10.2a2 2 0 1 1 2.7 1.9c-.5.2-.7.5-.7 1.2M12 16h.01",
};

/** By state of a row. */
export const ROW_ICONS = {
  requested: "M12 7.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9",
  running: "M8 5.5l10 6.5-10 6.5z",
  returned: "M6 12h12",
  failed: `${OCTAGON}${EXCLAMATION}`,
  rejected: `${CIRCLE}M5.7 5.7l12.6 12.6`,
  skipped: "M5 7l5 5-5 5M13 7l5 5-5 5",
};

/** Shows the icon of a name in a node, once per name. */
export function showIcon(node, icons, name) {
  if (node.dataset.icon === name) return;
  node.dataset.icon = name;
  node.replaceChildren(drawing(icons[name]));
}
