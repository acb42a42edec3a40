/**
 * Questions to a person, a card each, and what became of those that were asked.
 *
 * A card is made of what it shows. Where that changes there is another card with other buttons, so that no answer goes
 * to a question that was not seen.
 */

import { Card } from "./card.js";
import { element, list, mark, write } from "./draw.js";
import { openQuestions, questionText } from "./texts.js";

export class Questions {
  /** @type {Map<string, {shown: string, card: Card}>} the newest card of each question */
  #newest = new Map();

  /** @param {import("./card.js").Send} send */
  constructor(send) {
    this.send = send;
    this.cards = element("div", { part: "questions", hidden: true });
    this.decided = element("ul", { part: "decided", hidden: true });
    this.nodes = [this.cards, this.decided];
    this.drawCards = list(this.cards, { key: shownOf, make: (row) => this.#cardOf(row) });
    this.drawDecided = list(this.decided, { key: ({ interaction_id }) => interaction_id, make: () => new Decided() });
  }

  /**
   * Gives the card of a question that was not asked before, if there is one.
   *
   * @param {import("./view.js").RunView} view
   * @param {boolean} readonly
   * @returns {Element | null}
   */
  draw(view, readonly) {
    const known = this.#newest.size;
    this.drawCards(openQuestions(view), { view, readonly });
    this.drawDecided([...view.interactions.values()].filter(({ decision }) => decision !== null), view.language);
    return this.#newest.size > known ? this.cards.lastElementChild : null;
  }

  /** The card that took the place of the one in which a node was, if there is one. */
  heir(node) {
    const card = this.#newest.get(node.closest("article")?.dataset.id)?.card.node;
    return card?.isConnected ? card : null;
  }

  #cardOf(row) {
    const before = this.#newest.get(row.interaction_id);
    const shown = shownOf(row);
    if (before?.shown === shown) return before.card; // it comes back, with what was typed
    const card = new Card(row, this.send, before?.card);
    this.#newest.set(row.interaction_id, { shown, card });
    return card;
  }
}

/** Everything of a question that a card shows or sends. */
const SHOWN = [
  "interaction_id", "tool", "title", "kind", "digest", "details", "expires_at", "approve_blind", "takes", "options_in",
];
const shownOf = (row) => JSON.stringify(SHOWN.map((name) => row[name]));

/** A question that was answered, expired or withdrawn, in a line. */
class Decided {
  node = element("li", { dir: "auto" });

  draw(row, language) {
    mark(this.node, { "data-id": row.interaction_id });
    write(this.node, questionText(row, language));
  }
}
