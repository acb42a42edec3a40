"""Logs for two reducers at once: valid ones, and the same with a few seeded faults of every kind a reader meets."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any, TypeAlias

from hypothesis import HealthCheck, Phase, given, settings

from agents_progress.events import Envelope
from agents_progress.verify import digest
from agents_progress.view import REMEMBERED
from tests.logs import RUN, envelope, logs

Feed: TypeAlias = "str | bytes"

HEX = "0123456789abcdef" * 4
PLACE = "@place@"
PARTS = 3

ODD = (
    *("null", "true", "false", "0", "-0", "1", "-1", "2", "1.0", "1e0", "-0.0", "1.5", "0.1", "1e-7", "5e-324", "1e16"),
    *("123456789012345680.0", "1e22", "-2.5e-5", "0.0001", "1e400", "-1E400", "9007199254740991", "9007199254740992"),
    *(
        "9007199254740993",
        "-9007199254740993",
        "123456789012345678901234567890",
        "1" * 4300,
        "1" * 4301,
        "-" + "1" * 4300,
    ),
    *(
        "01",
        "1.",
        ".5",
        "+1",
        "NaN",
        "Infinity",
        "tru",
        "",
        "'a'",
        "[1,]",
        '{"a":1,}',
        "undefined",
        "\u00a01",
        "\t1\r\n",
    ),
    *(
        '""',
        '"a"',
        '"\\u0000"',
        '"\\ud800"',
        '"a\\udfffb"',
        '"\\ud83d\\ude42"',
        '"\\\\ud800"',
        '"\u2028\u0085"',
        '"\x01"',
    ),
    *(
        '"\x7f"',
        '"\\x"',
        '"\\/\\b\\f"',
        '"__proto__"',
        '"constructor"',
        '"handoff:1"',
        '"stage:s"',
        '"c1\\n"',
        '"日本"',
    ),
    *(f'"{"x" * size}"' for size in (64, 65, 160, 161, 256, 257, 512, 513)),
    *(f'"{"🙂" * size}"' for size in (256, 257, 512, 513)),
    *(
        f'"{word}"'
        for word in ("answer", "reasoning", "succeeded", "paused", "failed", "approved", "function", "handoff")
    ),
    *(f'"{word}"' for word in ("immediate", "reported", "text.delta", "run.ended", "run.lost", "note.x", "brand.new")),
    *(f'"{word}"' for word in ("run-B", "run-A:1", "run-A:2", "2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00")),
    *(f'"{HEX}"', f'"{HEX.upper()}"', f'"{HEX}\\n"', "[]", "{}", '["a"]', '{"__proto__": {"a": 1}, "a": [null, 1.0]}'),
    *('{"a": 1, "a": 2}', '{"\uff5e": 1, "🙂": 2, "é": 3, "a": 4}', '{"run_id": "r", "call_id": "c"}', '{"b":1e400}'),
    *("[" * deep + "]" * deep for deep in (198, 199, 200, 201)),
    *('{"a":' * deep + "1" + "}" * deep for deep in (196, 197, 198, 199, 200)),
)
"""Fragments of JSON, right and wrong, that stand where something else stood."""


@cache
def drawn() -> list[list[Envelope]]:
    """Valid logs, drawn once."""
    found: list[list[Envelope]] = []

    @settings(
        max_examples=80 * PARTS,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(logs())
    def collect(log: list[Envelope]) -> None:
        found.append(log)

    collect()
    return found


def clean(log: list[Envelope]) -> list[Feed]:
    return [step.to_json().decode() for step in log]


def long(log: list[Envelope]) -> list[Feed]:
    """A log that goes on beyond what a view remembers, and then repeats itself here and there."""
    ticks = [envelope(len(log) + n, "note.tick", {"n": n / 2}) for n in range(1, 2 * REMEMBERED + 40)]
    feeds = clean([*log, *ticks])
    other = envelope(5, "note.other").to_json().decode()
    return [*feeds, *feeds[:20], *feeds[-30:], feeds[-REMEMBERED], feeds[-REMEMBERED - 1], other]


def damaged(log: list[Envelope], random: Random) -> list[Feed]:
    """The log after one to four faults."""
    feeds = clean(log)
    for _ in range(random.randint(1, 4)):
        random.choice(FAULTS)(feeds, random)
    return feeds


def _place(feeds: list[Feed], random: Random) -> int:
    return random.randrange(len(feeds)) if feeds else 0


def _fields(feeds: list[Feed], place: int) -> Any:
    try:
        return json.loads(feeds[place])
    except (ValueError, IndexError, RecursionError):
        return None


def _drop(feeds: list[Feed], random: Random) -> None:
    del feeds[_place(feeds, random) :][:1]


def _cut_off(feeds: list[Feed], random: Random) -> None:
    del feeds[_place(feeds, random) :]


def _swap(feeds: list[Feed], random: Random) -> None:
    one, other = _place(feeds, random), _place(feeds, random)
    if feeds:
        feeds[one], feeds[other] = feeds[other], feeds[one]


def _repeat(feeds: list[Feed], random: Random) -> None:
    for _ in range(random.randint(1, 4)):
        place = _place(feeds, random)
        if feeds:
            feeds.insert(random.randint(place, len(feeds)), feeds[place])


def _repeat_in_another_spelling(feeds: list[Feed], random: Random) -> None:
    place = _place(feeds, random)
    fields = _fields(feeds, place)
    if isinstance(fields, dict):
        feeds.append(
            json.dumps(_turned(fields, random), ensure_ascii=random.random() < 0.5, indent=random.choice((None, 1)))
        )


def _turned(value: Any, random: Random) -> Any:
    """The same content with its names in another order, and sometimes an integer written as a float."""
    if isinstance(value, dict):
        names = random.sample(list(value), len(value))
        return {name: _turned(value[name], random) for name in names}
    if isinstance(value, list):
        return [_turned(part, random) for part in value]
    return float(value) if type(value) is int and abs(value) < 2**60 and random.random() < 0.05 else value


def _replace_a_part(feeds: list[Feed], random: Random) -> None:
    place = _place(feeds, random)
    fields = _fields(feeds, place)
    if not isinstance(fields, dict):
        return
    inside = fields
    while random.random() < 0.7 and (deeper := [part for part in inside.values() if isinstance(part, dict) and part]):
        inside = random.choice(deeper)
    name = random.choice([*inside, "x", "extra", "__proto__", "text", "title", "channel"])
    inside[name] = PLACE
    feeds[place] = json.dumps(fields, ensure_ascii=False).replace(f'"{PLACE}"', random.choice(ODD))


def _leave_a_part_out(feeds: list[Feed], random: Random) -> None:
    place = _place(feeds, random)
    fields = _fields(feeds, place)
    if isinstance(fields, dict) and isinstance(payload := fields.get("payload"), dict):
        inside = payload if payload and random.random() < 0.7 else fields
        del inside[random.choice(list(inside))]
        feeds[place] = json.dumps(fields)


def _rename(feeds: list[Feed], random: Random) -> None:
    place = _place(feeds, random)
    fields = _fields(feeds, place)
    if isinstance(fields, dict):
        fields[random.choice(("event_id", "run_id"))] = random.choice(("run-B", "run-A:1", "run-A:3", "other", "run-A"))
        feeds.insert(random.randint(0, len(feeds)), json.dumps(fields))


def _insert_noise(feeds: list[Feed], random: Random) -> None:
    noise: list[Feed] = [
        "",
        "{}",
        "[]",
        "null",
        "\ud800",
        "NaN",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"",
        '"a"',
        "[[",
        "{" * 300,
    ]
    text = feeds[_place(feeds, random)] if feeds else ""
    torn = text[: random.randrange(len(text) + 1)]
    broken = (text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")).replace(b"a", b"\xc3", 1)
    feeds.insert(random.randint(0, len(feeds)), random.choice([*noise, torn, broken]))


def _say_more(feeds: list[Feed], random: Random) -> None:
    """Goes on after what came last, whatever that was: late events, second endings, verdicts."""
    last = _fields(feeds, len(feeds) - 1)
    seq = last["seq"] if isinstance(last, dict) and type(last.get("seq")) is int else len(feeds)
    for type_, payload in random.choice((*STORIES, random.choices(LATE, k=random.randint(1, 3)))):
        seq += 1
        feeds.append(envelope(seq, type_, payload).to_json().decode())


LATE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("run.ended", {"outcome": "succeeded", "final_output": "x"}),
    ("run.ended", {"outcome": "failed", "final_output": None, "x": {"a": 1.0}}),
    ("run.lost", {"reason": "lease_expired"}),
    ("app.checked", {"digest": HEX, "ok": True}),
    ("text.delta", {"item_id": "m1", "index": 0, "text": "late"}),
    ("text.delta", {"item_id": "m9", "index": 3, "text": "no start"}),
    ("tool.requested", {"call_id": "c1", "name": "n", "kind": "function"}),
    ("tool.requested", {"call_id": "__proto__", "name": "n", "kind": "mcp"}),
    ("tool.started", {"call_id": "c1"}),
    ("tool.finished", {"call_id": "__proto__"}),
    ("handoff.completed", {"from_agent": "A", "to_agent": "B"}),
    ("approval.wait", {"interaction_id": "ask-1", "call_id": None, "tool": "t", "title": "T", "x": {}}),
    ("approval.resolved", {"interaction_id": "ask-1", "decision": "approved"}),
    ("run.started", {"agent": "A", "task_id": "t", "parent": None, "resumed_from": None}),
    ("run.accepted", {"task_id": "t"}),
    ("cancel.requested", {}),
    ("adapter.unsupported", {"what": "item", "name": "n"}),
    ("run.completed", {}),
    ("note.x", {"a": 0.1, "b": 1e22, "🙂": -0.0, "\uff5e": 2**70}),
)

STORIES: tuple[list[tuple[str, dict[str, Any]]], ...] = (
    [("cancel.requested", {}), ("run.ended", {"outcome": "succeeded", "final_output": None})],
    [
        ("handoff.requested", {"from_agent": "A", "to_agent": "B"}),
        ("handoff.requested", {"from_agent": "A", "to_agent": "C"}),
        ("handoff.completed", {"from_agent": "D", "to_agent": "B"}),
        ("handoff.completed", {"from_agent": "A", "to_agent": "E"}),
    ],
    [
        ("tool.requested", {"call_id": "c9/2", "name": "n", "kind": "shell"}),
        ("tool.progress", {"call_id": "c9/2", "message": "m", "current": 1.0, "total": 2**60}),
        ("tool.arguments.delta", {"call_id": "c9/2", "index": 0, "text": "{"}),
        ("tool.rejected", {"call_id": "c9/2", "reason": "r"}),
        ("run.ended", {"outcome": "succeeded", "final_output": "🙂"}),
        ("app.checked", {"digest": digest("🙂"), "ok": True}),
    ],
)

FAULTS: tuple[Callable[[list[Feed], Random], None], ...] = (
    _drop,
    _cut_off,
    _swap,
    _repeat,
    _repeat_in_another_spelling,
    _replace_a_part,
    _replace_a_part,
    _replace_a_part,
    _leave_a_part_out,
    _rename,
    _insert_noise,
    _say_more,
    _say_more,
)


def as_json(feed: Feed) -> dict[str, str]:
    """A feed for the driver, which reads JSON lines."""
    return {"text": feed} if isinstance(feed, str) else {"base64": base64.b64encode(feed).decode()}


def many(part: int) -> list[list[Feed]]:
    """A part of the valid logs, twelve damaged versions of each, and two that are long."""
    random, valid = Random(part), drawn()[part::PARTS]
    found = [clean(log) for log in valid]
    found += [damaged(log, random) for log in valid for _ in range(12)]
    return found + [long(log) for log in valid[:2]]


assert RUN == "run-A"  # what the fragments above speak of
