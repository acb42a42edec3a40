/** What became different between two views of a run, as sentences for those who listen. */

import { activityText } from "./texts.js";

/** The subject of a sentence about the run itself. */
export const STATUS = "status";

export class Changes {
  #run_id = null;
  #status = "";
  /** @type {Map<string, string>} */
  #states = new Map();

  /**
   * The sentences that a view adds: its status, and the rows that entered another state. Of the first view of a run
   * only the status is news. What a tool counts is none.
   *
   * @param {import("./view.js").RunView} view
   * @returns {[subject: string, sentence: string][]}
   */
  of(view) {
    const first = view.run_id !== this.#run_id;
    this.#run_id = view.run_id;
    const news = this.#status === view.status ? [] : [[STATUS, view.message]];
    this.#status = view.status;
    for (const row of view.activities) {
      if (this.#states.get(row.activity_id) === row.state) continue;
      this.#states.set(row.activity_id, row.state);
      if (!first) news.push([row.activity_id, activityText(row, view.language)]);
    }
    return news;
  }
}
