"""Why a paused run was not continued or answered: each code, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NOT_HERE: Final[Mapping[str, str]] = {
    "nothing_kept": "nothing was stored of it; only the process that started it can go on with it",
    "other_function": "another function started it; resume it by that one",
    "arguments": "its stored arguments do not fit the function any more; deploy the one that started it",
    "no_call": "the function started no streamed run; deploy the one that started it",
    "context": "its stored context cannot be made again; give `keep_context` the pair that it was kept with",
    "state": "its stored state cannot be loaded with the agents that are here; deploy those that it started with",
    "tool": "the tool that it asks for is not here; deploy the agent that has it",
    "call_differs": "its stored call is not the one that was asked about; nothing was approved",
    "sealed": "it is sealed, and not with a key that is here; configure the one that it was sealed with",
    "unsealed": "it is not sealed, as if somebody else had written it; if it is from before there was a key, configure "
    "Key(..., unsealed=True)",
    "tampered": "what was stored of it was changed since; nothing was approved",
}
"""Code of a pause that cannot go on in this process."""

ANSWERS_NOT_USED: Final[Mapping[str, str]] = {
    "already_answered": "somebody answered this first",
    "not_waiting": "the run does not wait for this answer (any more)",
    "unknown_interaction": "this run asked no such question; look at its snapshot",
    "digest_differs": "look at what is asked, then answer with its digest",
    "expired": "the time to answer this is over",
    "not_allowed": "others may answer this; ask one of them",
    "answer_missing": "this is approved with a text that answers it; give one",
    "answer_unexpected": "this takes no such text or arguments; leave them out",
    "answer_too_long": "the text, the reason or the arguments are too long; shorten them",
    "not_an_option": "the text is none of the options that are offered; choose one of them",
    "not_editable": "the arguments of this call cannot be edited; approve it as it is, or reject it",
    "arguments_not_object": "the arguments are not one JSON object",
    "arguments_unknown": "the tool has no arguments of these names",
    "arguments_missing": "the tool needs arguments of these names too",
}
"""Code of an answer that was not used."""
