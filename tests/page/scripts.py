"""Functions that a test starts over HTTP: scripted agents which stop at gates, so that nothing depends on time."""

from __future__ import annotations

import asyncio
import base64
from collections import defaultdict
from typing import Any, Final

from agents import Agent, Runner, RunResultStreaming, ToolOutputFileContent, function_tool

from agents_progress import Disclosure, Verdict, current_run, progress
from agents_progress.decorate import Decorated
from agents_progress.testing import ScriptedAPI, Turn, call, failed, text, turn, wait
from agents_progress.verify import matches

TOTAL: Final = "The total is 5 EUR, in two parts."
REFUND: Final = {"order": 4711, "eur": 12}


class Gates(defaultdict[str, asyncio.Event]):
    """Where scripts stop, by name. A test opens one: ``gates.open("slow")``; one that ended opens all."""

    def __init__(self) -> None:
        super().__init__(asyncio.Event)

    def open(self, *names: str) -> None:
        for name in names:
            self[name].set()

    def open_all(self) -> None:
        self.open(*self)


class Script:
    """The functions of one server, which stop at its gates."""

    def __init__(self, gates: Gates) -> None:
        self._gates = gates

    def functions(self) -> dict[str, Decorated[Any]]:
        checked: dict[str, Any] = {"verify": matches(r"The total is \d+ EUR.*")}
        shown = Disclosure(approval_details="all", outputs="all")
        opened = Disclosure(approval_details=["refund"])
        return {
            "plain": progress(**checked)(self.plain),
            "parallel": progress(**checked)(self.parallel),
            "nested": progress(**checked)(self.nested),
            "approval": progress(disclosure=opened, **checked)(self.approval),
            "approval_hidden": progress(**checked)(self.approval_hidden),
            "approval_blind": progress(approve_blind=["refund"], **checked)(self.approval_blind),
            "clarified": progress(approval_kinds={"ask": "clarification"}, disclosure=shown, **checked)(self.clarified),
            "chosen": progress(choices={"pick": "slots"}, disclosure=shown, **checked)(self.chosen),
            "cancelled": progress(**checked)(self.cancelled),
            "failing": progress(**checked)(self.failing),
            "limited": progress(**checked)(self.limited),
            "refused": progress(verify=lambda output: Verdict(False, check="total"))(self.refused),
            "unchecked": progress(verify=self.checked_later)(self.unchecked),
            "cited": progress(**checked)(self.cited),
        }

    async def checked_later(self, output: object) -> Verdict:
        await self._gates["check"].wait()
        return Verdict(True, check="later")

    # Bodies. The gate of a text stands in its middle, so that a test sees half of it.

    def plain(self) -> RunResultStreaming:
        """Half of the answer, the gate ``text``, the other half."""
        return run(turn(text("The total ", wait(self._gates["text"]), "is 5 EUR, in two parts.")))

    def parallel(self) -> RunResultStreaming:
        """A quick tool and one that counts to three of ten and waits at the gate ``slow``."""

        @function_tool
        async def count_pages() -> str:
            current_run().report("pages", 3, 10)
            await self._gates["slow"].wait()
            return "10 pages"

        both = turn(call("look_up", {"order": 7}, call_id="c1"), call("count_pages", call_id="c2"))
        return run(both, turn(text(TOTAL)), tools=[look_up, count_pages])

    def nested(self) -> RunResultStreaming:
        """An agent as a tool, whose own tool waits at the gate ``inner``."""

        @function_tool
        async def read_page() -> str:
            await self._gates["inner"].wait()
            return "read"

        inner = agent(turn(call("read_page", call_id="p1")), turn(text("inner says")), name="Reader", tools=[read_page])
        ask = turn(call("ask_reader", {"input": "page 1"}, call_id="c1"))
        return run(ask, turn(text(TOTAL)), tools=[inner.as_tool("ask_reader", "Ask the reader.")])

    def approval(self) -> RunResultStreaming:
        """A refund that a person approves, with what is asked shown; then the gate ``after``."""
        return self._asking()

    def approval_hidden(self) -> RunResultStreaming:
        """The same, with what is asked hidden."""
        return self._asking()

    def approval_blind(self) -> RunResultStreaming:
        """The same, hidden, where the application lets it be approved all the same."""
        return self._asking()

    def clarified(self) -> RunResultStreaming:
        """A question that is approved with an answer in words."""
        return run(turn(call("ask", {"question": "Which cup?"}, call_id="c1")), turn(text(TOTAL)), tools=[ask])

    def chosen(self) -> RunResultStreaming:
        """A question that is approved with one of its options."""
        slots = {"slots": ["Mon <b>9</b>", "Tue 10", 11]}
        return run(turn(call("pick", slots, call_id="c1")), turn(text(TOTAL)), tools=[pick])

    def _asking(self) -> RunResultStreaming:
        paid = turn(text("The total ", wait(self._gates["after"]), "is 5 EUR, in two parts."))
        return run(turn(text("It is due."), call("refund", REFUND, call_id="c1")), paid, tools=[refund])

    def cancelled(self) -> RunResultStreaming:
        """A tool in progress behind a gate that nobody opens."""

        @function_tool
        async def send_mail() -> str:
            current_run().report("sending", 1, 3)
            await self._gates["never"].wait()
            return "sent"

        calls = turn(
            text("I will send it."), call("look_up", {"order": 7}, call_id="c1"), call("send_mail", call_id="c2")
        )
        return run(calls, turn(text(TOTAL)), tools=[look_up, send_mail])

    def failing(self) -> RunResultStreaming:
        """Half of an answer and a tool, then an error of the model's server, at the gate ``fail``."""
        first = turn(text("Let me look. "), call("look_up", {"order": 7}, call_id="c1"))
        return run(first, turn(text("The total ", wait(self._gates["fail"])), failed()), tools=[look_up])

    def limited(self) -> RunResultStreaming:
        """More turns than are allowed."""
        again = (turn(text("Once more. "), call("look_up", {"order": n}, call_id=f"c{n}")) for n in range(1, 5))
        return run(*again, max_turns=2, tools=[look_up])

    def refused(self) -> RunResultStreaming:
        """An answer that does not pass."""
        return run(turn(text("Sorry, I cannot.")))

    def unchecked(self) -> RunResultStreaming:
        """An answer whose check waits at the gate ``check``."""
        return run(turn(text(TOTAL)))

    def cited(self) -> RunResultStreaming:
        """An answer with sources, and a file."""
        cites = [
            {
                "type": "url_citation",
                "url": "https://prices.test/a?b=1",
                "title": "Prices",
                "start_index": 0,
                "end_index": 3,
            },
            {"type": "file_citation", "file_id": "f1", "filename": "terms.pdf", "index": 0},
        ]
        made = turn(call("make_table", call_id="c1"))
        return run(made, turn(text(TOTAL, annotations=cites)), tools=[make_table])


@function_tool
def look_up(order: int) -> str:
    return f"order {order}: 2 EUR and 3 EUR"


@function_tool(needs_approval=True)
def ask(question: str) -> str:
    return f"they said {current_run().answer}"


@function_tool(needs_approval=True)
def pick(slots: list[str | int]) -> str:
    return f"they chose {current_run().answer}"


@function_tool(needs_approval=True)
def refund(order: int, eur: int) -> str:
    return f"order {order}: {eur} EUR"


@function_tool
def make_table() -> ToolOutputFileContent:
    return ToolOutputFileContent(file_data=base64.b64encode(b"a,b\n1,2\n").decode(), filename="table.csv")


def agent(*turns: Turn, name: str = "Clerk", **fields: Any) -> Agent[Any]:
    return Agent(name=name, model=ScriptedAPI(turns).model(), **fields)


def run(*turns: Turn, max_turns: int = 10, **fields: Any) -> RunResultStreaming:
    return Runner.run_streamed(agent(*turns, **fields), "2 EUR and 3 EUR?", max_turns=max_turns)
