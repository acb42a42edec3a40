"""A report of one task, for whoever was not there: its facts as plain JSON, and a page of them that needs nothing else.

:func:`gather` makes the facts from what a journal holds, :func:`page` makes the page from the facts alone. Both are
pure.
"""

from __future__ import annotations

from agents_progress.report.facts import gather
from agents_progress.report.page import page

__all__ = ["gather", "page"]
