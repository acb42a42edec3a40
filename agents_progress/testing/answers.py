"""What people answer in a script: between the turns of the model, where the run pauses and asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .scripted import ScriptedAPI, ScriptNotPlayed
from .turns import Turn

if TYPE_CHECKING:
    from agents_progress.run import Run


@dataclass(frozen=True)
class Answer:
    """One answer to a paused run. Made by `approve` and `reject`."""

    approved: bool
    names: tuple[str, ...] = ()
    actor: str | None = None

    def to(self, run: Run) -> Run:
        """The run that goes on with it. Raises `ScriptNotPlayed` when nobody asked for that."""
        asked = {name: row.tool for name, row in run.view.interactions.items() if row.decision is None}
        chosen = [name for name, tool in asked.items() if not self.names or {name, tool} & {*self.names}]
        if unknown := {*self.names} - {*asked, *asked.values()}:
            asks = ", ".join(f"{name} ({tool})" for name, tool in asked.items())
            raise ScriptNotPlayed(f"the script answers {', '.join(sorted(unknown))}, but the run asks {asks}")
        if self.approved:
            return run.resume(approve=chosen, actor=self.actor)
        return run.resume(reject=chosen, actor=self.actor)


def approve(*names: str, actor: str | None = None) -> Answer:
    """A person approves the calls of these tools, or the questions of these ids (`ask-1`); without names, all."""
    return Answer(True, names, actor)


def reject(*names: str, actor: str | None = None) -> Answer:
    """A person rejects them; the arguments are those of `approve`."""
    return Answer(False, names, actor)


class Prompter:
    """Follows a script while it is played: the turns belong to its API, the answers come where they stand."""

    def __init__(self, script: ScriptedAPI | Iterable[Turn | Answer]) -> None:
        self._answers: list[tuple[int, Answer]] = []
        if isinstance(script, ScriptedAPI):
            self.api = script
            return
        turns: list[Turn] = []
        for part in script:
            if isinstance(part, Answer):
                self._answers.append((len(turns), part))
            elif isinstance(part, Turn):
                turns.append(part)
            else:
                kind = type(part).__name__
                raise TypeError(f"a script holds turns and answers, not {kind}; write turn(...) around it")
        self.api = ScriptedAPI(turns)

    def answer(self) -> Answer | None:
        """The answer to the pause that was reached, None when the script leaves it open."""
        if not self._answers:
            return None
        place, answer = self._answers[0]
        if place > self.api.taken:
            raise ScriptNotPlayed(f"the run paused after turn {self.api.taken}, the script answers after turn {place}")
        del self._answers[0]
        return answer

    def unplayed(self) -> str | None:
        """What of the script did not come about, None when all did."""
        left = self.api.unplayed()
        if left is None and self._answers:
            return f"the script answers after turn {self._answers[0][0]}, and there the run did not pause"
        return left
