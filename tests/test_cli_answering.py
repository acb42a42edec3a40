"""``answer``, ``cancel`` and ``doctor --pending``: a person decides at a terminal; no deploy strands a run unseen."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool
from staging import stored

from agents_progress import Disclosure, progress
from agents_progress.decorate import Decorated
from agents_progress.journal import Journal, open_journal
from agents_progress.labels import LABELS
from agents_progress.testing import ScriptedAPI, call, text, turn
from tests.commands import Command, refused

T = TypeVar("T")


def work_of(*turns: Any, tool_name: str = "danger", **options: Any) -> Decorated[...]:
    @function_tool(name_override=tool_name, needs_approval=True)
    def danger(what: str) -> str:
        return "ok"

    @progress(keep_pauses=True, **options)
    def work() -> RunResultStreaming:
        return Runner.run_streamed(Agent(name="A", model=ScriptedAPI(turns).model(), tools=[danger]), "go")

    return work


class Store:
    """A journal in a file, asked from code without a loop."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/runs.db"

    def ask(self, question: Callable[[Journal], Awaitable[T]]) -> T:
        async def main() -> T:
            journal = open_journal(self.url)
            try:
                return await question(journal)
            finally:
                await journal.close()

        return asyncio.run(main())

    def paused(self, **options: Any) -> str:
        """A run that paused in a process that is gone."""

        async def pause(journal: Journal) -> str:
            run = work_of(turn(call("danger", {"what": "x\x1b[31m"})), journal=journal, **options)()
            await run
            await run.closed()
            return run.id

        return self.ask(pause)

    def digest(self, run_id: str) -> str:
        view = self.ask(lambda journal: stored(journal, run_id)).view
        return str(view.interactions["ask-1"].digest)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


SHOWN = {"disclosure": Disclosure(approval_details=["danger"])}


def test_what_is_approved_is_shown_first_and_its_digest_repeated(store: Store, command: Command) -> None:
    run_id = store.paused(**SHOWN)
    shown = command("answer", run_id, "ask-1", "--approve", "--journal", store.url)
    assert shown.code == 1 and f"--digest {store.digest(run_id)}" in shown.out
    assert "\x1b" not in shown.out and '"what": "x' in shown.out
    wrong = command("answer", run_id, "ask-1", "--approve", "--digest", "0" * 64, "--journal", store.url)
    assert (wrong.code, wrong.out) == (1, "What is asked is not what was shown; look again before you answer\n")
    assert store.ask(lambda journal: journal.requests([run_id])) == []


