"""The short version of the bar `fuzz_sse`: the decoder reads any bytes, in any chunks, as the standard does."""

from __future__ import annotations

from bars.figures import Figures
from bars.fuzz_sse import fuzz


def test_no_bytes_and_no_chunking_are_read_other_than_the_standard_says() -> None:
    figures = Figures("fuzz_sse")
    fuzz(4000, seed=4, figures=figures)
    assert figures.faults == []
