"""The closed list of failure codes: whole, reachable, safe; and what each exception is called."""

from __future__ import annotations

import ast
import re
import socket
import ssl
from pathlib import Path
from typing import Any, get_args

import agents.exceptions as sdk
import httpx
import openai
import pytest
from agents.models.openai_responses import ResponsesWebSocketError
from openai.types.responses.response_error import ResponseError

from agents_progress.events import check_payload
from agents_progress.sdk.failures import (
    CARRIERS,
    CODES,
    EXCEPTIONS,
    ORIGINS,
    ROOTS,
    SERVICE_CODES,
    code_of,
    code_of_response,
    failure,
    named,
)
from agents_progress.sdk.surface import exception_classes
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
    openai.OpenAIError: "client_setup",
    openai.APIError: "model_failed",
    openai.APIStatusError: "bad_request",
    openai.ConflictError: "conflict",
    openai.APIResponseValidationError: "bad_response",
    openai.LengthFinishReasonError: "max_output_tokens",
    openai.ContentFilterFinishReasonError: "content_filter",
    socket.gaierror: "connection",
    TimeoutError: "timeout",
}


@pytest.mark.parametrize("cls", EXPECTED, ids=lambda cls: cls.__name__)
def test_an_exception_has_its_code(cls: type[BaseException]) -> None:
    assert code_of(make(cls)) == EXPECTED[cls]


@pytest.mark.parametrize("cls", EXPECTED, ids=lambda cls: cls.__name__)
def test_a_subclass_of_the_application_has_the_code_of_its_base_unless_that_only_speaks_for_itself(
    cls: type[BaseException],
) -> None:
    expected = "unexpected" if cls.__name__ in ROOTS else EXPECTED[cls]
    assert code_of(make(type("Mine", (cls,), {}))) == expected


BY_NAME = [(package, name, code) for package, names in EXCEPTIONS.items() for name, code in names.items()]


@pytest.mark.parametrize(("package", "name", "code"), BY_NAME)
def test_every_named_class_gives_its_code_whichever_release_of_its_package_has_it(
    package: str, name: str, code: str
) -> None:
    assert code_of(type(name, (Exception,), {"__module__": f"{package}.somewhere"})()) == code


@pytest.mark.parametrize("name", sorted({name for _, name, _ in BY_NAME}))
def test_a_class_of_another_package_with_the_same_name_is_nobodys(name: str) -> None:
    assert code_of(type(name, (Exception,), {"__module__": "elasticsearch"})()) == "unexpected"


# Every class of the installed packages.


def undecided(classes: list[type[BaseException]]) -> list[str]:
    """The exceptions that only have the code of everything that is not known."""
    return [f"{cls.__module__}.{cls.__name__}" for cls in classes if named(cls)[0] is None]


def test_every_exception_of_the_installed_sdk_and_client_has_a_decision() -> None:
    assert undecided(exception_classes()) == [], "give each a row in agents_progress/sdk/failures.py"


@pytest.mark.parametrize(
    ("module", "base"),
    [
        (sdk, sdk.AgentsException),
        (sdk, RuntimeError),
        (openai, openai.OpenAIError),
        (openai, openai.APIError),
        (openai, openai.APIStatusError),
    ],
)
def test_an_exception_that_a_new_release_brings_is_named(
    module: Any, base: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = type("BrandNewError", (base,), {"__module__": module.__name__})
    monkeypatch.setattr(module, "BrandNewError", planted, raising=False)
    assert undecided(exception_classes()) == [f"{module.__name__}.BrandNewError"]
    assert code_of(make(planted)) == "unexpected"


def test_every_code_that_is_used_has_a_row() -> None:
    used = {code for _, _, code in BY_NAME} | set(SERVICE_CODES.values()) | set(ORIGINS.values())
    used |= {"tool_error", "model_failed", "unexpected"}
    for file in (PACKAGE / "sdk").glob("*.py"):
        source = file.read_text(encoding="utf-8")
        used |= set(re.findall(r"""failure\("([a-z_]+)"\)""", source))
        used |= set(re.findall(r'"code": "([a-z_]+)"', source))
    assert used - set(CODES) == set()


def test_every_row_is_used() -> None:
    words: set[str] = set()
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
        "run", "model", "guardrail", "tool", "sandbox", "session", "connection", "request", "hook", "setup"
    }  # fmt: skip