def test_an_answer_is_kept_for_a_process_that_has_the_function(
    store: Store, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents_progress.cli.answering._WITHIN_S", 0.05)
    run_id = store.paused(**SHOWN)
    given = "--digest", store.digest(run_id), "--actor", "mei", "--reason", "checked", "--journal", store.url
    taken = command("answer", run_id, "ask-1", "--approve", *given)
    assert (taken.code, taken.out) == (0, "The answer is kept; the run did not go on yet\n")
    (request,) = store.ask(lambda journal: journal.requests([run_id]))
    assert {**request.body, "digest": ""} == {
        "decision": "approved",
        "actor": "mei",
        "reason": "checked",
        "digest": "",
    }
    again = command("answer", run_id, "ask-1", "--reject", "--journal", store.url)
    assert (again.code, again.out) == (1, "Somebody answered this first\n")


def test_what_is_not_shown_cannot_be_approved_and_can_be_rejected(
    store: Store, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents_progress.cli.answering._WITHIN_S", 0.05)
    run_id = store.paused()
    digest = store.digest(run_id)
    hidden = command("answer", run_id, "ask-1", "--approve", "--digest", digest, "--journal", store.url)
    assert hidden.code == 1 and "is not shown, so it cannot be approved here" in hidden.out
    rejected = command("answer", run_id, "ask-1", "--reject", "--journal", store.url, "--language", "zh")
    assert (rejected.code, rejected.out) == (0, "答复已保存，运行还没有继续\n")


def test_a_question_that_is_not_asked_and_a_run_that_is_not_there_are_said(store: Store, command: Command) -> None:
    run_id = store.paused()
    unknown = command("answer", run_id, "ask-9", "--reject", "--journal", store.url)
    assert (unknown.code, unknown.out) == (1, "The run does not wait for this answer any more\n")
    refused(command("answer", "nobody", "ask-1", "--reject", "--journal", store.url), "holds no run nobody")
    refused(command("cancel", "nobody", "--journal", store.url), "holds no run nobody")


def test_an_actor_in_another_encoding_is_told_as_far_as_it_can_be(store: Store, command: Command) -> None:
    run_id = store.paused()
    assert command("cancel", run_id, "--actor", "Jos\udce9", "--journal", store.url)[:2] == (0, "accepted\n")
    log = store.ask(lambda journal: stored(journal, f"{run_id}.2"))
    assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", "Jos\ufffd")


def test_a_paused_run_is_cancelled_at_once_although_its_owner_is_gone(store: Store, command: Command) -> None:
    run_id = store.paused()
    assert command("cancel", run_id, "--actor", "mei", "--journal", store.url)[:2] == (0, "accepted\n")
    log = store.ask(lambda journal: stored(journal, f"{run_id}.2"))
    assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", "mei")
    assert store.ask(lambda journal: journal.pauses()) == []
    assert command("cancel", run_id, "--journal", store.url)[:2] == (1, "already_ended\n")


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def deploy(function: Any) -> None:
        module = ModuleType("shipped")
        module.work = function  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "shipped", module)

    return deploy


def test_the_doctor_says_what_a_deploy_would_strand(
    store: Store, command: Command, deployed: Callable[..., None]
) -> None:
    run_id = store.paused()
    before = store.ask(lambda journal: journal.pause(run_id))
    ask = "doctor", "--pending", "shipped:work", "--journal", store.url
    deployed(work_of(turn(text("never said"))))
    assert command(*ask)[:2] == (0, "1 paused, 0 would be stranded by these functions\n")
    deployed(work_of(tool_name="other"))
    stranded = command(*ask)
    assert stranded.code == 1 and stranded.rows[0] == "1 paused, 1 would be stranded by these functions"
    assert run_id in stranded.rows[1] and "the tool that it asks for is not here" in stranded.rows[1]

    @progress
    def unlike() -> RunResultStreaming:
        raise AssertionError

    deployed(unlike)
    assert "which is not among them" in command(*ask).rows[1]
    deployed(print)
    refused(command(*ask), "no function under @progress")
    assert store.ask(lambda journal: journal.pause(run_id)) == before, "nothing was used up"
    assert store.ask(lambda journal: journal.run(f"{run_id}.2")) is None


# What an answer carries.


def test_an_answer_carries_arguments_a_text_and_a_reason(store: Store, command: Command) -> None:
    run_id = store.paused(**SHOWN, approval_kinds={"danger": "clarification"})
    approve = ("answer", run_id, "ask-1", "--approve", "--digest", store.digest(run_id), "--journal", store.url)
    said = {
        (): "This is approved with an answer in words; give one",
        ("--text", "x", "--arguments", '{"who": 1}'): "The tool has no such arguments: who",
        ("--text", "x", "--arguments", "[]"): "The arguments are not one JSON object",
    }
    for more, sentence in said.items():
        refusal = command(*approve, *more)
        assert (refusal.code, refusal.out) == (1, f"{sentence}\n")
    for broken in ("{", "[" * 100_000):
        assert command(*approve, "--arguments", broken).code == 2
    given = ("--text", "the blue one", "--reason", "because", "--arguments", '{"what": "y"}', "--actor", "mei")
    assert command(*approve, *given).out == f"{LABELS['answer_kept']['en']}\n"
    (request,) = store.ask(lambda journal: journal.requests([run_id]))
    assert request.body == {
        "decision": "approved",
        "actor": "mei",
        "digest": store.digest(run_id),
        "arguments": {"what": "y"},
        "text": "the blue one",
        "reason": "because",
    }


def test_the_options_of_a_choice_are_shown_before_one_is_chosen(store: Store, command: Command) -> None:
    async def pause(journal: Journal) -> str:
        options: dict[str, Any] = {**SHOWN, "choices": {"danger": "what"}}
        run = work_of(turn(call("danger", {"what": ["mon", "tue it's"]})), journal=journal, **options)()
        await run
        await run.closed()
        return run.id

    run_id = store.ask(pause)
    shown = command("answer", run_id, "ask-1", "--approve", "--journal", store.url)
    assert "--text mon\n" in shown.out and """--text 'tue it'"'"'s'\n""" in shown.out
    approve = ("answer", run_id, "ask-1", "--approve", "--digest", store.digest(run_id), "--journal", store.url)
    assert command(*approve, "--text", "wed").out == f"{LABELS['refusal_no_option']['en']}\n"
    assert command(*approve, "--text", "tue it's").code == 0
