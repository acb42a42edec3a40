"""The examples: each runs as it stands, against a mocked API, and says what its reader is promised."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from agents_progress.testing import no_network

EXAMPLES = Path(__file__).parent.parent / "examples"
SAYS = {
    "agent_as_tool": """\
c1       Ask the depot    returned
c1/c1    Count boxes      returned
done: 3 boxes. (4 requests, of both agents)
""",
    "approval": """\
paused: Waiting for approval; not finished yet
  ask-1: Refund {"order": 4711, "eur": 12}
succeeded: Done: the run ended and the check passed
  same task: True, id of the new run: the first one's with .2
a second answer is refused
""",
    "approval_after_restart": """\
first process: asks Refund {"order": 4711}, ended by signal 9
second process: succeeded: Refunded.
a second answer is refused
refunded: True
""",
    "approval_with_words": """\
without a text: answer_missing, and still waiting
asked: Pay {"to": "Ada", "eur": 120}
  (pays 12 EUR to Ada)
succeeded: Paid 12 EUR for the blue one.
approved with other arguments by bo: True, {"to": "Ada", "eur": 12}
""",
    "cancel": """\
asked: accepted
asked again: already_cancelling
ended: cancelled, requested by ada
shown: Cancelled; check what tools already did
tools: [('Send parcel', 'running')]
asked after the end: already_ended
""",
    "chat_completions": """\
'The parcel arrives on Friday.': succeeded; Done: the run ended and the check passed
'The parcel arrives ': succeeded; Run ended; the application's check did not pass
""",
    "effect_once": """\
first process: ended by signal 9, the bank has 1 payment
  the bank is asked: was this paid? True
succeeded: Paid. The bank has 1 payment
pay order-4711: happened, says reconcile
""",
    "embedded_element": """\
the element: text/javascript; charset=utf-8
the run, without a login: 401
the run, with one: done: 5 EUR
""",
    "failure_limit_pause": """\
failure  is_complete=True  failed      server_error   Failed; the task is not finished
         public: The model service had an internal error  In this process only: InternalServerError
limit    is_complete=True  incomplete  max_turns      Stopped at a limit; the task is not finished
pause    is_complete=True  paused      asks ask-1     Waiting for approval; not finished yet
""",
    "first_run": """\
Total · Clerk
running     Working; not finished yet
checking    Run ended; waiting for the application's check
done        Done: the run ended and the check passed
Check: matches
Tokens: 15
Answer:
  5 EUR
kind: succeeded, accepted: True, output: 5 EUR
""",
    "follow_a_result": """\
run.started
note.unhooked
tool.requested
tool.finished
run.ended
app.checked
done: 12 kg
""",
    "front_end_ag_ui": """\
RUN_STARTED          -
ACTIVITY_SNAPSHOT    Accepted; not started yet
ACTIVITY_SNAPSHOT    Working; not finished yet
TOOL_CALL_START      weigh
TOOL_CALL_END        -
ACTIVITY_SNAPSHOT    running
ACTIVITY_SNAPSHOT    returned
TOOL_CALL_RESULT     -
TEXT_MESSAGE_START   -
TEXT_MESSAGE_CONTENT 12 kg
TEXT_MESSAGE_END     -
ACTIVITY_SNAPSHOT    Run ended; waiting for the application's check
ACTIVITY_SNAPSHOT    Done: the run ended and the check passed
RUN_FINISHED         -
had it broken off before its last three events, the rest:
ACTIVITY_SNAPSHOT    Run ended; waiting for the application's check
ACTIVITY_SNAPSHOT    Done: the run ended and the check passed
RUN_FINISHED         -
""",
    "front_end_use_chat": """\
start                 -
data-run              Accepted; not started yet
data-run              Working; not finished yet
start-step            -
tool-input-available  refund
data-run              Waiting for approval; not finished yet
tool-input-available  refund
tool-approval-request -
finish                -
approved:
start                 -
data-run              Working; not finished yet
tool-input-available  refund
data-run              Waiting for approval; not finished yet
data-run              Working; not finished yet
tool-output-available -
start-step            -
text-start            -
text-delta            Refunded.
text-end              -
data-run              Run ended; waiting for the application's check
data-run              Done: the run ended and the check passed
finish                -
""",
    "handler_inside": """\
data: Your
data: parcel
data: arrives
data: on
data: Friday.
data: [DONE]
Chat: Done: the run ended and the check passed
""",
    "handoff": """\
run.started: Front desk
handoff.requested: Front desk -> Billing
handoff.completed: Front desk -> Billing
agent.changed: Billing
done: Billing said: Your invoice was sent again.
tool rows: {}
""",
    "job_run_sync": """\
the caller gets: Order 4711 is on its way.
recorded: done, tools {'c1': 'returned'}, answer 'Order 4711 is on its way.'
""",
    "review_comment": """\
received: Accepted, then Known
held until somebody approves it: "s/recieve/receive/"; changes so far: 0
  the repository took it, and has 1 change; its answer is lost
done, submitted 1 time: change 1
runs: Mend (done), Mend what a comment asks for (waiting), Mend what a comment asks for (done)
audit: received, repeated, prepare, approve, submit, confirm
""",
    "script_run_sync": """\
without a check: succeeded, accepted: False
with a check:    succeeded, accepted: True
""",
    "server_mounted": """\
without a login: 401
started: 201
read to its end: done: 5 EUR
and again: 204
""",
    "start_and_return_id": """\
started; the id has 32 characters
done: Shipped on Friday.
""",
    "structured_output": """\
order 4711: succeeded, lines [2, 3], total 5 -> Done: the run ended and the check passed
order 4712: succeeded, lines [2, 3], total 6 -> Run ended; the application's check did not pass
""",
    "tools": "done {'call_1_1': 'returned', 'call_1_2': 'returned', 'call_1_3': 'returned'}\n",
}
"""The whole of what each prints; of `tools` the last line, for the order of its parallel calls is not fixed."""


@pytest.fixture(autouse=True)
def as_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Python does for `python examples/NAME.py`; and a screen of 80 columns."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("COLUMNS", "80")


def played(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    with no_network(loopback=True):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    sys.modules.pop("_responses", None)
    return capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(SAYS))
def test_an_example_runs_alone_and_says_what_it_should(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = played(name, capsys)
    assert said.endswith(SAYS[name]) if name == "tools" else said == SAYS[name]


def test_the_tools_example_shows_counts_and_the_one_output_it_opens(capsys: pytest.CaptureFixture[str]) -> None:
    said = played("tools", capsys)
    for step in (1, 2, 3):
        assert f"'message': 'counting', 'current': {step}, 'total': 3" in said
    assert "'output': '12 kg'" in said
    assert said.count("'output'") == 1
    assert "depot-7" not in said


def test_every_example_is_tested_and_short() -> None:
    files = sorted(EXAMPLES.glob("*.py"))
    assert [file.stem for file in files if not file.stem.startswith("_")] == sorted(SAYS)
    assert {file.name: lines for file in files if (lines := len(file.read_text().splitlines())) >= 60} == {}


def test_at_least_four_examples_mock_with_respx() -> None:
    sources = [file.read_text() for file in EXAMPLES.glob("*.py")]
    with_respx = [source for source in sources if re.search(r"^import\s+respx$", source, re.MULTILINE)]
    assert len(with_respx) >= 4
    assert all("client(httpx.AsyncClient())" in source for source in with_respx)
