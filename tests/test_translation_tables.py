"""The tables of translation, whole: against the installed SDK and client, and each reason read."""

from __future__ import annotations

import typing
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from agents.stream_events import RunItemStreamEvent
from openai.types.responses import ResponseOutputItem, ResponseStreamEvent

from agents_progress.sdk.events import OUTPUT_ITEMS, RAW_EVENTS, RUN_ITEMS
from agents_progress.sdk.items import ANSWERED, HOSTED, KINDS
from agents_progress.sdk.translate import Translator

TABLES = {"raw events": RAW_EVENTS, "items": OUTPUT_ITEMS, "run items": RUN_ITEMS}


def types_of(union: Any) -> set[str]:
    """The `type` strings of an annotated union of models."""
    models = get_args(get_args(union)[0])
    return {name for model in models for name in get_args(model.model_fields["type"].annotation)}


def run_item_names() -> set[str]:
    return set(get_args(typing.get_type_hints(RunItemStreamEvent)["name"]))


INSTALLED = {
    "raw events": types_of(ResponseStreamEvent),
    "items": types_of(ResponseOutputItem),
    "run items": run_item_names(),
}


@pytest.mark.parametrize("table", TABLES)
def test_every_type_that_is_installed_stands_in_its_table(table: str) -> None:
    new = INSTALLED[table] - TABLES[table].keys()
    assert not new, f"new {table}, of which no table says what they mean: {sorted(new)}"


def test_the_tables_hold_what_the_newest_verified_releases_have() -> None:
    assert (len(RAW_EVENTS), len(OUTPUT_ITEMS)) == (59, 28)
    assert RUN_ITEMS.keys() - {"handoff_occurred"} >= run_item_names()
    assert len(RUN_ITEMS) == 12, "eleven names, and the right spelling of one"


@pytest.mark.parametrize("table", TABLES)
def test_what_is_dropped_says_why(table: str) -> None:
    for name, step in TABLES[table].items():
        assert callable(step) or len(step.split()) >= 3, name
        assert callable(step) or "not translated" not in step, name


def test_every_item_that_is_a_call_makes_a_row_and_every_row_has_an_item() -> None:
    def made(name: str) -> bool:
        return getattr(OUTPUT_ITEMS[name], "__name__", "") == "call_done"

    assert {name for name in OUTPUT_ITEMS if made(name)} == set(KINDS)
    assert set(ANSWERED) <= set(KINDS) and set(ANSWERED.values()) <= set(OUTPUT_ITEMS)
    assert {name for name in KINDS if KINDS[name][0] in ("hosted", "mcp")} == HOSTED


@pytest.mark.parametrize("name", sorted(RAW_EVENTS) + ["response.brand_new.delta"])
def test_a_raw_event_of_any_type_is_taken_in_the_form_the_client_gives_it(name: str) -> None:
    item = SimpleNamespace(type="function_call", call_id="c", id="i", name="n", arguments="{}")
    event = SimpleNamespace(
        type=name, item=item, response=SimpleNamespace(id="r", usage=None, output=[]), item_id="i", output_index=0,
        content_index=0, summary_index=0, annotation_index=0, command_index=0, delta="x", text="x", refusal="x",
        arguments="{}", code="x", input="x", command="x", annotation={"type": "file_path", "file_id": "f"},
    )  # fmt: skip
    list(Translator("A").translate(iter([SimpleNamespace(type="raw_response_event", data=event)])))


def test_an_item_of_an_unknown_type_is_noted_once() -> None:
    done = SimpleNamespace(
        type="response.output_item.done", item=SimpleNamespace(type="telepathy_call", id="t"), output_index=0
    )
    events = [SimpleNamespace(type="raw_response_event", data=done)] * 3
    assert list(Translator("A").translate(iter(events))) == [("note.unknown_raw", {"name": "item telepathy_call"})]
