"""The releases of the front ends that are played."""

from __future__ import annotations

from pathlib import Path

from .packages import FRONTS


def test_the_docs_name_the_releases_that_are_played() -> None:
    docs = (Path(__file__).parents[2] / "docs/bridges.md").read_text(encoding="utf-8")
    releases = dict.fromkeys(packages[0].rpartition("@")[2] for packages in FRONTS.values())
    assert [version for version in releases if version not in docs] == []
