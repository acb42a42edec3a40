"""The page of a report: its facts as HTML, the verdict first. It fetches nothing, runs nothing and prints well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from agents_progress.labels import DECISION_LABELS
from agents_progress.messages import Language
from agents_progress.render import acted_text
from agents_progress.report.drawing import Scale, pictures
from agents_progress.report.markup import Inside, Markup, document, element, foreign, together, written
from agents_progress.report.words import Facts, Word, alone, duration, kind_and_name, moment, note, state, value, word
from agents_progress.spans import TOKENS

MOST_DRAWN: Final = 200
MOST_LISTED: Final = 1000
"""Spans in the drawing and rows in a table, at most; the page says how many it leaves out."""
_MARKS: Final = {
    "accepted": "○",
    "running": "▸",
    "waiting": "?",
    "cancelling": "▪",
    "checking": "…",
    "done": "✓",
    "rejected": "✗",
    "cancelled": "▪",
    "failed": "!",
    "incomplete": "–",
    "unknown": "?",
}
"""Beside the sentence of a status, never instead of it."""


def page(facts: Facts) -> str:
    """The page of what :func:`agents_progress.report.facts.gather` gave, as ASCII text."""
    language: Language = facts["language"]
    title = word("report", language, run_id=facts["run_id"])
    return document(
        language, f"{title}: {facts['message']}", _style(), *(section(facts, language) for section in _SECTIONS)
    )


@cache
def _style() -> str:
    return files("agents_progress.report").joinpath("report.css").read_text(encoding="ascii")


# The verdict.


def _head(facts: Facts, language: Language) -> Inside:
    status, row = facts["status"], facts["row"]
    reasons = list(facts["reasons"])
    if row is not None:
        reasons.append(word("decided_by", language, **row))
    mark = element("span", _MARKS[status], class_="mark", aria_hidden="true")
    return element(
        "header",
        element("p", word("report", language, run_id=facts["run_id"]), class_="quiet"),
        element("h1", foreign(facts["title"] or facts["run_id"])),
        element(
            "div",
            element("strong", mark, " ", facts["message"]),
            None if facts["over"] else element("p", word("report_open", language), class_="not-over"),
            _list(map(foreign, reasons)),
            class_=f"status {status}",
        ),
        element("p", _around("report_made", "when", _time(facts["written_at"]), language), class_="quiet"),
    )


def _effects(facts: Facts, language: Language) -> Inside:
    """What whoever reads this must look after first."""
    found = facts["effects"]
    if not found:
        return None
    shown = (f"{effect['title']} ({acted_text(effect['state'], effect['note'], language)})" for effect in found)
    words = alone(word("effects", language, names=""))
    return element("section", element("h2", words), _list(map(foreign, shown)), class_="warning")


def _issues(facts: Facts, language: Language) -> Inside:
    if not facts["issues"]:
        return None
    words = alone(word("issues", language, codes=""))
    places = [together(element("code", issue["code"]), " · ", issue["run_id"]) for issue in facts["issues"]]
    return element("section", element("h2", words), _list(places), class_="warning")


def _answer(facts: Facts, language: Language) -> Inside:
    answer = facts["answer"]
    if answer is None:
        return None
    missing = element("p", word("beginning_missing", language)) if answer["missing_start"] else None
    text = element("div", written(answer["text"]), class_="answer", dir="auto")
    return element("section", element("h2", alone(answer["name"])), missing, text)


def _questions(facts: Facts, language: Language) -> Inside:
    return _section("questions", language, _list(_question(each, language) for each in facts["questions"]))


def _question(question: Facts, language: Language) -> Markup:
    decision = question["decision"]
    text = word("question" if decision is None else DECISION_LABELS[decision], language, **_named(question))
    more = [word("answered_by", language, name=question["actor"])] if question["actor"] else []
    more += [word("edited", language)] if question["edited"] else []
    if decision is None and question["expires_at"]:
        more.append(word("expires", language, when=question["expires_at"]))
    details = question["details"]
    shown = None if details is None else together(element("br"), word("exactly", language), " ")
    return together(foreign(" · ".join([text, *more])), shown, details and element("code", details, dir="auto"))


def _named(question: Facts) -> dict[str, Any]:
    return {"title": question["title"], "tool": question["tool"]}


# The timeline.


def _timeline(facts: Facts, language: Language) -> Inside:
    spans, total = facts["timeline"]["spans"], facts["timeline"]["duration_ms"]
    timed = [span for span in spans if span["start_ms"] is not None]
    scale = Scale(timed, total)
    remarks: list[Word] = ["times_gone"] if facts["timeline"]["pruned"] else []
    drawn = [
        element("p", _left_out(part, language))
        if isinstance(part, int)
        else list(pictures(part, scale, total, language))
        for part in _within(timed, MOST_DRAWN)
    ]
    figure = element("figure", *drawn) if timed else None
    remarks += ["shortened"] if scale.shortened and timed else []
    words = [
        _whole(facts["timeline"], language),
        *(element("p", word(remark, language), class_="quiet") for remark in remarks),
    ]
    head: list[Word] = ["work", "status_name", "start_name", "end_name", "duration_name"]
    table = _table(language, head, spans, lambda span: _span(span, language), texts=2)
    return _section("timeline", language, table and [words, figure, table])


def _whole(timeline: Facts, language: Language) -> Markup | None:
    if timeline["started_at"] is None:
        return None
    start, taken = word("start_name", language), word("duration_name", language)
    parts = [f"{start} ", _time(timeline["started_at"]), f" · {taken} ", _milliseconds(timeline["duration_ms"])]
    return element("p", parts, class_="quiet")


def _span(span: Facts, language: Language) -> Markup:
    kind, name = kind_and_name(span, language)
    more = note(span, language)
    what = [element("span", kind, class_="kind"), " ", foreign(name)]
    taken = _milliseconds(span["duration_ms"])
    if span["open"] and taken is not None:
        taken = _around("until_last", "duration", taken, language)
    elif span["approximate"] and taken is not None:
        taken = _around("approximate", "duration", taken, language)
    bad = span["state"] in ("failed", "rejected", "incomplete")
    shown = element("span", state(span, language), class_="bad" if bad else None)
    return element(
        "tr",
        element("th", what, scope="row", class_=f"in-{min(span['depth'], 3)}" if span["depth"] else None),
        element("td", shown, more and [" · ", foreign(more)], class_="state"),
        element("td", _milliseconds(span["start_ms"]), class_="number"),
        element("td", _milliseconds(span["end_ms"]), class_="number"),
        element("td", taken, class_="number"),
    )


def _milliseconds(ms: int | None) -> Markup | None:
    return None if ms is None else element("data", duration(ms), value=ms)


def _around(name: Word, key: str, inside: Markup, language: Language) -> Markup:
    """A label around something that is markup already."""
    before, _, after = word(name, language, **{key: "\0"}).partition("\0")
    return together(before, inside, after)


def _time(stamp: str) -> Markup:
    return element("time", moment(stamp), datetime=stamp)


def _tokens(facts: Facts, language: Language) -> Inside:
    usage = facts["usage"]
    if usage is None:
        return None
    rows = [span for span in facts["timeline"]["spans"] if span["kind"] == "response"]
    total = word("total", language)
    if usage["status"] != "reported":
        total = f"{total} ({word('at_least', language, amount='').strip()})"
    foot = element("tr", element("th", total, scope="row"), [_count(usage[name]) for name in TOKENS])
    table = _table(
        language, ["model_response", *_TOKEN_HEADS], rows, _response_row(), texts=1, foot=foot, class_="tokens"
    )
    return _section("tokens_name", language, table, _cost(facts["cost"], language))


def _cost(cost: Facts | None, language: Language) -> Markup | None:
    if cost is None:
        return None
    amount = element("data", f"{cost['amount']} {cost['currency']}", value=cost["amount"])
    name = word("cost_name", language)
    shown = _around("at_least", "amount", amount, language) if cost["at_least"] else amount
    return element("p", f"{name}: ", shown)


_TOKEN_HEADS: Final[Sequence[Word]] = ("input_tokens", "output_tokens", "total", "cached_tokens", "reasoning_tokens")


def _response_row() -> Callable[[Facts], Markup]:
    """Numbers the responses as they come."""
    numbers = iter(range(1, 10**9))

    def row(span: Facts) -> Markup:
        counts = span["tokens"] or dict.fromkeys(TOKENS)
        what = element(
            "th", str(next(numbers)), " ", element("span", foreign(span["name"]), class_="kind"), scope="row"
        )
        return element("tr", what, [_count(counts[name]) for name in TOKENS])

    return row


def _count(count: int | None) -> Markup:
    return element("td", "–" if count is None else element("data", f"{count:,}", value=count), class_="number")


# What it rests on.


def _evidence(facts: Facts, language: Language) -> Inside:
    found: dict[str, list[Facts]] = {}
    for fact in facts["evidence"]:
        found.setdefault(fact["about"], []).append(fact)
    groups = (
        element(
            "tbody", element("tr", element("th", word(_ABOUT[about], language), colspan=2, scope="rowgroup")), *rows
        )
        for about, group in found.items()
        for rows in [[_fact(fact, language) for fact in group]]
    )
    return _section(
        "evidence", language, element("table", _heads(["fact_name", "value_name"], language), *groups, class_="facts")
    )


_ABOUT: Final[dict[str, Word]] = {"ending": "ending", "evidence": "evidence"}


def _fact(fact: Facts, language: Language) -> Markup:
    decided = [" · ", word("decided", language)] if fact["decided"] else None
    return element(
        "tr",
        element("th", element("code", fact["name"]), scope="row"),
        element("td", element("code", value(fact["value"]), dir="auto"), decided),
        class_="decided" if fact["decided"] else None,
    )


def _check(facts: Facts, language: Language) -> Inside:
    check = facts["check"]
    if check is None:
        return None
    shown = [word("accepted" if check["ok"] else "rejected", language)]
    shown += [word("check", language, name=check["check"])] if check["check"] else []
    shown += [word("check_reason", language, reason=check["reason"])] if check["reason"] else []
    digest = together("SHA-256 ", element("code", check["digest"]))
    return _section("verdict", language, _list([*map(foreign, shown), digest]))


def _sources(facts: Facts, language: Language) -> Inside:
    return _section("sources", language, _list(_source(source) for source in facts["sources"]))


def _source(source: Facts) -> Markup:
    """A link only where it leads to the web; any other address is text."""
    url, text = source["url"], source["title"] or source["url"] or source["kind"]
    if not url or not url.lower().startswith(("http://", "https://")):
        return together(foreign(text), f" {url}" if url and url != text else None)
    link = element("a", foreign(text), href=url, rel="noopener noreferrer nofollow")
    return together(link, [" ", element("code", url)] if url != text else None)


def _files(facts: Facts, language: Language) -> Inside:
    return _section("files", language, _list(_file(item, language) for item in facts["artifacts"]))


def _file(item: Facts, language: Language) -> Markup:
    words = {"name": item["name"], "media_type": item["media_type"], "size": f"{item['bytes']:,}"}
    digest = together(element("br"), "SHA-256 ", element("code", item["sha256"])) if item["sha256"] else None
    return together(foreign(word("artifact", language, **words)), digest)


def _runs(facts: Facts, language: Language) -> Inside:
    def row(run: Facts) -> Markup:
        later = run["continued_as"]
        return element(
            "tr",
            element("th", element("code", run["run_id"]), scope="row"),
            element("td", run["message"] if later is None else word("continued_as", language, run_id=later)),
            element("td", _time(run["started_at"])),
            element("td", _milliseconds(run["duration_ms"]), class_="number"),
        )

    head: list[Word] = ["run_name", "status_name", "start_name", "duration_name"]
    older = element("p", word("runs_left_out", language)) if facts["older_runs"] else None
    task = element("p", word("in_task", language, task_id=facts["task_id"] or "–"), class_="quiet")
    return _section("runs", language, task, older, _table(language, head, facts["runs"], row, texts=3))


def _versions(facts: Facts, language: Language) -> Inside:
    items = [f"{name} {version}" for name, version in facts["versions"].items()]
    return _section("versions", language, element("p", foreign(" · ".join(items))) if items else None)


_SECTIONS: Final[Sequence[Callable[[Facts, Language], Inside]]] = (
    _head,
    _effects,
    _issues,
    _answer,
    _check,
    _questions,
    _timeline,
    _tokens,
    _evidence,
    _sources,
    _files,
    _runs,
    _versions,
)
"""The page from its top."""


# Forms.


def _section(name: Word, language: Language, *inside: Inside) -> Inside:
    """A section with its heading; nothing where there is nothing in it."""
    shown = together(*inside)
    return element("section", element("h2", word(name, language)), shown) if shown else None


def _list(items: Iterable[Inside]) -> Markup | None:
    shown = [element("li", item) for item in items]
    return element("ul", shown) if shown else None


def _table(
    language: Language,
    head: Sequence[Word],
    rows: Sequence[Facts],
    row: Callable[[Facts], Markup],
    *,
    texts: int = 9,
    foot: Markup | None = None,
    class_: str | None = None,
) -> Markup | None:
    """A table of so many rows as a page may have; the first ``texts`` columns are texts, the others numbers."""
    if not rows and foot is None:
        return None
    body: list[Inside] = []
    for part in _within(rows, MOST_LISTED):
        if isinstance(part, int):
            body.append(element("tr", element("td", _left_out(part, language), colspan=len(head))))
        else:
            body.extend(map(row, part))
    foots = foot and element("tfoot", foot)
    return element("table", _heads(head, language, texts), element("tbody", body), foots, class_=class_)


def _heads(names: Sequence[Word], language: Language, texts: int = 9) -> Markup:
    heads = (
        element("th", word(name, language), scope="col", class_="number" if place >= texts else None)
        for place, name in enumerate(names)
    )
    return element("thead", element("tr", heads))


def _within(rows: Sequence[Facts], most: int) -> Iterator[Sequence[Facts] | int]:
    """The rows, or the first and the last of them and how many lie between."""
    if len(rows) <= most:
        yield rows
        return
    yield rows[: most // 2]
    yield len(rows) - 2 * (most // 2)
    yield rows[-(most // 2) :]


def _left_out(count: int, language: Language) -> str:
    return word("left_out", language, count=count)
