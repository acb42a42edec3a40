"""The page about serving names everything there is, as it is."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra `server` is not installed")

from plainbridge import Plain
from test_bridges import sole

from agents_progress.server import Limits
from agents_progress.server.bridging import Mounted
from agents_progress.server.pages import PAGE_PATHS
from agents_progress.server.refusals import FOR_NOW, REFUSALS
from agents_progress.server.routes import PATHS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", REFUSALS)
def test_every_refusal_is_on_the_page_with_its_status_and_sentence(code: str) -> None:
    status, sentence = REFUSALS[code]
    assert f"| `{code}` | {status} | {sentence} |" in PAGE


def test_what_may_be_asked_again_has_a_status_that_says_so() -> None:
    assert {REFUSALS[code][0] for code in FOR_NOW} == {429, 503}
    assert {code for code, (status, _) in REFUSALS.items() if status in (429, 503)} == FOR_NOW


@pytest.mark.parametrize("limit", dataclasses.fields(Limits), ids=lambda field: field.name)
def test_every_limit_is_on_the_page_with_its_default(limit: dataclasses.Field[float]) -> None:
    assert f"| `{limit.name}` | {limit.default:,} |" in PAGE


def test_the_routes_of_a_bridge_are_on_both_pages() -> None:
    bridge = Mounted(Plain(sole, path="/path"))
    for path, methods in bridge.paths.items():
        for method in methods:
            route = f"`{method} {path.replace('/path', '{path}').replace(':path', '')}`"
            assert route in PAGE and route in (ROOT / "docs" / "bridges.md").read_text(encoding="utf-8")


def test_every_route_is_on_the_page_and_the_page_can_be_found() -> None:
    for path, methods in PATHS.items():
        for method in methods:
            assert f"`{method} {path}`" in PAGE
    for path in PAGE_PATHS:
        assert f"`GET {path}`" in PAGE
    assert "(docs/server.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
