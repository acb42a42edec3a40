"""The chat of the tests: the first word of a message names a script, the second whose gates it stops at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from agents import RunResultStreaming, function_tool

from agents_progress import Disclosure, Verdict, current_run, progress
from agents_progress.decorate import Decorated
from agents_progress.testing import call, failed, text, turn, wait
from tests.page.scripts import REFUND, Gates, agent, ask, look_up, pick, refund, run

ANSWER: Final = "The total is 5 EUR, in two parts, for {key}."


class Chat:
    """Scripted agents, each under the name of its method, which stop at the gates ``{gate}/{key}``."""

    def __init__(self, gates: Gates) -> None:
        self._gates = gates

    def functions(self) -> Mapping[str, Decorated[Any]]:
        """The chat twice: what a person is asked is shown, or hidden."""
        asked: Any = {"approval_kinds": {"ask": "clarification"}, "choices": {"pick": "slots"}}
        opened = Disclosure(approval_details=["refund", "ask", "pick"])
        return {
            "chat": progress(verify=self.checked, disclosure=opened, **asked)(self.chat),
            "hidden": progress(verify=self.checked)(self.hidden),
        }

    def chat(self, message: str) -> RunResultStreaming:
        script, key = message.split()
        return self.scripts[script](self, key)

    def hidden(self, message: str) -> RunResultStreaming:
        return self.chat(message)

    async def checked(self, output: str) -> Verdict:
        """Accepts an answer once the gate ``check`` is open; one that nobody can check it raises for."""
        if output == "Nobody can check this.":
            raise ValueError(output)
        if not output.startswith("The total is 5 EUR"):
            return Verdict(False, check="total")
        await self._at("check", output.removesuffix(".").rpartition(" ")[2]).wait()
        return Verdict(True, check="total")

    def _at(self, gate: str, key: str) -> Any:
        return self._gates[f"{gate}/{key}"]

    def _answer(self, key: str) -> Any:
        """The answer, whose middle is the gate ``text``."""
        first, second = ANSWER.format(key=key).split(" is ")
        return turn(text(f"{first} ", wait(self._at("text", key)), f"is {second}"))

    # Scripts.

    def plain(self, key: str) -> RunResultStreaming:
        return run(self._answer(key))

    def tools(self, key: str) -> RunResultStreaming:
        """A quick tool and one that counts and waits at the gate ``slow``."""

        @function_tool
        async def count_pages() -> str:
            current_run().report("pages", 3, 10)
            await self._at("slow", key).wait()
            return "10 pages"

        both = turn(
            text("Let me look."), call("look_up", {"order": 7}, call_id="c1"), call("count_pages", call_id="c2")
        )
        return run(both, self._answer(key), tools=[look_up, count_pages])

    def broken(self, key: str) -> RunResultStreaming:
        """A tool that raises, of which the agent makes the best."""

        @function_tool
        def break_down() -> str:
            raise RuntimeError("broken")

        return run(turn(call("break_down", call_id="c1")), self._answer(key), tools=[break_down])

    def asking(self, key: str) -> RunResultStreaming:
        """A refund that a person approves."""
        return run(turn(text("It is due."), call("refund", REFUND, call_id="c1")), self._answer(key), tools=[refund])

    def asking_twice(self, key: str) -> RunResultStreaming:
        """Two refunds at once, each of which a person approves."""
        both = (call("refund", {"order": order, "eur": 12}, call_id=f"c{order}") for order in (1, 2))
        return run(turn(text("Both are due."), *both), self._answer(key), tools=[refund])

    def clarifying(self, key: str) -> RunResultStreaming:
        """A question that a person answers in words, beside a call that needs nobody."""
        both = call("look_up", {"order": 7}, call_id="c1"), call("ask", {"question": "Which cup?"}, call_id="c2")
        return run(turn(text("Let me ask."), *both), self._answer(key), tools=[look_up, ask])

    def choosing(self, key: str) -> RunResultStreaming:
        """A question with three options."""
        asked = call("pick", {"slots": ["Mon 9", "Tue 10", 11]}, call_id="c1")
        return run(turn(text("Let me ask."), asked), self._answer(key), tools=[pick])

    def choosing_and_asking(self, key: str) -> RunResultStreaming:
        """A refund that a person approves, and a question with options, at once."""
        both = call("refund", REFUND, call_id="c1"), call("pick", {"slots": ["Mon 9", "Tue 10"]}, call_id="c2")
        return run(turn(text("Let me ask."), *both), self._answer(key), tools=[refund, pick])

    def nested(self, key: str) -> RunResultStreaming:
        """An agent as a tool, with a tool of its own."""
        inner = agent(
            turn(call("look_up", {"order": 7}, call_id="p1")), turn(text("5 EUR")), name="Reader", tools=[look_up]
        )
        asked = turn(call("ask_reader", {"input": "page 1"}, call_id="c1"))
        return run(asked, self._answer(key), tools=[inner.as_tool("ask_reader", "Ask the reader.")])

    def stuck(self, key: str) -> RunResultStreaming:
        """A tool that never comes back."""

        @function_tool
        async def send_mail() -> str:
            await self._at("never", key).wait()
            return "sent"

        return run(turn(text("I will send it."), call("send_mail", call_id="c1")), self._answer(key), tools=[send_mail])

    def limited(self, key: str) -> RunResultStreaming:
        """More turns than are allowed."""
        again = (turn(text(f"Once more, {key}. "), call("look_up", {"order": n}, call_id=f"c{n}")) for n in range(1, 5))
        return run(*again, max_turns=2, tools=[look_up])

    def failing(self, key: str) -> RunResultStreaming:
        """Half of the answer, then an error of the model's server."""
        half = turn(text(f"The total for {key} ", wait(self._at("text", key))), failed())
        return run(turn(text("Let me look. "), call("look_up", {"order": 7}, call_id="c1")), half, tools=[look_up])

    def wrong(self, key: str) -> RunResultStreaming:
        return run(turn(text("Sorry, I cannot.")))

    def unchecked(self, key: str) -> RunResultStreaming:
        return run(turn(text("Nobody can check this.")))

    scripts: Final[Mapping[str, Callable[[Chat, str], RunResultStreaming]]] = {
        "plain": plain,
        "tools": tools,
        "broken": broken,
        "asking": asking,
        "asking_twice": asking_twice,
        "clarifying": clarifying,
        "choosing": choosing,
        "choosing_and_asking": choosing_and_asking,
        "nested": nested,
        "stuck": stuck,
        "limited": limited,
        "failing": failing,
        "wrong": wrong,
        "unchecked": unchecked,
    }
