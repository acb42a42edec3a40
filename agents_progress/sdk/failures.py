"""What a failure is called in public: a code of a closed list, a safe sentence, the phase, and whether trying again may
help.

An exception's own text never leaves: it quotes prompts, arguments and paths. Dispatch is by package and class name
along the exception's MRO, so that the classes of openai 2 and 3 share the rows and none has to be imported. A class of
another package that happens to have the same name is nobody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from agents_progress.payloads import Failure
from agents_progress.sdk.origins import Origin, origin_of


class Row(NamedTuple):
    """One code: the sentence for people, the phase it belongs to, whether the same call may succeed later, and what the
    developer may do.
    """

    message: str
    phase: str
    retryable: bool
    advice: str


_LATER: Final = "Try again later, with a growing delay."
_LOOK: Final = "Look at `run.error`."

CODES: Final[Mapping[str, Row]] = {
    "max_turns": Row(
        "The run reached its turn limit", "run", False, "Raise `max_turns`, or find out why the agent does not finish."
    ),
    "refusal": Row("The model refused to answer", "model", False, "Change the request: the same one is refused again."),
    "model_behavior": Row(
        "The model answered in a form the run cannot use",
        "model",
        True,
        "Try again. If it repeats, look at `run.error`.",
    ),
    "model_failed": Row("A model response failed", "model", True, "Try again. The service gave no reason known here."),
    "bad_response": Row(
        "The answer of the model service could not be read", "model", True, "Try again. A gateway may have changed it."
    ),
    "server_error": Row("The model service had an internal error", "model", True, _LATER),
    "rate_limit_exceeded": Row("The model service refused more requests for now", "model", True, _LATER),
    "insufficient_quota": Row(
        "The quota of the account is used up", "request", False, "Check the plan of the account."
    ),
    "invalid_prompt": Row("The model service refused the prompt", "model", False, "Change the prompt."),
    "invalid_image": Row("The model service cannot use an image", "request", False, "Check the image and its address."),
    "context_length_exceeded": Row(
        "The input is longer than the model can take", "request", False, "Shorten the input, or compact the session."
    ),
    "max_output_tokens": Row("The answer reached its token limit", "model", False, "Raise the limit, or ask for less."),
    "content_filter": Row("A content filter stopped the answer", "model", False, "Change the request."),
    "policy_violation": Row(
        "The model service stopped the request under its policies", "model", False, "Change the request."
    ),
    "input_guardrail": Row("An input guardrail stopped the run", "guardrail", False, "The input was not accepted."),
    "output_guardrail": Row("An output guardrail stopped the run", "guardrail", False, "The answer was withheld."),
    "tool_guardrail": Row("A tool guardrail stopped the run", "guardrail", False, "A tool call was not accepted."),
    "guardrail_error": Row(
        "A guardrail failed before it could decide", "guardrail", False, f"{_LOOK} Nothing was accepted or refused."
    ),
    "tool_error": Row(
        "A tool failed and its failure stops the run", "tool", False, f"{_LOOK} Check what the tool already did."
    ),
    "tool_timeout": Row(
        "A tool took longer than it may", "tool", True, "Check what the tool already did, or raise its timeout."
    ),
    "effect_uncertain": Row(
        "What a tool does once may have happened already",
        "tool",
        False,
        "Find out, and say so: `Ledger.resolve`, or give the tool `reconcile`.",
    ),
    "effect_busy": Row(
        "What a tool does once is being done elsewhere", "tool", True, "Call it again later, or raise `wait`."
    ),
    "effect_conflict": Row(
        "What a tool does once was asked for with other arguments", "tool", False, "Use another key for another effect."
    ),
    "effect_erased": Row(
        "What a tool does once has happened and its result was erased", "tool", False, "Look for its result downstream."
    ),
    "hosted_tool_failed": Row("A tool of the model service failed", "tool", True, "Try again."),
    "tool_server_error": Row(
        "A tool server could not be used", "tool", True, "Check that the MCP server runs and is connected."
    ),
    "sandbox_error": Row(
        "The sandbox of the run failed", "sandbox", False, "Look at `run.error.retryable`, which the SDK may have set."
    ),
    "session_error": Row(
        "The session could not be read or written", "session", True, "Check its store. Trying again runs tools again."
    ),
    "timeout": Row("The model service did not answer in time", "connection", True, _LATER),
    "connection": Row("The connection to the model service failed", "connection", True, _LATER),
    "conflict": Row("The model service was busy with the same resource", "request", True, _LATER),
    "authentication": Row(
        "The model service refused the credentials", "request", False, "Check the key and what it may do."
    ),
    "not_found": Row(
        "The model service does not know what was asked for", "request", False, "Check the model's name and the ids."
    ),
    "bad_request": Row("The model service refused the request", "request", False, f"{_LOOK} The request is wrong."),
    "client_setup": Row(
        "The client of the model service is not set up", "setup", False, f"{_LOOK} Often a missing `OPENAI_API_KEY`."
    ),
    "usage_error": Row(
        "The agent is set up in a way the SDK refuses", "setup", False, f"{_LOOK} Change the configuration."
    ),
    "hook_error": Row("A hook of the application failed", "hook", False, f"{_LOOK} A hook's exception ends the run."),
    "unexpected": Row("An unexpected error stopped the run", "run", False, f"{_LOOK} It may be the application's own."),
}
"""The closed list. A code keeps its meaning; new ones may be added."""

_HTTPX: Final = {
    "TimeoutException": "timeout",
    "TransportError": "connection",
    "RequestError": "connection",
    "TooManyRedirects": "connection",
    "DecodingError": "bad_response",
    "HTTPError": "connection",
    "HTTPStatusError": "bad_request",
    "StreamError": "connection",
    "InvalidURL": "client_setup",
    "CookieConflict": "unexpected",
    "SSEError": "bad_response",
}

EXCEPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "agents": {
        "AgentsException": "unexpected",
        "MaxTurnsExceeded": "max_turns",
        "ModelRefusalError": "refusal",
        "ModelBehaviorError": "model_behavior",
        "ModelTimeoutError": "timeout",
        "ResponsesWebSocketError": "model_failed",
        "InputGuardrailTripwireTriggered": "input_guardrail",
        "OutputGuardrailTripwireTriggered": "output_guardrail",
        "ToolInputGuardrailTripwireTriggered": "tool_guardrail",
        "ToolOutputGuardrailTripwireTriggered": "tool_guardrail",
        "ToolTimeoutError": "tool_timeout",
        "MCPToolCancellationError": "tool_error",
        "UserError": "usage_error",
        "SandboxError": "sandbox_error",
        "ArchiveResourceLimitError": "sandbox_error",
        "UnsafeTarMemberError": "sandbox_error",
        "UnsafeZipMemberError": "sandbox_error",
        "DependenciesError": "sandbox_error",
        "ModelScriptError": "unexpected",
        "SandboxScriptError": "unexpected",
    },
    "openai": {
        "OpenAIError": "client_setup",
        "APIError": "model_failed",
        "APIStatusError": "bad_request",
        "APIConnectionError": "connection",
        "APITimeoutError": "timeout",
        "APIResponseValidationError": "bad_response",
        "AuthenticationError": "authentication",
        "OAuthError": "authentication",
        "PermissionDeniedError": "authentication",
        "NotFoundError": "not_found",
        "ConflictError": "conflict",
        "RateLimitError": "rate_limit_exceeded",
        "InternalServerError": "server_error",
        "BadRequestError": "bad_request",
        "UnprocessableEntityError": "bad_request",
        "LengthFinishReasonError": "max_output_tokens",
        "ContentFilterFinishReasonError": "content_filter",
        "SubjectTokenProviderError": "client_setup",
        "MutuallyExclusiveAuthError": "client_setup",
        "MissingDependencyError": "client_setup",
        "WebSocketConnectionClosedError": "connection",
        "WebSocketQueueFullError": "connection",
        "StreamAlreadyConsumed": "unexpected",
        "MissingStreamClassError": "unexpected",
        "InvalidWebhookSignatureError": "unexpected",
        "APIRemovedInV1": "unexpected",
    },
    "agents_progress": {
        "EffectUncertain": "effect_uncertain",
        "EffectBusy": "effect_busy",
        "EffectConflict": "effect_conflict",
        "EffectErased": "effect_erased",
    },
    "mcp": {
        "McpError": "tool_server_error",
        "MCPError": "tool_server_error",
        "InputRequiredRoundsExceededError": "tool_server_error",
        "InvalidUriTemplate": "tool_server_error",
    },
    "httpx": _HTTPX,
    "httpx2": _HTTPX,
    "websockets": {"WebSocketException": "connection"},
    "builtins": {"ConnectionError": "connection", "TimeoutError": "timeout"},
    "socket": {"gaierror": "connection"},
    "ssl": {"SSLError": "connection"},
    "json": {"JSONDecodeError": "bad_response"},
}
"""Package, class name, code; the first class along the MRO that is here decides."""

ROOTS: Final = frozenset({"AgentsException", "OpenAIError", "APIError", "APIStatusError"})
"""These speak for themselves alone: a class below them is undecided until it has a row."""

CARRIERS: Final = frozenset({"httpx", "httpx2", "websockets", "builtins", "socket", "ssl", "json"})
"""Packages that applications use too: their exceptions are the model's only where it was the model that was called."""

