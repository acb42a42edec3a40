"""The closed list of failure codes: whole, reachable, safe; and what each exception is called."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import agents.exceptions as sdk
import httpx
import openai
import pytest
from openai.types.responses.response_error import ResponseError

from agents_progress.events import check_payload
from agents_progress.sdk.failures import CODES, EXCEPTIONS, code_of, failure
from tests.logs import envelope

PACKAGE = Path(__file__).parent.parent / "agents_progress"
RAW_CODES = get_args(ResponseError.model_fields["code"].annotation)

REQUEST = httpx.Request("POST", "https://api.example/v1/responses")


def make(cls: type[BaseException]) -> BaseException:
    """An exception of a class whose constructor asks for more than a text."""
    return cls.__new__(cls)


EXPECTED: dict[type[BaseException], str] = {
    sdk.MaxTurnsExceeded: "max_turns",
    sdk.ModelBehaviorError: "model_behavior",
    sdk.InputGuardrailTripwireTriggered: "input_guardrail",
    sdk.OutputGuardrailTripwireTriggered: "output_guardrail",
    sdk.ToolInputGuardrailTripwireTriggered: "tool_guardrail",
    sdk.ToolOutputGuardrailTripwireTriggered: "tool_guardrail",
    sdk.UserError: "usage_error",
    openai.APITimeoutError: "timeout",
    openai.APIConnectionError: "connection",
    openai.AuthenticationError: "authentication",
    openai.PermissionDeniedError: "authentication",
    openai.NotFoundError: "not_found",
    openai.RateLimitError: "rate_limit_exceeded",
    openai.InternalServerError: "server_error",
    openai.BadRequestError: "bad_request",
    openai.UnprocessableEntityError: "bad_request",
    httpx.ReadTimeout: "timeout",
    httpx.ConnectTimeout: "timeout",
    httpx.ConnectError: "connection",
    httpx.RemoteProtocolError: "connection",
    ConnectionResetError: "connection",
    RuntimeError: "unexpected",
    KeyError: "unexpected",
    ValueError: "unexpected",
    openai.OpenAIError: "unexpected",
}


@pytest.mark.parametrize("cls", EXPECTED, ids=lambda cls: cls.__name__)
def test_an_exception_has_its_code(cls: type[BaseException]) -> None:
    assert code_of(make(cls)) == EXPECTED[cls]


@pytest.mark.parametrize("cls", EXPECTED, ids=lambda cls: cls.__name__)
def test_a_subclass_of_the_application_has_the_code_of_its_base(cls: type[BaseException]) -> None:
    assert code_of(make(type("Mine", (cls,), {}))) == EXPECTED[cls]


LATER = {"ModelRefusalError": "refusal", "ModelTimeoutError": "timeout", "ToolTimeoutError": "tool_timeout"}
"""Classes that not every supported release of the SDK has."""


@pytest.mark.parametrize("name", LATER)
def test_a_class_of_some_releases_only_has_its_code(name: str) -> None:
    assert code_of(type(name, (Exception,), {})()) == LATER[name]


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_every_named_class_gives_its_code_whichever_library_release_has_it(name: str) -> None:
    assert code_of(type(name, (Exception,), {})()) == EXCEPTIONS[name]


def test_every_code_that_is_used_has_a_row() -> None:
    used = {*EXCEPTIONS.values(), "hook_error", "tool_error", "usage_error", "model_failed", "unexpected"}
    for file in (PACKAGE / "sdk").glob("*.py"):
        source = file.read_text(encoding="utf-8")
        used |= set(re.findall(r"""failure\("([a-z_]+)"\)""", source))
        used |= set(re.findall(r'"code": "([a-z_]+)"', source))
    assert used - set(CODES) == set()


def test_every_row_is_used() -> None:
    words: set[str] = set(EXCEPTIONS.values()) | set(RAW_CODES)
    for file in PACKAGE.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        words |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _is_a_row(file, tree, node)
        }
    assert set(CODES) - words == set()


@pytest.mark.parametrize("code", CODES)
def test_every_code_makes_a_failure_that_fits_the_protocol(code: str) -> None:
    made = failure(code)
    assert made["code"] == code
    check_payload(envelope(1, "run.ended", {"outcome": "failed", "final_output": None, "error": dict(made)}))


def test_the_sentences_are_distinct_and_plain() -> None:
    sentences = [row.message for row in CODES.values()]
    assert len(set(sentences)) == len(sentences)
    for text in sentences:
        assert re.fullmatch(r"[A-Z][A-Za-z ]+", text), text
    assert {row.phase for row in CODES.values()} <= {
        "run", "model", "guardrail", "tool", "connection", "request", "hook", "setup"
    }  # fmt: skip


def test_a_code_that_is_not_on_the_list_is_never_passed_on() -> None:
    for foreign in ("sk-secret", "", "Max_Turns", "drop table"):
        assert failure(foreign) == failure("unexpected")


def test_an_exceptions_own_text_is_nowhere_in_its_failure() -> None:
    error = sdk.ModelBehaviorError("the prompt was: my secret")
    assert "secret" not in repr(failure(code_of(error, "secret_code")))
    assert "secret" not in repr(failure(code_of(RuntimeError("secret"))))


@pytest.mark.parametrize("raw", RAW_CODES)
def test_a_raw_failed_response_says_more_than_the_sdks_one_class(raw: str) -> None:
    code = code_of(sdk.ModelBehaviorError("x"), raw)
    assert code == (raw if raw in CODES else "model_failed")


def test_a_raw_code_never_renames_another_kind_of_exception() -> None:
    assert code_of(make(openai.RateLimitError), "server_error") == "rate_limit_exceeded"
    assert code_of(RuntimeError("x"), "server_error") == "unexpected"
    assert code_of(sdk.ModelBehaviorError("x"), None) == "model_behavior"


def test_a_user_error_with_a_cause_is_a_tools() -> None:
    error = sdk.UserError("Error running tool")
    assert code_of(error) == "usage_error"
    error.__cause__ = ValueError("boom")
    assert code_of(error) == "tool_error"


def test_an_error_of_a_hook_is_the_hooks_whatever_its_class() -> None:
    for cls in EXPECTED:
        assert code_of(make(cls), "server_error", from_hook=True) == "hook_error"


def _is_a_row(file: Path, tree: ast.Module, node: ast.Constant) -> bool:
    """Whether a text stands as a key of the table of codes itself."""
    if file.name != "failures.py":
        return False
    table = next(
        item.value
        for item in tree.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.target.id == "CODES"
    )
    assert isinstance(table, ast.Dict)
    return node in table.keys
