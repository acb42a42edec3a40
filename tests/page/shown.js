(() => {
  /** What a person reads of a node: without what is hidden from everybody or from those who listen. */
  const read = (node) => {
    if (node === null) return "";
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.nodeType !== Node.ELEMENT_NODE || node.hidden || node.getAttribute("aria-hidden") === "true") return "";
    return [...node.childNodes].map(read).join("");
  };
  const part = (root, name) => root.querySelector(`[part~="${name}"]`);
  const parts = (root, name) => [...root.querySelectorAll(`[part~="${name}"]`)];
  const there = (node) => node !== null && !node.hidden && node.checkVisibility();
  const row = (item) => ({ id: item.dataset.id, state: item.dataset.state, words: read(part(item, "words")) });
  const rows = (list) => (list === null ? [] : [...list.children].filter((item) => item.matches('[part~="activity"]')).map(row));
  const question = (card) => {
    const what = read(part(card, "what"));
    return { id: card.dataset.id, what, may: there(part(card, "approve")) };
  };
  /** The text of the answer may stand in a tree of pieces; hidden ones count, for they may only be out of sight. */
  const answer = (section) => {
    if (!there(section)) return null;
    return { name: read(part(section, "answer-name")), text: part(section, "answer-text").textContent };
  };
  const link = (item) => item.querySelector("a")?.getAttribute("href") ?? null;

  return (index) => {
    const element = document.querySelectorAll("agent-progress")[index];
    const root = element?.shadowRoot && part(element.shadowRoot, "run");
    if (!root) return null;
    return {
      status: root.dataset.status,
      sentence: read(part(root, "status")).trim(),
      title: read(part(root, "title")),
      details: [...(part(root, "details")?.children ?? [])].map(read),
      questions: parts(root, "question").filter((card) => there(part(card, "reject"))).map(question),
      work: rows(part(root, "work")),
      folded: rows(part(root, "folded")),
      answer: answer(part(root, "answer")),
      files: part(root, "files")?.children.length ?? 0,
      sources: [...(part(root, "sources")?.children ?? [])].map(link),
    };
  };
})()
