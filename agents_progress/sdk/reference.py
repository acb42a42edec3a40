"""The reference of every ending: codes, reasons and exceptions as one Markdown page, made from the tables.

``python -m agents_progress.sdk.reference > docs/errors.md`` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from agents_progress.journal.rules import LEASE_EXPIRED, NEVER_STARTED
from agents_progress.messages import MESSAGES, Status
from agents_progress.sdk.failures import CARRIERS, CODES, EXCEPTIONS, ORIGINS, ROOTS, SERVICE_CODES


class Reason(NamedTuple):
    """One reason of an ending that is no failure: what it says, and what the developer may do."""

    meaning: str
    advice: str


_STATUSES: Final[Mapping[str, Status]] = {
    "incomplete": "incomplete",
    "paused": "waiting",
    "cancelled": "cancelled",
    "unknown": "unknown",
}
"""Outcome to the status that a reader shows for it."""

_FAULT: Final = "Look at `run.error`, and report it: this is a fault of this package."

REASONS: Final[Mapping[str, Mapping[str, Reason]]] = {
    "incomplete": {
        "max_turns": Reason("The turn limit was reached.", "Raise `max_turns`, or find out why the agent goes on."),
        "max_output_tokens": Reason("A model response reached its token limit.", "Raise the limit, or ask for less."),
        "content_filter": Reason("The model service filtered a response.", "Change the request."),
        "max_messages": Reason("A model response reached its limit of messages.", "Raise the limit, or ask for less."),
        "steered": Reason("New input stopped a model response.", "Look for what steers the response."),
        "response_incomplete": Reason(
            "A model response was cut short, and no limit was named.", "Look at `run.result`."
        ),
    },
    "paused": {
        "": Reason("Tools wait for an approval: `run.view.interactions`.", "Answer with `run.resume(...)`, or cancel."),
    },
    "cancelled": {
        "": Reason(
            "The run stopped on request. `requested_by` says whose: an actor, `deadline`, `unread`, `shutdown`, "
            "`keyboard`, or null when nobody asked through this package. "
            "`completed_anyway` says that an output existed before.",
            "Check what tools already did: one that is still shown as running may go on.",
        ),
    },
    "unknown": {
        "": Reason("The log has no ending, and nothing more comes.", "Check the result; the process may have died."),
        "not_settled": Reason(
            "The run's own task did not stop in time.", "Raise `settle`, or find what does not stop."
        ),
        "not_drained": Reason("The stream was not read to its end.", "Check the result; nothing may be concluded."),
        "not_complete": Reason("The SDK says itself that the run is not over.", "Run `agents-progress doctor`."),
        "no_output": Reason(
            "The run ended without an output, an error, a pause or a cancel.",
            "Look for code inside the run that raises `CancelledError`.",
        ),
        "journal": Reason(
            "The journal failed, so the ending is not recorded.", "Look at `run.error`; mend the journal."
        ),
        "owner_stopped": Reason("The owner was stopped before the ending was established.", "Check the result."),
        LEASE_EXPIRED: Reason(
            "The owner was not heard of for too long.", "Check the result; its process may have died."
        ),
        NEVER_STARTED: Reason(
            "Nobody took the run up in time.", "Look for the workers; start it again under another id."
        ),
        "start_failed": Reason(
            "The run was claimed, and what was to run could not be started.", "Look at what the start raised."
        ),
        "fault_journal": Reason("The journal failed.", "Look at `run.error`; mend the journal."),
        "fault_translate": Reason("An event could not be translated.", _FAULT),
        "fault_observe": Reason("A hook call could not be translated.", _FAULT),
        "fault_report": Reason("A report from inside the run could not be written.", _FAULT),
        "fault_disclose": Reason("An event could not be masked or does not fit the protocol.", _FAULT),
        "fault_reduce": Reason("An event could not be folded into the view.", _FAULT),
        "fault_conclude": Reason("The ending could not be read or worded.", _FAULT),
    },
}
"""Outcome to its reasons. An empty reason is an outcome that needs none."""

ISSUES: Final[Mapping[str, str]] = {
    "bad_envelope": "What came is no envelope of this protocol.",
    "bad_payload_or_transition": "An event does not fit its type, or cannot follow what came before.",
    "event_after_terminal": "Something came after the ending.",
    "id_conflict": "The same id came again with other content.",
    "sequence_gap_or_reorder": "Events are missing or out of order. Read the log again.",
    "unknown_event": "An event of a type that this release does not know. Upgrade the reader.",
}
"""What a reader finds wrong by itself; each makes the status `unknown`."""

CLOSED: Final[Mapping[str, Reason]] = {
    "not_run": Reason("The model asked for the tool, and the run ended before it was called.", "Nothing was executed."),
    "response_ended": Reason("A tool of the model service had not ended when its response did.", "Check its effect."),
    "approval_rejected": Reason("The approval was refused.", "Nothing was executed."),
    "tool_guardrail": Reason("An input guardrail of the tool refused the call.", "Nothing was executed."),
    "no_output": Reason("The run succeeded, and the tool never said how it ended.", "Check its effect."),
}
"""Reasons of `tool.skipped` and `tool.rejected`."""

_HEAD: Final = """# How runs end: codes and reasons

