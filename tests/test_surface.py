"""The drift alarm: what the installed SDK has and has not, each thing by its name."""

from __future__ import annotations

import ast
import importlib
import json
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import agents.exceptions
import agents.items
import agents.lifecycle
import agents.result
import agents.stream_events
import openai.types.responses
import pytest
from pydantic import BaseModel

from agents_progress import cli
from agents_progress.sdk import compat
from agents_progress.sdk.surface import (
    CONSEQUENCES,
    NEEDS,
    Difference,
    differences,
    surface,
    verified_surface,
)
from agents_progress.sdk.translate import RAW_EVENTS, RUN_ITEMS

ROOT = Path(__file__).parent.parent
VERIFIED = verified_surface()
BASE = surface()
"""What is installed, before anything is planted: what follows holds for every release."""

AGAINST = "compared with " + " and ".join(f"{package} {release}" for package, release in VERIFIED["of"].items())

Patch = pytest.MonkeyPatch


def found(kind: str | None = None) -> list[tuple[str, str, str]]:
    """What differs now from what is installed."""
    items = differences(BASE, surface())
    return [(item.kind, item.section, item.fact) for item in items if kind in (None, item.kind)]


# The verified surface.


def test_nothing_that_is_needed_is_lost_and_the_verified_releases_have_the_verified_surface() -> None:
    changed = differences(VERIFIED["facts"], BASE)
    assert [item for item in changed if item.kind == "lost"] == []
    if VERIFIED["of"] == {package: version(package) for package in VERIFIED["of"]}:
        assert changed == [], "`python -m agents_progress.sdk.surface > agents_progress/sdk/surface.json` writes it"


def test_the_verified_surface_is_that_of_the_newest_verified_release() -> None:
    assert VERIFIED["of"]["openai-agents"] == max(compat.VERIFIED, key=compat.release)


def test_the_verified_surface_is_plain_sorted_and_without_doubles() -> None:
    assert list(VERIFIED["facts"]) == list(CONSEQUENCES)
    for section, facts in VERIFIED["facts"].items():
        assert facts == sorted(set(facts)) and facts, section
    assert json.loads(json.dumps(BASE)) == BASE == surface()


def test_everything_that_is_needed_was_verified() -> None:
    for section, needs in NEEDS.items():
        assert set(needs) <= set(VERIFIED["facts"][section]), section


def test_every_verified_event_is_translated_or_dropped_on_purpose() -> None:
    assert set(VERIFIED["facts"]["raw event"]) == set(RAW_EVENTS)
    assert set(VERIFIED["facts"]["run item event"]) == set(RUN_ITEMS) - {"handoff_occurred"}


def test_every_attribute_of_the_result_that_the_adapter_reads_is_needed_by_name() -> None:
    read = set()
    for file in (ROOT / "agents_progress" / "sdk").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("result", "self.result"):
                read.add(f"RunResultStreaming.{node.attr}")
    assert read - {"RunResultStreaming.__dict__"} <= set(NEEDS["attribute"])


# What a new release may bring. Each is planted in the SDK's own modules, and reported by its name.


class BrandNewEvent(BaseModel):
    type: Literal["response.brand_new.delta"]


@dataclass
class BrandNewItem:
    type: Literal["brand_new_item"] = "brand_new_item"


@dataclass
class BrandNewStreamEvent:
    type: Literal["brand_new_stream_event"] = "brand_new_stream_event"


class BrandNewError(agents.exceptions.AgentsException):
    __module__ = "agents.exceptions"


async def on_tool_end(self: Any, context: Any, agent: Any, tool: Any, result: Any, brand_new: Any) -> None: ...


async def on_brand_new(self: Any, context: Any) -> None: ...


def raw_event(patch: Patch) -> None:
    union = openai.types.responses.ResponseStreamEvent
    patch.setattr(openai.types.responses, "ResponseStreamEvent", union | BrandNewEvent)


