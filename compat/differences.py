"""Where a release shows something else than `expected.tsv`, and why: everything that is not listed here must be equal.

`expected.tsv` holds the truth. A difference names a scenario, the releases, and what stands there in the place of the
truth. Three kinds are told apart, so that nobody takes a lie of the SDK for a habit of it, or a fault of ours for
either. A release that shows the truth in spite of a difference passes; the report says which are still seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from .seen import Seen

Kind = Literal["erased", "differs", "fault"]

MEANING: Final[Mapping[Kind, str]] = {
    "erased": "The SDK erases the evidence: what is shown is wrong, and no reader of the SDK can know",
    "differs": "The SDK does something else on these releases, and what is shown is true",
    "fault": "What is shown is wrong, and the evidence is there: a fault of agents_progress, still to be mended",
}


@dataclass(frozen=True)
class Difference:
    """What some releases show instead of the truth. `since` and `until` are minor releases, both included."""

    scenarios: tuple[str, ...]
    kind: Kind
    why: str
    shown: Mapping[str, str] = field(default_factory=dict)
    """Column to value, for each scenario."""
    since: str = "0.18"
    until: str = "0.24"

    def concerns(self, release: str) -> bool:
        """Whether this difference is named for a release such as 0.22.3."""
        return minor(self.since) <= minor(release) <= minor(self.until)

    @property
    def releases(self) -> str:
        """The releases in words."""
        if (self.since, self.until) == ("0.18", "0.24"):
            return "every release"
        return f"up to {self.until}" if self.since == "0.18" else f"{self.since} to {self.until}"


SUCCESS: Final = {"endings": "succeeded", "reason": "-", "status": "checking"}
"""An ending that looks like a success."""

DIFFERENCES: Final = (
    Difference(
        ("chat_finish_length",),
        "erased",
        "Chat Completions: `finish_reason` `length` becomes a `response.completed` with status None",
        {**SUCCESS, "output": '"hello"'},
    ),
    Difference(
        ("chat_finish_content_filter",),
        "erased",
        "Chat Completions: `finish_reason` `content_filter` becomes a `response.completed` with status None",
        {**SUCCESS, "output": '"hel"'},
    ),
    Difference(
        ("stop_on_first_tool_tool_raised",),
        "erased",
        "the SDK promotes the error text of a tool to the final output",
        {**SUCCESS, "output": '"An error occurred while running the tool. Please try again."'},
        since="0.23",
    ),
    Difference(
        ("stop_on_first_tool_tool_raised",),
        "erased",
        "the SDK promotes the error text of a tool to the final output",
        {**SUCCESS, "output": '"An error occurred while running the tool. Please try again. Error: kaput"'},
        until="0.22",
    ),
    Difference(
        ("chat_stream_cut_no_finish_reason",),
        "erased",
        "Chat Completions: a stream that ends without a finish reason becomes a `response.completed`",
        {**SUCCESS, "body": "returned", "output": '"hel"'},
        until="0.22",
    ),
    Difference(
        ("chat_zero_chunks",),
        "erased",
        "Chat Completions: a stream without any chunk becomes an empty answer",
        {**SUCCESS, "body": "returned", "output": '""'},
        until="0.22",
    ),
    Difference(
        ("chat_cut_in_tool_args",),
        "erased",
        "Chat Completions: a call that was cut in its arguments is made all the same; the run goes on",
        {**SUCCESS, "body": "returned", "activities": "look:failed", "text": '"sorry"', "output": '"sorry"'},
        until="0.22",
    ),
    Difference(
        ("leak_nested_approval_same_call_id",),
        "erased",
        "the SDK keeps an abandoned approval of a nested agent and gives it to a later run with the same call id",
        {"endings": "paused paused", "status": "waiting", "activities": "ask:requested", "text": '""', "output": "-"},
        since="0.20",
        until="0.22",
    ),
    Difference(
        ("leak_nested_approval_same_call_id",),
        "erased",
        "the SDK keeps an abandoned approval of a nested agent and gives it to a later run with the same call id",
        {"endings": "paused paused", "status": "waiting", "text": '""', "output": "-"},
        until="0.19",
    ),
    Difference(
        (
            "after_turn_then_error",
            "completed_then_conn_error",
            "consume_after_failure",
            "model_error_mid",
            "sdk_retry_mid_stream",
            "slow_consumer_failure_events_dropped",
        ),
        "differs",
        "openai 2 raises the error of its HTTP library, openai 3 an `APIConnectionError`; our code is the same",
        {"body": "raised ReadError"},
        until="0.20",
    ),
    Difference(
        ("after_turn_on_tool_output",),
        "differs",
        "the SDK runs ahead of its readers: the last turn was over before the reader asked for an end",
        {"text": '"done"', "output": '"done"'},
        until="0.18",
    ),
    Difference(
        ("input_guardrail_raises",),
        "differs",
        "the SDK raises the error without its traceback, so nobody can tell that it came from a guardrail",
        {"reason": "unexpected"},
        until="0.22",
    ),
)


def minor(release: str) -> tuple[int, int]:
    """The minor release: 0.22.3 and 0.22 give (0, 22)."""
    major, second, *_ = release.split(".")
    return int(major), int(second)


def named(scenario: str, release: str) -> Iterator[Difference]:
    """The differences that are named for a scenario on a release."""
    return (each for each in DIFFERENCES if scenario in each.scenarios and each.concerns(release))


def unexplained(shown: Seen, truth: Seen, release: str) -> dict[str, str]:
    """Column to what is shown there, wherever it is neither the truth nor a difference that is named."""
    known = list(named(shown.scenario, release))
    return {
        column: value
        for column, value in vars(shown).items()
        if value != getattr(truth, column) and all(each.shown.get(column) != value for each in known)
    }


def still_seen(difference: Difference, shown: Seen, truth: Seen) -> bool:
    """Whether a scenario shows what this difference says instead of the truth."""
    return any(getattr(truth, column) != getattr(shown, column) == value for column, value in difference.shown.items())
