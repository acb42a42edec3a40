"""The rows of `matrix.toml`: which releases are played together, and on which Python."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "matrix.toml"


@dataclass(frozen=True)
class Row:
    """One environment. `quick` rows are run on every change."""

    agents: str
    openai: str
    python: str
    pydantic: str
    quick: bool = field(default=False, compare=False)

    @property
    def pins(self) -> list[str]:
        """What is installed, as requirements."""
        return [f"openai-agents=={self.agents}", f"openai=={self.openai}", f"pydantic=={self.pydantic}"]

    @property
    def name(self) -> str:
        """The name of the environment's folder."""
        return f"agents-{self.agents}-openai-{self.openai}-python-{self.python}-pydantic-{self.pydantic}"


@cache
def rows() -> tuple[Row, ...]:
    """Every row, from the oldest release to the newest."""
    return tuple(_row(row) for row in _table()["rows"])


def below_the_floor() -> Row:
    """The release that must be refused."""
    return _row(_table()["below_the_floor"])


def releases() -> tuple[str, ...]:
    """The releases of the SDK in the matrix, from the oldest to the newest."""
    return tuple(dict.fromkeys(row.agents for row in rows()))


def newest() -> str:
    """The release whose files have every scenario."""
    return releases()[-1]


def kept(release: str) -> Row:
    """The row whose results are kept as the files of a release: its last one, and all the others must equal it."""
    return [row for row in rows() if row.agents == release][-1]


def chosen(only: str | None, everything: bool, python: str | None) -> list[Row]:
    """The rows that a command line asks for; with a Python, each set of pins once and on that one."""
    wanted = [row for row in rows() if row.agents.startswith(only or "") and (everything or only or row.quick)]
    if python is None:
        return wanted
    return list(dict.fromkeys(Row(row.agents, row.openai, python, row.pydantic, row.quick) for row in wanted))


@cache
def _table() -> dict[str, Any]:
    with FILE.open("rb") as file:
        return tomllib.load(file)


def _row(entry: dict[str, Any]) -> Row:
    unknown = entry.keys() - {each.name for each in fields(Row)}
    assert not unknown, f"a row has no {', '.join(sorted(unknown))}"
    return Row(**entry)
