(() => {
  /** What a person reads of a node: without what is hidden from everybody, or from those who listen. */
  const read = (node) => {
    if (node === null) return "";
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.nodeType !== Node.ELEMENT_NODE || node.hidden || node.getAttribute("aria-hidden") === "true") return "";
    return [...node.childNodes].map(read).join("");
  };
  const there = (node) => node !== null && node.checkVisibility();
  const readHere = (node) => (there(node) ? read(node) : "");
  const children = (list) => (there(list) ? [...list.children] : []);

  const shown = (element) => {
    const part = (name, within = element.shadowRoot) => within.querySelector(`[part~="${name}"]`);
    if (!element.shadowRoot || !part("run")) return null;
    const row = (item) => ({ id: item.dataset.id, state: item.dataset.state, words: read(part("words", item)) });
    const question = (card) => ({
      id: card.dataset.id,
      what: readHere(part("what", card)).replace(/\s+/g, ""), // space between what belongs together may be laid out
      approve: there(part("approve", card)),
      reject: there(part("reject", card)),
    });
    return {
      status: part("run").dataset.status,
      sentence: read(part("status")),
      title: readHere(part("title")),
      details: children(part("details")).map(read),
      questions: children(part("questions")).filter(there).map(question),
      work: children(part("work")).map(row),
      fold: readHere(part("fold")) || null,
      folded: children(part("folded")).map(row),
      answer: there(part("answer")) ? [readHere(part("answer-name")), part("answer-text").textContent] : null,
      files: children(part("files")).map(read),
      sources: children(part("sources")).map(read),
      usage: children(part("usage")).map(read),
    };
  };

  return () => [...document.querySelectorAll("agent-progress")].map(shown);
})()
