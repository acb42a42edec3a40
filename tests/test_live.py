"""The live display as a terminal sees it, in bytes and on an emulated screen: no flicker, and nothing above is hurt."""

from __future__ import annotations

import re
import signal
import sys
import time

import pytest

from agents_progress.messages import MESSAGES
from agents_progress.terminal import REFRESH_SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals here")
if sys.platform != "win32":
    from tests.terminals import Terminal, child

BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"
CLEARS = re.compile(r"\x1b\[[0-3]?J|\x1b\[[0-9;]*[HfrST]|\x1bc|\x1b\[\?(?:47|104[79])[hl]|\x1b\[[0-9]*[LM]")
"""Whatever clears or scrolls more than a row, or moves the cursor to a place of the screen."""
ABOVE = ["what stood here before", "stays as it was"]
TITLE = "Serve a customer"


def counted(terminal: Terminal) -> float:
    """Play a run with many events; for how long it was shown, in seconds."""
    terminal.show("".join(f"{row}\r\n" for row in ABOVE))
    terminal.until(MESSAGES["running"]["en"])
    start = time.monotonic()
    terminal.until("299/300")
    terminal.signal(signal.SIGUSR1)
    assert terminal.end() == 0
    return time.monotonic() - start


def test_a_redraw_is_one_write_within_its_rows_and_comes_ten_times_a_second_at_most() -> None:
    with Terminal(*child("counts"), rows=60) as terminal:
        lasted = counted(terminal)
        assert terminal.rows[: len(ABOVE)] == ABOVE
    text = terminal.text
    assert CLEARS.search(text) is None
    frames = text.split(BEGIN)[1:]
    assert all(frame.count(END) == 1 for frame in frames)
    between = [frame.split(END)[1] for frame in frames]
    assert "\x1b" not in text.split(BEGIN)[0] + "".join(between), "everything that moves is shown at once"
    assert 3 <= len(frames) <= lasted / REFRESH_SECONDS + 3
    assert all(TITLE in frame for frame in frames), "no frame is empty"
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_the_last_state_stays_whole_with_nothing_of_the_frames_before_it() -> None:
    with Terminal(*child("counts"), rows=60) as terminal:
        counted(terminal)
        rows = terminal.rows
    assert [row for row in rows if TITLE in row] == [f"{TITLE} · Clerk"]
    assert rows[len(ABOVE) + 1] == MESSAGES["done"]["en"]
    assert " ".join(rows).split().count("word") == 200
    assert rows[-1] == "the program ended: succeeded"
    assert not any("300" in row or MESSAGES["running"]["en"] in row for row in rows)


@pytest.mark.parametrize("size", [(40, 60), (120, 60), (80, 50)])
def test_a_terminal_of_another_size_in_the_middle_hurts_nothing_above(size: tuple[int, int]) -> None:
    with Terminal(*child("counts"), rows=40) as terminal:
        terminal.show("".join(f"{row}\r\n" for row in ABOVE))
        terminal.until("/300")
        terminal.resize(*size)
        terminal.until("299/300")
        terminal.signal(signal.SIGUSR1)
        assert terminal.end() == 0
        assert CLEARS.search(terminal.text) is None
        shown = "\n".join(terminal.rows)
        assert terminal.rows[: len(ABOVE)] == ABOVE
    assert shown.count(f"{TITLE} · Clerk") == 1 and MESSAGES["done"]["en"] in " ".join(shown.split())


@pytest.mark.parametrize("columns", [4, 20])
def test_a_narrow_terminal_is_drawn_in_as_well(columns: int) -> None:
    with Terminal(*child("asks nobody"), columns=columns, rows=200) as terminal:
        assert terminal.end() == 0
        assert "stopped" not in terminal.text and CLEARS.search(terminal.text) is None
        last = terminal.text.split(BEGIN)[-1]
        letters = "".join(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", last).split())
        assert MESSAGES["waiting"]["en"].replace(" ", "") in letters


@pytest.mark.parametrize("term", [None, "", "dumb", "unknown"])
def test_a_terminal_that_does_not_say_what_it_is_gets_plain_lines(term: str | None) -> None:
    with Terminal(*child("asks nobody"), TERM=term) as terminal:
        assert terminal.end() == 0
        assert "\x1b" not in terminal.text and "\r" not in terminal.text.replace("\r\n", "")
        assert f"waiting     {MESSAGES['waiting']['en']}" in terminal.rows


def test_no_color_is_heeded() -> None:
    with Terminal(*child("asks nobody"), NO_COLOR="1") as terminal:
        assert terminal.end() == 0
        styles = re.findall(r"\x1b\[([0-9;]*)m", terminal.text)
        assert not any(part in range(30, 108) for style in styles for part in map(int, filter(None, style.split(";"))))