ORIGINS: Final[Mapping[Origin, str]] = {
    "session": "session_error",
    "hook": "hook_error",
    "guardrail": "guardrail_error",
    "tool_server": "tool_server_error",
}
"""Origins that say more than any class does."""

SERVICE_CODES: Final[Mapping[str, str]] = {
    "server_error": "server_error",
    "rate_limit_exceeded": "rate_limit_exceeded",
    "insufficient_quota": "insufficient_quota",
    "invalid_prompt": "invalid_prompt",
    "context_length_exceeded": "context_length_exceeded",
    "content_filter": "content_filter",
    "model_not_found": "not_found",
    "invalid_api_key": "authentication",
    "data_residency_mismatch": "bad_request",
    "bio_policy": "policy_violation",
    "misalignment_policy_violation": "policy_violation",
    "image_content_policy_violation": "policy_violation",
    "vector_store_timeout": "hosted_tool_failed",
    "invalid_image": "invalid_image",
    "invalid_image_format": "invalid_image",
    "invalid_base64_image": "invalid_image",
    "invalid_image_url": "invalid_image",
    "image_too_large": "invalid_image",
    "image_too_small": "invalid_image",
    "image_parse_error": "invalid_image",
    "invalid_image_mode": "invalid_image",
    "image_file_too_large": "invalid_image",
    "unsupported_image_media_type": "invalid_image",
    "empty_image_file": "invalid_image",
    "failed_to_download_image": "invalid_image",
    "image_file_not_found": "invalid_image",
}
"""What the model service calls a failed response or a refused request, and the code that we give it.

Source: `openai.types.responses.ResponseError.code`, openai 2.54 and 3.57, and the `code` of HTTP error answers.
"""


