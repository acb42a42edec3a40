"""What one call of a decorated function may be given, and where it stands among other runs."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from agents import Runner, RunResultStreaming, function_tool
from staging import Log, log_of, on, scripted, started, stored

from agents_progress import Disclosure, RunView, Verdict, progress
from agents_progress.clock import Clock
from agents_progress.errors import NoEventLoop, NotDecoratable, ProgressError, UsageError
from agents_progress.journal import MemoryJournal
from agents_progress.options import Given, Options
from agents_progress.run import Run
from agents_progress.terminal import show
from agents_progress.testing import call, text, turn
from agents_progress.verify import equals


async def test_using_sets_what_belongs_to_one_request(journal: MemoryJournal) -> None:
    agent = scripted(turn(call("look")), turn(text("hello")), turn(call("look")), turn(text("hello")))
    agent.tools = [function_tool(name_override="look")(lambda: "secret output")]

    @progress(journal=journal, verify=lambda output: True)
    def work(question: str) -> RunResultStreaming:
        """Its docstring."""
        return Runner.run_streamed(agent, question)

    run = work.using(
        run_id="run-7",
        task_id="task-7",
        owner="ann",
        labels={"conversation": "c"},
        verify=lambda output: Verdict(False, "mine"),
        disclosure=Disclosure(outputs="all"),
        deadline=60,
    )("hi")
    assert (run.id, run.task_id) == ("run-7", "task-7")
    outcome = await run
    assert outcome.verdict == Verdict(False, "mine") and run.view.status == "rejected"
    (row,) = await journal.runs(labels={"conversation": "c"})
    assert (row.run_id, row.task_id, row.origin.owner, row.title) == ("run-7", "task-7", "ann", "Work")
    assert (await stored(journal, "run-7")).of("tool.finished")[0]["output"] == "secret output"
    assert (work.__name__, work.__doc__) == ("work", "Its docstring.")
    again = work("hi")
    assert (await again).accepted and again.id != "run-7"
    assert "output" not in (await stored(journal, again.id)).of("tool.finished")[0]


@pytest.mark.parametrize("run_id", ["job.7", "a.b.12", "x" * 59])
def test_a_run_id_that_its_continuation_could_not_carry_on_is_refused(run_id: str) -> None:
    with pytest.raises(UsageError, match="no number after a dot"):
        Options(run_id=run_id)
    Options(run_id="job.v7", task_id=run_id)


WRONG_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"verify": "5 EUR"}, "verify is a function .* not str"),
    ({"journal": Path("runs.db")}, "journal is a URL .* not PosixPath|WindowsPath"),
    ({"journal": "runs.db"}, "begin with its kind; a file is named as in sqlite:///runs.db"),
    ({"journal": "sqlite://runs.db"}, "without three slashes and the name of a file"),
    ({"language": "fr"}, "'fr' is not spoken here; choose of en, zh"),
    ({"deadline": "60"}, "deadline is a time in seconds, not '60'"),
    ({"settle": float("nan")}, "settle is a time in seconds, not nan"),
    ({"patience": -1}, "patience is a time in seconds, not -1"),
    ({"disclosure": {"arguments": "all"}}, "disclosure is a Disclosure.* not dict"),
    ({"sinks": print}, "sinks is a list of functions, not builtin"),
    ({"labels": "x"}, "labels is a mapping from text to text, not str"),
    ({"keep_pauses": "c2VjcmV0"}, r"as Key\(...\) is one, not str"),
    ({"owner": 3}, "owner is a text, not int"),
    ({"verifier": None}, "did you mean verify"),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG_OPTIONS)
def test_a_wrong_option_is_refused_where_it_is_written(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ProgressError, match=sentence):
        progress(**options)


@pytest.mark.parametrize("wrong", [{"mask": "secret"}, {"mask": [3]}, {"arguments": True}, {"max_chars": "9"}])
def test_a_disclosure_that_cannot_be_applied_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(wrong))} "):
        Disclosure(**wrong)


def test_what_is_no_function_is_refused_where_it_is_decorated() -> None:
    thing: Any = function_tool(name_override="look")(lambda: "")
    for decorator in (progress, progress.inside, progress(deadline=1.0)):
        with pytest.raises(NotDecoratable, match="takes a function.* not FunctionTool"):
            decorator(thing)


def test_a_callable_without_a_name_is_called_by_its_type() -> None:
    with pytest.raises(NoEventLoop, match="call partial inside one"):
        progress(functools.partial(Runner.run_streamed, scripted()))("hi")


async def test_a_method_is_bound_as_python_binds_it(journal: MemoryJournal) -> None:
    class Desk:
        def __init__(self, *answers: str) -> None:
            self.agent = scripted(*(turn(text(answer)) for answer in answers))

        @progress(journal=journal, verify=equals("mine"))
        def work(self, question: str) -> RunResultStreaming:
            return Runner.run_streamed(self.agent, question)

        @progress(journal=journal)
        @classmethod
        def of_all(cls, question: str) -> RunResultStreaming:
            return Runner.run_streamed(cls("ours").agent, question)

        @progress(journal=journal)
        @staticmethod
        def of_none(question: str) -> RunResultStreaming:
            return Runner.run_streamed(Desk("nobody's").agent, question)

    desk, other = Desk("mine", "mine"), Desk("mine")
    run = await desk.work.using(owner="ann").start(question="hi")
    assert (await run).accepted
    assert [(each.title, each.origin.owner) for each in await journal.runs()] == [("Work", "ann")]
    assert [(await one).accepted for one in (desk.work("hi"), other.work("hi"))] == [True, True]
    assert await asyncio.to_thread(Desk("mine").work.run_sync, "hi")
    assert (await Desk.work(Desk("mine"), "hi")).accepted and Desk.work is Desk.work
    for door in (Desk, desk):
        assert [(await run).output for run in (door.of_all("hi"), door.of_none("hi"))] == ["ours", "nobody's"]


@pytest.mark.parametrize("thing", ["r-1", progress(lambda: None), Verdict(True)])
async def test_showing_what_is_no_run_is_refused(thing: Any) -> None:
    with pytest.raises(UsageError, match=f"show takes the run .* not {type(thing).__name__}"):
        await show(thing)


def test_a_view_speaks_no_language_that_it_does_not_know() -> None:
    unknown: Any = "fr"
    with pytest.raises(UsageError, match="'fr' is not spoken here"):
        RunView("r-1", unknown)


@pytest.mark.parametrize("bad", ["", "a b", "x" * 65, "run\n", "../etc", "é"])
def test_a_bad_id_is_refused_before_anything_starts(bad: str) -> None:
    @progress
    def work() -> Any:
        raise AssertionError("started")

    with pytest.raises(UsageError, match="is no id"):
        work.using(run_id=bad)
    with pytest.raises(UsageError, match="is no id"):
        work.using(task_id=bad)


async def test_a_run_id_that_exists_is_not_recorded_over(journal: MemoryJournal) -> None:
    clock = Clock(wall=lambda: 0.0, monotonic=lambda: 0.0)  # only the claim tells both apart
    await started(scripted(turn(text("first"))), journal=journal, run_id="r", clock=clock)
    before = await stored(journal, "r")
    run = started(scripted(turn(text("first"))), journal=journal, run_id="r", clock=clock)
    outcome = await run
    assert (outcome.kind, outcome.reason) == ("unknown", "journal")
    assert run.view.status == "unknown" and run.view.terminal is None
    assert (await stored(journal, "r")) == before and await log_of(run) == Log([])


async def test_a_run_started_inside_a_tool_names_its_parent(journal: MemoryJournal) -> None:
    inner: list[Run] = []

    @function_tool
    async def delegate() -> str:
        inner.append(started(scripted(turn(text("inner answer")), name="B"), journal=journal))
        return str((await inner[0]).output)

    outer = started(scripted(turn(call("delegate", call_id="d1")), turn(text("ok")), tools=[delegate]), journal=journal)
    assert (await outer).kind == "succeeded"
    assert (await stored(journal, outer.id)).of("run.started")[0]["parent"] is None
    (begun,) = (await stored(journal, inner[0].id)).of("run.started")
    assert begun["parent"] == {"run_id": outer.id, "call_id": "d1"} and begun["task_id"] == inner[0].id
    assert (await stored(journal, outer.id)).view.tools == {"d1": "returned"}


async def test_switched_off_the_decorator_is_a_plain_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS_PROGRESS", "off")
    result: Any = started(scripted(turn(text("hello"))))
    assert isinstance(result, RunResultStreaming) and "stream_events" not in vars(result)
    assert [event async for event in result.stream_events()][-1].name == "message_output_created"
    assert result.final_output == "hello"


async def test_sinks_may_be_coroutines_and_get_every_envelope_in_order() -> None:
    seen: list[int] = []

    async def slow(envelope: Any) -> None:
        await asyncio.sleep(0)
        seen.append(envelope.seq)

    run = started(scripted(turn(text("one two three"))), sinks=[slow, on("run.ended", lambda: None)], coalesce=None)
    log = await log_of(run)
    await run.closed()
    assert seen == [envelope.seq for envelope in log.envelopes]


def test_a_misspelt_option_is_refused_with_the_right_name() -> None:
    with pytest.raises(UsageError, match="verfy is no option; did you mean verify?"):
        progress(verfy=None)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="x is no option; there are journal, verify"):
        progress.inside(x=1)  # type: ignore[call-overload]


def test_a_tool_that_is_approved_unseen_is_named_in_a_list() -> None:
    with pytest.raises(UsageError, match=r"approve_blind names tools; write \['refund'\]"):
        progress(approve_blind="refund")


def test_every_option_has_its_type_where_callers_write_it() -> None:
    written = {name: hint.__forward_arg__ for name, hint in Given.__annotations__.items()}
    assert written == {field.name: field.type for field in fields(Options)}
