/**
 * Whether the reader is taken along as a run grows: only one who saw its end, and nobody else is moved.
 *
 * The page scrolls, not a box in it, so that it goes on scrolling as it does on a phone, with a keyboard and on paper.
 */

/** Fractions of a pixel by which a place may be off after scrolling to it. */
const NEAR = 1.5;

export class Scroll {
  #follows = false;
  /** @type {Element[]} what scrolls around the end, beside the window */
  #boxes = [];

  /**
   * @param {Element} end that comes after everything that grows
   * @param {() => void} onMoved when the reader went elsewhere
   */
  constructor(end, onMoved) {
    this.end = end;
    this.onMoved = onMoved;
    this.look = this.look.bind(this);
  }

  /** Watches where the reader goes, whatever it is that scrolls. */
  enter() {
    this.#boxes = [...boxesAround(this.end)];
    addEventListener("scroll", this.look, { capture: true, passive: true });
    addEventListener("resize", this.look, { passive: true });
  }

  leave() {
    removeEventListener("scroll", this.look, { capture: true });
    removeEventListener("resize", this.look);
  }

  /** Begins to follow if the end is seen with what was drawn first: nobody is taken to the end of what is there. */
  begin() {
    this.#follows = this.sees(this.end);
  }

  look() {
    this.#follows = this.sees(this.end);
    this.onMoved();
  }

  /** Takes the reader along. Gives whether there is something new that they do not see. */
  grown() {
    if (this.sees(this.end)) return false;
    if (this.#follows) this.toEnd();
    return !this.#follows;
  }

  /** Brings the end into sight. */
  toEnd() {
    this.end.scrollIntoView({ block: "end", behavior: "instant" });
    this.#follows = true;
  }

  /** Whether the lower edge of something is in sight. */
  sees(node) {
    const { bottom } = node.getBoundingClientRect();
    const lowest = Math.min(innerHeight, ...this.#boxes.map((box) => box.getBoundingClientRect().bottom));
    return bottom > 0 && bottom <= lowest + NEAR;
  }
}

/** The elements around one that scroll, beyond the shadow roots it is in. */
function* boxesAround(node) {
  for (let box = node; box; box = box.parentElement ?? box.getRootNode().host) {
    if (/auto|scroll/.test(getComputedStyle(box).overflowY) && box !== document.scrollingElement) yield box;
  }
}