*Made from the tables by `python -m agents_progress.sdk.reference`; a test compares.*

A run ends as `succeeded`, `paused`, `cancelled`, `failed` or `incomplete`, or its ending is `unknown`. What failed has
a code of a closed list; everything else that needs one has a reason. A run that succeeded is done only when your check
accepted its output. The real exception is `run.error`, in your process only.
"""

_FAILED: Final = """The event carries `code`, `message`, `phase` and `retryable`. Retryable means that the same call may
succeed later; it does again what its tools did. This package retries nothing.
"""

_NAMED: Final = """What counts first is where an exception came from, as its traceback says: a session, a hook, a
guardrail or a tool server of the application. Then its class counts, or the nearest base that is listed; a `UserError`
that wraps what a tool raised is `tool_error`. The code that the model service gives a failed response or a refused
request says more than the class. A group of exceptions has the code that all of them have. Everything else is
`unexpected`, a failed response `model_failed`.

Exceptions marked * are the model's only where the model was called: the application uses these packages too. Those
marked = speak for themselves and not for the classes below them. `httpx` stands for `httpx2` too.
"""

_ADVISED: Final = ("reason", "what it says", "advice")


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_failed(), *_named(), *_reasons(), *_issues()])


def _failed() -> Iterator[str]:
    yield from _begin("Failed", "failed")
    yield _FAILED
    yield from _table(
        ("code", "message", "phase", "retryable", "advice"),
        (
            (_code(name), row.message, row.phase, "yes" if row.retryable else "no", row.advice)
            for name, row in CODES.items()
        ),
    )


def _named() -> Iterator[str]:
    yield "## Which code a failure has\n"
    yield _NAMED
    yield from _table(
        ("code", "came through", "exceptions", "the service says"),
        (
            (
                _code(code),
                ", ".join(f"a {name.replace('_', ' ')}" for name, found in ORIGINS.items() if found == code),
                ", ".join(_exceptions(code)),
                ", ".join(_code(raw) for raw, found in SERVICE_CODES.items() if found == code),
            )
            for code in CODES
        ),
    )


def _exceptions(code: str) -> Iterator[str]:
    for package, names in EXCEPTIONS.items():
        for name, found in names.items():
            if found == code and package != "httpx2":  # as httpx
                yield f"`{package}.{name}`" + "*" * (package in CARRIERS) + "=" * (name in ROOTS)


def _reasons() -> Iterator[str]:
    for outcome, rows in REASONS.items():
        yield from _begin(outcome.capitalize(), _STATUSES[outcome])
        yield from _table(_ADVISED, ((_code(name), row.meaning, row.advice) for name, row in rows.items()))
    yield "## A tool that was not executed\n"
    yield from _table(_ADVISED, ((_code(name), row.meaning, row.advice) for name, row in CLOSED.items()))


def _issues() -> Iterator[str]:
    yield "## A log that does not fit\n"
    yield "A reader that finds one of these shows `unknown`, whatever the log says: `view.issues`.\n"
    yield from _table(("issue", "what it says"), ((_code(name), text) for name, text in ISSUES.items()))


def _begin(title: str, status: Status) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"*{MESSAGES[status]['en']}.*\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, ("---",) * len(head), *rows):
        yield "| " + " | ".join(cells) + " |"
    yield ""


def _code(name: str) -> str:
    return f"`{name}`" if name else ""


if __name__ == "__main__":
    sys.stdout.write(page())
