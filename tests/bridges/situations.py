"""The situations: what a user does, what befalls the way to the server, and what the user must not be told."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from agents_progress.messages import Status
from agents_progress.view import RunView

from .clients import Act, Client, Screen
from .functions import ANSWER
from .node import Node
from .stage import PATHS, Stage
from .truth import lies, shortfalls

WITHIN_S: Final = 15.0
"""How long a front end may take to show something, in seconds; a loaded machine needs some."""
LOOK_S: Final = 0.03
"""Between two looks at it, in seconds."""
RESTING: Final = frozenset({"asking", "success", "stopped", "error"})
"""States in which nothing more comes by itself."""


@dataclass
class Player:
    """One front end in one situation, whose every screen is compared with our view."""

    stage: Stage
    front: str
    conversation: str
    client: Client
    node: Node | None = None
    screen: Screen = Screen()
    views: list[RunView] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def answer(self) -> str:
        return ANSWER.format(key=self.conversation)

    async def does(self, act: Act, text: str = "") -> None:
        await self.client.do(act, text)

    async def sends(self, script: str) -> None:
        await self.client.do("send", f"{script} {self.conversation}")

    def opens(self, *gates: str) -> None:
        self.stage.open(self.conversation, *gates)

    async def sees(self, what: Callable[[Screen], object]) -> bool:
        """Look until something is shown, and at what our view says then; whether it came to be shown."""
        states, seen = frozenset[str](), False
        give_up = asyncio.get_running_loop().time() + WITHIN_S
        while not seen and asyncio.get_running_loop().time() < give_up:
            await asyncio.sleep(LOOK_S)
            self.screen = Screen.of(await self.client.see(), states)
            states, seen = self.screen.states, bool(what(self.screen))
        self.views = await self.stage.views(self.front, self.conversation)
        self.faults += lies(self.screen, self.views)
        return seen

    async def sees_text(self, text: str) -> None:
        if not await self.sees(lambda screen: text in "".join(screen.texts)):
            self.faults.append(f"it never shows {text!r}, but {[*self.screen.texts]}")

    async def run_is(self, *statuses: Status) -> None:
        """The newest run of the conversation comes to one of these statuses."""
        if not await self.stage.comes_to(self.front, self.conversation, *statuses):
            self.faults.append(f"its run never is {' or '.join(statuses)}")

    async def rests(self, *statuses: Status) -> None:
        """The run comes to one of these statuses, and the front end to rest with all that is so."""
        await self.run_is(*statuses)
        await self.sees(lambda screen: screen.state in RESTING)
        self.faults += shortfalls(self.screen, self.views)


Play = Callable[[Player], Awaitable[None]]


async def plain(play: Player) -> None:
    await play.sends("plain")
    await play.sees_text("The total")
    play.opens("text")
    await play.sees_text(play.answer)
    await play.run_is("checking")
    await play.sees(lambda _: True)
    play.opens("check")
    await play.rests("done")


async def tools(play: Player) -> None:
    play.opens("text", "check")
    await play.sends("tools")
    await play.sees(lambda screen: ("c1", "returned") in screen.tools and ("c2", "open") in screen.tools)
    play.opens("slow")
    await play.rests("done")


async def failed_tool(play: Player) -> None:
    play.opens("text", "check")
    await play.sends("broken")
    await play.rests("done")


async def approved(play: Player) -> None:
    await play.sends("asking")
    await play.rests("waiting")
    await play.does("approve")
    await play.sees_text("The total")
    play.opens("text", "check")
    await play.rests("done")


async def rejected(play: Player) -> None:
    play.opens("text", "check")
    await play.sends("asking")
    await play.rests("waiting")
    await play.does("reject")
    await play.rests("done")


async def both_approved(play: Player) -> None:
    play.opens("text", "check")
    await play.sends("asking_twice")
    await play.rests("waiting")
    await play.does("approve")
    await play.rests("done")


async def clarified(play: Player) -> None:
    await play.sends("clarifying")
    await play.rests("waiting")
    await play.does("reply", "The blue one")
    await play.sees_text("The total")
    play.opens("text", "check")
    await play.rests("done")


async def declined(play: Player) -> None:
    play.opens("text", "check")
    await play.sends("clarifying")
    await play.rests("waiting")
    await play.does("decline", "Neither of them")
    await play.rests("done")


async def chosen(play: Player) -> None:
    """What is no option is refused, and the run waits on."""
    await play.sends("choosing")
    await play.rests("waiting")
    await play.does("reply", "Wed 12")
    await play.sees(lambda screen: screen.state == "error")
    await play.rests("waiting")
    await play.does("reply", "Tue 10")
    await play.sees_text("The total")
    play.opens("text", "check")
    await play.rests("done")


async def both_kinds(play: Player) -> None:
    """A front end that answers one kind after the other sends both together."""
    play.opens("text", "check")
    await play.sends("choosing_and_asking")
    await play.rests("waiting")
    await play.does("reply", "Mon 9")
    await play.rests("done")


async def reload_at_words(play: Player) -> None:
    await play.sends("clarifying")
    await play.rests("waiting")
    await play.does("reload")
    await play.rests("waiting")
    await play.does("reply", "The blue one")
    await play.sees_text("The total")
    await play.does("reload")
    await play.sees_text("The total")
    play.opens("text", "check")
    await play.rests("done")


async def nested(play: Player) -> None:
    play.opens("text", "check")
    await play.sends("nested")
    await play.rests("done")


async def second_message(play: Player) -> None:
    play.opens("text", "check", "slow")
    await play.sends("plain")
    await play.rests("done")
    await play.sends("tools")
    await play.sees_text("Let me look.")
    await play.rests("done")


async def asked_elsewhere(play: Player) -> None:
    await play.sends("asking")
    await play.rests("waiting")


async def cancelled(play: Player) -> None:
    await play.sends("stuck")
    await play.sees(lambda screen: ("c1", "open") in screen.tools)
    await play.does("cancel")
    await play.rests("cancelled")


async def incomplete(play: Player) -> None:
    await play.sends("limited")
    await play.rests("incomplete")


async def failure(play: Player) -> None:
    await play.sends("failing")
    await play.sees_text("The total")
    play.opens("text")
    await play.rests("failed")


async def refused(play: Player) -> None:
    await play.sends("wrong")
    await play.rests("rejected")


async def not_checked(play: Player) -> None:
    await play.sends("unchecked")
    await play.rests("checking")


async def lost_owner(play: Player) -> None:
    assert play.node is not None
    await play.sends("stuck")
    await play.sees(lambda screen: ("c1", "open") in screen.tools)
    await play.node.ends()
    await play.rests("unknown")


async def drained(play: Player) -> None:
    """The server that owns the run goes away in order, and ends what it runs."""
    assert play.node is not None
    await play.sends("stuck")
    await play.sees(lambda screen: ("c1", "open") in screen.tools)
    await play.node.ends()
    await play.rests("cancelled", "unknown", "failed")


async def reload(play: Player) -> None:
    await play.sends("plain")
    await play.sees_text("The total")
    await play.does("reload")
    await play.sees_text("The total")
    play.opens("text", "check")
    await play.rests("done")


async def reload_at_question(play: Player) -> None:
    await play.sends("asking")
    await play.rests("waiting")
    await play.does("reload")
    await play.rests("waiting")
    await play.does("approve")
    play.opens("text", "check")
    await play.rests("done")


async def cut_in_text(play: Player) -> None:
    """A front end that takes the cut for an end says so before the answer is whole, or checked."""
    await play.sends("plain")
    await play.sees_text("The total")
    play.opens("text")
    await play.sees(lambda screen: screen.state in RESTING or play.answer in screen.texts)
    play.opens("check")
    await play.rests("done")


async def cut_before_end(play: Player) -> None:
    play.opens("text", "check")
    await play.sends("plain")
    await play.rests("done")


async def reload_after_answer(play: Player) -> None:
    await play.sends("asking")
    await play.rests("waiting")
    await play.does("approve")
    await play.sees_text("The total")
    await play.does("reload")
    await play.sees_text("The total")
    play.opens("text", "check")
    await play.rests("done")


async def tools_whole(play: Player) -> None:
    play.opens("text", "check", "slow")
    await play.sends("tools")
    await play.rests("done")


@dataclass(frozen=True)
class Situation:
    """One row of the table. ``way`` is put before the path of the bridge; where ``bare`` is false, a front end alone
    cannot tell the truth, and what it then shows is printed and not held. ``end`` is the signal that ends the process
    which owns the runs, when there is one for them.
    """

    name: str
    play: Play
    way: str = ""
    bare: bool = True
    end: signal.Signals | None = None

    def path(self, front: str) -> str:
        return self.way + PATHS[front]


SITUATIONS: Final = (
    Situation("plain", plain),
    Situation("tools", tools),
    Situation("failed tool", failed_tool),
    Situation("nested agent", nested),
    Situation("second message", second_message),
    Situation("approval answered", approved),
    Situation("approval rejected", rejected),
    Situation("two approvals", both_approved),
    Situation("clarification answered", clarified),
    Situation("clarification declined", declined),
    Situation("choice, first of no option", chosen),
    Situation("approval and choice", both_kinds),
    Situation("asked, details hidden", asked_elsewhere, "/hidden"),
    Situation("cancel", cancelled),
    Situation("incomplete", incomplete),
    Situation("failure", failure),
    Situation("check refused", refused),
    Situation("not checked", not_checked),
    Situation("lost owner", lost_owner, end=signal.SIGKILL),
    Situation("server goes away", drained, end=signal.SIGTERM),
    Situation("reload in the middle", reload),
    Situation("reload at a question", reload_at_question),
    Situation("reload after the answer", reload_after_answer),
    Situation("reload at a clarification", reload_at_words),
    Situation("duplicate frames", tools_whole, "/twice", bare=False),
    Situation("truncated in mid-text", cut_in_text, "/within-text", bare=False),
    Situation("truncated before the end", cut_before_end, "/before-the-end", bare=False),
    Situation("failure, truncated before the end", failure, "/before-the-end", bare=False),
)
"""Each is played by every front end at once."""
