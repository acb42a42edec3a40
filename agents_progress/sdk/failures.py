"""What a failure is called in public: a code of a closed list, a safe sentence, the phase, and whether trying again may
help.

An exception's own text never leaves: it quotes prompts, arguments and paths. Dispatch is by class name along the
exception's MRO, so that the classes of openai 2 and 3 share the rows and none has to be imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from agents_progress.payloads import Failure


class Row(NamedTuple):
    """One code: the sentence for people, the phase it belongs to, and whether the same call may succeed later."""

    message: str
    phase: str
    retryable: bool


CODES: Final[Mapping[str, Row]] = {
    "max_turns": Row("The run reached its turn limit", "run", False),
    "refusal": Row("The model refused to answer", "model", False),
    "model_behavior": Row("The model answered in a form the run cannot use", "model", True),
    "model_failed": Row("A model response failed", "model", True),
    "server_error": Row("The model service had an internal error", "model", True),
    "rate_limit_exceeded": Row("The model service refused more requests for now", "model", True),
    "invalid_prompt": Row("The model service refused the prompt", "model", False),
    "input_guardrail": Row("An input guardrail stopped the run", "guardrail", False),
    "output_guardrail": Row("An output guardrail stopped the run", "guardrail", False),
    "tool_guardrail": Row("A tool guardrail stopped the run", "guardrail", False),
    "tool_error": Row("A tool failed and its failure stops the run", "tool", False),
    "tool_timeout": Row("A tool took longer than it may", "tool", True),
    "hosted_tool_failed": Row("A tool of the model service failed", "tool", True),
    "timeout": Row("The model service did not answer in time", "connection", True),
    "connection": Row("The connection to the model service failed", "connection", True),
    "authentication": Row("The model service refused the credentials", "request", False),
    "not_found": Row("The model service does not know what was asked for", "request", False),
    "bad_request": Row("The model service refused the request", "request", False),
    "hook_error": Row("A hook of the application failed", "hook", False),
    "usage_error": Row("The agent is set up in a way the SDK refuses", "setup", False),
    "unexpected": Row("An unexpected error stopped the run", "run", False),
}

EXCEPTIONS: Final[Mapping[str, str]] = {
    "MaxTurnsExceeded": "max_turns",
    "ModelRefusalError": "refusal",
    "ModelBehaviorError": "model_behavior",
    "ModelTimeoutError": "timeout",
    "InputGuardrailTripwireTriggered": "input_guardrail",
    "OutputGuardrailTripwireTriggered": "output_guardrail",
    "ToolInputGuardrailTripwireTriggered": "tool_guardrail",
    "ToolOutputGuardrailTripwireTriggered": "tool_guardrail",
    "ToolTimeoutError": "tool_timeout",
    "MCPToolCancellationError": "tool_error",
    "APITimeoutError": "timeout",
    "APIConnectionError": "connection",
    "AuthenticationError": "authentication",
    "PermissionDeniedError": "authentication",
    "NotFoundError": "not_found",
    "RateLimitError": "rate_limit_exceeded",
    "InternalServerError": "server_error",
    "BadRequestError": "bad_request",
    "UnprocessableEntityError": "bad_request",
    "ReadTimeout": "timeout",
    "ConnectTimeout": "timeout",
    "TransportError": "connection",
    "ConnectionError": "connection",
}
"""Class name to code; the first class along the MRO that is here decides."""


def code_of(error: BaseException, response_code: str | None = None, *, from_hook: bool = False) -> str:
    """The public code of what ended a run.

    ``response_code`` is the code of the raw failed response, which says more than the SDK's one class for all of them.
    ``from_hook`` says that the application's own hook raised it. A `UserError` with a cause is a tool's.
    """
    if from_hook:
        return "hook_error"
    names = [cls.__name__ for cls in type(error).__mro__]
    found = next((EXCEPTIONS[name] for name in names if name in EXCEPTIONS), None)
    if found == "model_behavior" and response_code is not None:
        return response_code if response_code in CODES else "model_failed"
    if found is None and "UserError" in names:
        return "tool_error" if error.__cause__ is not None else "usage_error"
    return found or "unexpected"


def failure(code: str) -> Failure:
    """The public failure of a code. A code that is not on the list is `unexpected`."""
    row = CODES.get(code)
    if row is None:
        code, row = "unexpected", CODES["unexpected"]
    return {"code": code, "message": row.message, "retryable": row.retryable, "phase": row.phase}
