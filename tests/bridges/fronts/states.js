// The states that a user saw of a conversation. One who sends a message still sees for a moment how the last one ended.

export class States {
  #seen = [];
  #sent = false;

  send() {
    this.#seen = [];
    this.#sent = true;
  }

  saw(state) {
    if (this.#sent && state !== "working") return;
    this.#sent = false;
    this.#seen.push(state);
  }

  // Those since it was last asked.
  taken() {
    return this.#seen.splice(0);
  }
}