def code_of(error: BaseException, response_code: object = None, *, from_hook: bool = False) -> str:
    """The public code of what ended a run.

    ``response_code`` is the code of the raw failed response, which says more than the SDK's one class for all of them.
    ``from_hook`` says that the application's own hook raised it. A group is what all of its members are.
    """
    if from_hook:
        return "hook_error"
    if isinstance(error, BaseExceptionGroup):
        codes = {code_of(member, response_code) for member in error.exceptions}
        return codes.pop() if len(codes) == 1 else "unexpected"
    origin = origin_of(error)
    if origin is not None and origin in ORIGINS:
        return ORIGINS[origin]
    package, code = named(type(error))
    if package in CARRIERS and error.__traceback__ is not None and origin != "model":
        return "unexpected"
    if package == "openai" or code == "model_failed":
        return SERVICE_CODES.get(str(getattr(error, "code", None)), code)
    if code == "model_behavior" and response_code is not None:
        return code_of_response(response_code)
    if code == "usage_error" and error.__cause__ is not None:  # the SDK wraps what a tool raises
        package, code = named(type(error.__cause__))
        return code if package == "agents_progress" else "tool_error"
    return "tool_error" if code == "unexpected" and origin == "tool" else code


def code_of_response(response_code: object) -> str:
    """The public code of a failed response, whatever the service calls it."""
    return SERVICE_CODES.get(str(response_code), "model_failed")


def named(cls: type[BaseException]) -> tuple[str | None, str]:
    """The package and the code that an exception class has by its name, `unexpected` without a package for others."""
    for base in cls.__mro__:
        package = base.__module__.partition(".")[0]
        code = EXCEPTIONS.get(package, {}).get(base.__name__)
        if code is not None and (base is cls or base.__name__ not in ROOTS):
            return package, code
    return None, "unexpected"


def failure(code: str) -> Failure:
    """The public failure of a code. A code that is not on the list is `unexpected`."""
    row = CODES.get(code)
    if row is None:
        code, row = "unexpected", CODES["unexpected"]
    return {"code": code, "message": row.message, "retryable": row.retryable, "phase": row.phase}
