"""The releases of the SDK: refused, used with one warning, or verified."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from agents_progress import cli
from agents_progress.errors import SDKTooOld
from agents_progress.sdk import compat


@pytest.fixture(autouse=True)
def not_asked_yet() -> Iterator[None]:
    compat.require_supported.cache_clear()
    yield
    compat.require_supported.cache_clear()


def warned(times: int = 1) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(times):
            compat.require_supported()
    assert {warning.category for warning in caught} <= {compat.UnverifiedSDK}
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("found", compat.VERIFIED)
def test_a_verified_release_says_nothing(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "installed", lambda: found)
    assert warned() == []


@pytest.mark.parametrize("found", ["0.18.0", "0.99.0", "1.0.0rc1"])
def test_an_unverified_release_warns_once_and_points_to_the_command_that_says_what_differs(
    found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compat, "installed", lambda: found)
    (said,) = warned(times=3)
    assert found in said and "`agents-progress doctor`" in said
    assert "doctor" in {command.name for command in cli.COMMANDS}


@pytest.mark.parametrize("found", ["0.17.8", "0.1.0", None])
def test_a_release_that_hides_endings_is_refused_each_time(found: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "installed", lambda: found)
    for _ in range(2):
        with pytest.raises(SDKTooOld, match=r"install openai-agents>=0\.18"):
            compat.require_supported()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0.24.0", (0, 24, 0)), ("1.0.0rc1", (1, 0)), ("0.25.0.dev1", (0, 25, 0)), ("none", ()), ("", ())],
)
def test_a_release_is_its_leading_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert compat.release(text) == numbers
