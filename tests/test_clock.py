"""The moments of a log: wall time once, and from then on what the monotonic clock says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agents_progress.clock import Clock, Stamp, rfc3339


def clock(wall: list[float], monotonic: list[float]) -> Clock:
    walls: Iterator[float] = iter(wall)
    passed: Iterator[float] = iter(monotonic)
    return Clock(wall=lambda: next(walls), monotonic=lambda: next(passed))


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_791_360_001_250, "2026-10-07T08:00:01.250Z"),
        (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
    ],
)
def test_a_moment_is_shown_in_utc_with_milliseconds(milliseconds: int, shown: str) -> None:
    assert rfc3339(milliseconds) == shown


def test_a_log_is_stamped_by_the_wall_clock_once_and_by_the_monotonic_one_after() -> None:
    stamp = Stamp(clock([1_791_360_001.25], [5.0, 5.0, 5.5, 65.5]))  # a second look at the wall clock would raise
    assert [stamp.now()[17:] for _ in range(4)] == ["01.250Z", "01.250Z", "01.750Z", "01.750Z"]


def test_stamps_less_than_a_millisecond_apart_may_be_the_same_and_never_go_back() -> None:
    passed = [5 + step / 8192 for step in range(100)]
    stamp = Stamp(clock([1_791_360_001.0], passed))
    shown = [stamp.now() for _ in passed]
    assert shown == sorted(shown)
    assert shown == [rfc3339(1_791_360_001_000 + step * 1000 // 8192) for step in range(100)]