def item_name(patch: Patch) -> None:
    names = Literal[(*BASE["run item event"], "brand_new_created")]  # type: ignore[misc]
    patch.setitem(agents.stream_events.RunItemStreamEvent.__annotations__, "name", names)


def item_class(patch: Patch) -> None:
    patch.setattr(agents.items, "RunItem", agents.items.RunItem | BrandNewItem)


def stream_event(patch: Patch) -> None:
    patch.setattr(agents.stream_events, "StreamEvent", agents.stream_events.StreamEvent | BrandNewStreamEvent)


PLANTED: dict[str, tuple[Callable[[Patch], None], str, str]] = {
    "raw type": (raw_event, "raw event", "response.brand_new.delta"),
    "item name": (item_name, "run item event", "brand_new_created"),
    "item class": (item_class, "run item", "BrandNewItem (brand_new_item)"),
    "stream event": (stream_event, "stream event", "BrandNewStreamEvent (brand_new_stream_event)"),
    "attribute": (
        lambda patch: patch.setattr(agents.result.RunResultStreaming, "brand_new", None, raising=False),
        "attribute",
        "RunResultStreaming.brand_new",
    ),
    "hook parameter": (
        lambda patch: patch.setattr(agents.lifecycle.RunHooksBase, "on_tool_end", on_tool_end),
        "parameter",
        "RunHooksBase.on_tool_end(brand_new)",
    ),
    "hook": (
        lambda patch: patch.setattr(agents.lifecycle.RunHooksBase, "on_brand_new", on_brand_new, raising=False),
        "parameter",
        "RunHooksBase.on_brand_new(context)",
    ),
    "exception": (
        lambda patch: patch.setattr(agents.exceptions, "BrandNewError", BrandNewError, raising=False),
        "exception",
        "agents.BrandNewError",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_a_new_release_brings_is_reported_by_its_name(name: str, monkeypatch: Patch) -> None:
    plant, section, fact = PLANTED[name]
    plant(monkeypatch)
    assert found() == [("new", section, fact)]
    (line,) = map(str, differences(BASE, surface()))
    assert fact in line and line.startswith("new ") and "{" not in line


def test_a_new_response_code_and_a_new_exception_say_what_becomes_of_them(monkeypatch: Patch) -> None:
    planted = type("BrandNewSandboxError", (agents.exceptions.UserError,), {"__module__": "agents.exceptions"})
    monkeypatch.setattr(agents.exceptions, "BrandNewSandboxError", planted, raising=False)
    code = openai.types.responses.ResponseError.model_fields["code"]
    monkeypatch.setattr(code, "annotation", Literal[(*BASE["response code"], "brand_new")])
    assert [str(item) for item in differences(BASE, surface())] == [
        "new   exception agents.BrandNewSandboxError: reported as usage_error",
        "new   response code brand_new: reported as model_failed until this library knows it",
    ]


def test_a_whole_module_of_a_fake_sdk_is_read_like_the_real_one(monkeypatch: Patch) -> None:
    fake = types.ModuleType("agents.lifecycle")

    class RunHooksBase:
        async def on_tool_start(self, context: Any, agent: Any, tool: Any, brand_new: Any) -> None: ...

    fake.RunHooksBase = RunHooksBase  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "agents.lifecycle", fake)
    assert importlib.import_module("agents.lifecycle") is fake
    assert found("new") == [("new", "parameter", "RunHooksBase.on_tool_start(brand_new)")]
    assert ("lost", "parameter", "RunHooksBase.on_tool_end(context)") in found()
    assert ("gone", "parameter", "AgentHooksBase.on_start(agent)") in found()


def test_a_module_that_is_gone_loses_what_was_needed_of_it_and_raises_nothing(monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "agents.run_state", None)
    gone = ("_context", "approve", "from_json", "get_interruptions", "reject", "to_json")
    lost = [("attribute", f"RunState.{name}") for name in gone] + [("parameter", "RunState.reject(rejection_message)")]
    assert found("lost") == [("lost", *each) for each in lost]


# What a new release may take away.


@pytest.mark.parametrize(("section", "fact"), [(section, fact) for section in NEEDS for fact in NEEDS[section]])
def test_everything_needed_that_is_gone_is_lost_and_says_what_it_was_for(section: str, fact: str) -> None:
    facts = VERIFIED["facts"]
    left = {**facts, section: [other for other in facts[section] if other != fact]}
    assert differences(facts, left) == [Difference("lost", section, fact, NEEDS[section][fact])]
    assert str(differences(facts, left)[0]) == f"lost  {section} {fact}: {NEEDS[section][fact]}"


def test_what_is_gone_without_harm_is_only_gone() -> None:
    facts = {"attribute": ["RunResult.max_turns"]}
    assert [item for item in differences(facts, {}) if item.kind == "gone"] == [
        Difference("gone", "attribute", "RunResult.max_turns")
    ]
    assert str(Difference("gone", "attribute", "RunResult.max_turns")) == "gone  attribute RunResult.max_turns"


def test_an_attribute_of_the_result_that_is_gone_is_noticed(monkeypatch: Patch) -> None:
    monkeypatch.delitem(agents.result.RunResultStreaming.__dataclass_fields__, "current_turn")
    monkeypatch.delattr(agents.result.RunResultStreaming, "current_turn", raising=False)
    assert found() == [("lost", "attribute", "RunResultStreaming.current_turn")]


# What the command says of it.


@pytest.fixture(autouse=True)
def as_verified(monkeypatch: Patch) -> None:
    """Whatever is installed was verified, and is read before anything is planted."""
    verified = {"of": VERIFIED["of"], "facts": BASE}
    monkeypatch.setattr("agents_progress.sdk.surface.verified_surface", lambda: verified)
    monkeypatch.setattr(compat, "installed", lambda: VERIFIED["of"]["openai-agents"])


def test_doctor_lists_what_is_new_and_that_is_fine(monkeypatch: Patch, capsys: pytest.CaptureFixture[str]) -> None:
    raw_event(monkeypatch)
    assert cli.main(["doctor"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        f"{AGAINST}: 1 thing differs",
        "  new   raw event response.brand_new.delta: ignored, as note.unknown_raw, until this library knows it",
    ]


def test_doctor_says_no_when_something_needed_is_gone(monkeypatch: Patch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delattr(agents.result.RunResultStreaming, "run_loop_exception")
    assert cli.main(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines()[-3:] == [
        f"{AGAINST}: 1 thing differs",
        "  lost  attribute RunResultStreaming.run_loop_exception: it is part of how an ending is decided",
        "this package needs 1 of them to tell how a run ends; install a verified release",
    ]


@pytest.mark.parametrize(
    ("release", "rows"),
    [
        ("0.18.3", [": nothing differs; 1 came later"]),
        ("0.25.0", [": 1 thing differs", "gone  attribute RunResultStreaming.release_agents"]),
    ],
)
def test_doctor_counts_what_an_older_release_does_not_have_yet_and_lists_what_a_newer_one_took_away(
    release: str, rows: list[str], monkeypatch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compat, "installed", lambda: release)
    left = [fact for fact in BASE["attribute"] if fact != "RunResultStreaming.release_agents"]
    monkeypatch.setattr("agents_progress.sdk.surface.surface", lambda: {**BASE, "attribute": left})
    assert cli.main(["doctor"]) == 0
    said = capsys.readouterr().out.splitlines()[-len(rows) :]
    assert all(row.endswith(words) for row, words in zip(said, rows, strict=True)), said


def test_doctor_says_so_when_the_sdk_cannot_be_imported(monkeypatch: Patch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "agents", None)
    assert cli.main(["doctor"]) == 1
    assert "cannot be imported" in capsys.readouterr().out.splitlines()[-1]