def test_every_advice_is_one_or_two_plain_sentences() -> None:
    for row in CODES.values():
        assert re.fullmatch(r"[A-Z][\w ,:'`.]+\.", row.advice), row.advice
        assert len(row.advice) <= 80


def test_a_code_that_is_not_on_the_list_is_never_passed_on() -> None:
    for foreign in ("sk-secret", "", "Max_Turns", "drop table"):
        assert failure(foreign) == failure("unexpected")


def test_an_exceptions_own_text_is_nowhere_in_its_failure() -> None:
    error = sdk.ModelBehaviorError("the prompt was: my secret")
    assert "secret" not in repr(failure(code_of(error, "secret_code")))
    assert "secret" not in repr(failure(code_of(RuntimeError("secret"))))


@pytest.mark.parametrize("raw", RAW_CODES)
def test_every_code_of_a_failed_response_is_decided(raw: str) -> None:
    assert raw in SERVICE_CODES, "give it a row in agents_progress/sdk/failures.py"


@pytest.mark.parametrize("raw", SERVICE_CODES)
def test_a_raw_failed_response_says_more_than_the_sdks_one_class(raw: str) -> None:
    assert code_of(sdk.ModelBehaviorError("x"), raw) == code_of_response(raw) == SERVICE_CODES[raw]


@pytest.mark.parametrize("raw", ["brand_new_code", "", "hook_error", "unexpected", None, 7, ["server_error"]])
def test_a_raw_code_that_nobody_knows_is_a_failed_response_also_when_it_looks_like_a_code_of_ours(raw: object) -> None:
    assert code_of_response(raw) == "model_failed"
    if raw is not None:
        assert code_of(sdk.ModelBehaviorError("x"), raw) == "model_failed"


@pytest.mark.parametrize(
    ("cls", "own", "code"),
    [
        (openai.RateLimitError, "insufficient_quota", "insufficient_quota"),
        (openai.RateLimitError, "brand_new_code", "rate_limit_exceeded"),
        (openai.RateLimitError, None, "rate_limit_exceeded"),
        (openai.BadRequestError, "context_length_exceeded", "context_length_exceeded"),
        (openai.BadRequestError, "content_filter", "content_filter"),
        (openai.NotFoundError, "model_not_found", "not_found"),
        (openai.APIError, "rate_limit_exceeded", "rate_limit_exceeded"),
        (ResponsesWebSocketError, "server_error", "server_error"),
        (ResponsesWebSocketError, None, "model_failed"),
        (RuntimeError, "server_error", "unexpected"),
    ],
)
def test_a_code_that_the_client_carries_says_more_than_its_class(
    cls: type[Exception], own: str | None, code: str
) -> None:
    error: Any = make(cls)
    error.code = own
    assert code_of(error) == code


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ([ConnectionResetError()], "connection"),
        ([ConnectionResetError(), make(httpx.ConnectError)], "connection"),
        ([ConnectionResetError(), ValueError()], "unexpected"),
        ([ExceptionGroup("inner", [TimeoutError()]), TimeoutError()], "timeout"),
    ],
)
def test_a_group_is_what_all_of_its_members_are(members: list[Exception], code: str) -> None:
    assert code_of(ExceptionGroup("of tasks", members)) == code


@pytest.mark.parametrize("cls", [httpx.ReadTimeout, ConnectionResetError, TimeoutError, socket.gaierror, ssl.SSLError])
def test_a_network_error_is_the_models_only_where_the_model_was_called(cls: type[Exception]) -> None:
    try:
        raise make(cls)
    except cls as raised:
        assert code_of(raised) == "unexpected", "it came through the application, as its traceback says"
    assert {cls.__module__.partition(".")[0] for cls in (httpx.ReadTimeout, OSError, ssl.SSLError)} <= CARRIERS


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
    """Whether a text stands as a key of a table of codes itself."""
    if file.name != "failures.py":
        return False
    table = next(
        item.value
        for item in tree.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.target.id == "CODES"
    )
    assert isinstance(table, ast.Dict)
    return node in table.keys
