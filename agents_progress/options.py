"""What an application decides about its runs, once at the decorator and again per call."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

from agents_progress.answers import Kind
from agents_progress.caps import Caps
from agents_progress.clock import Clock, rfc3339
from agents_progress.coalesce import Coalesce
from agents_progress.disclosure import Disclosure
from agents_progress.errors import UsageError
from agents_progress.events import is_run_id
from agents_progress.journal import Journal, MemoryJournal, Origin, open_journal
from agents_progress.messages import Language, refuse_unspoken
from agents_progress.pausing import Answerers, KeptContext
from agents_progress.payloads import Parent
from agents_progress.plan import Plan, Sink
from agents_progress.prices import Price, checked_prices
from agents_progress.sdk.part import Reading
from agents_progress.sealing import Seal
from agents_progress.verify import Verifier

_OPENED: Final[dict[str, Journal]] = {}
"""One journal a URL and process, so that all decorated functions share its writer."""


LONGEST_FIRST_ID: Final = 58
"""Characters of a run id that an application chooses, at most."""


def shared_journal(url: str) -> Journal:
    """The journal of a URL, the same one for every caller in this process. A closed one is opened anew."""
    journal = _OPENED.get(url)
    if journal is None or journal.closed:
        journal = _OPENED[url] = open_journal(url)
    return journal


_FORMS: Final[Mapping[str, tuple[Any, str]]] = {
    "journal": (str | Journal | None, "a URL such as 'sqlite:///runs.db', or a Journal"),
    "disclosure": (Disclosure, "a Disclosure(...)"),
    "approval_kinds": (Mapping, "a mapping from tool to kind"),
    "choices": (Mapping, "a mapping from tool to argument"),
    "titles": (Mapping, "a mapping from tool to text"),
    "prices": (Mapping, "a mapping from model to Price"),
    "sinks": (Sequence, "a list of functions"),
    "coalesce": (Coalesce | None, "a Coalesce(...) or None"),
    "caps": (Caps, "a Caps(...)"),
    "keep_pauses": (bool | Seal, "True, False or a Seal, as Key(...) is one"),
    "title": (str | None, "a text"),
    "owner": (str | None, "a text"),
    "tenant": (str | None, "a text"),
    "labels": (Mapping, "a mapping from text to text"),
    "exclusive": (str | None, "a text"),
}
"""Of options whose values are easily mistaken: what they are, for a check and in words."""
_TIMES: Final = ("verify_timeout", "approval_ttl", "exclusive_wait", "unread", "deadline", "settle", "patience")


class Given(TypedDict, total=False):
    """The options by their names, as callers write them; each is described in :class:`Options`."""

    journal: Journal | str | None
    verify: Verifier | None
    verify_timeout: float
    disclosure: Disclosure
    approve_blind: Collection[str]
    keep_pauses: bool | Seal
    keep_context: KeptContext | None
    approval_ttl: float | None
    approval_kinds: Mapping[str, Kind]
    choices: Mapping[str, str]
    answerers: Answerers | None
    titles: Mapping[str, str]
    prices: Mapping[str, Price]
    sinks: Sequence[Sink]
    coalesce: Coalesce | None
    caps: Caps
    task_id: str | None
    title: str | None
    run_id: str | None
    owner: str | None
    tenant: str | None
    labels: Mapping[str, str]
    exclusive: str | None
    exclusive_wait: float
    unread: float | None
    deadline: float | None
    settle: float
    patience: float
    unknown_items: Literal["block", "note"]
    language: Language
    clock: Clock


@dataclass(frozen=True)
class Options:
    """The options of a decorated function. Times are in seconds."""

    journal: Journal | str | None = None
    verify: Verifier | None = None
    verify_timeout: float = 60.0
    disclosure: Disclosure = field(default_factory=Disclosure)
    approve_blind: Collection[str] = ()
    keep_pauses: bool | Seal = False
    keep_context: KeptContext | None = None
    approval_ttl: float | None = None
    approval_kinds: Mapping[str, Kind] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    answerers: Answerers | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    sinks: Sequence[Sink] = ()
    coalesce: Coalesce | None = field(default_factory=Coalesce)
    caps: Caps = field(default_factory=Caps)
    task_id: str | None = None
    title: str | None = None
    run_id: str | None = None
    owner: str | None = None
    tenant: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    exclusive: str | None = None
    exclusive_wait: float = 0.0
    unread: float | None = None
    deadline: float | None = None
    settle: float = 30.0
    patience: float = 60.0
    unknown_items: Literal["block", "note"] = "block"
    language: Language = "en"
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        for name in ("run_id", "task_id"):
            given = getattr(self, name)
            if given is not None and not is_run_id(given):
                raise UsageError(f"{name} {given!r:.80} is no id; use 1 to 64 of letters, digits, '.', '_' and '-'")
        if self.run_id is not None and not _is_first_id(self.run_id):
            raise UsageError(
                f"run_id {self.run_id!r} leaves no room for the runs that continue it as .2, .3 and so on; use at most "
                f"{LONGEST_FIRST_ID} characters, and no number after a dot at the end"
            )
        refuse_unspoken(self.language)
        if self.unknown_items not in ("block", "note"):
            raise UsageError(f"unknown_items is 'block' or 'note', not {self.unknown_items!r}")
        self._refuse_other_types()
        self._refuse_wrong_forms()
        checked_prices(self.prices)
        if isinstance(self.journal, str):
            open_journal(self.journal)  # nothing is opened yet; a wrong URL is refused where it is written

    def _refuse_other_types(self) -> None:
        for name, (form, words) in _FORMS.items():
            if not isinstance(given := getattr(self, name), form):
                raise UsageError(f"{name} is {words}, not {_kind(given)}")
        for name in _TIMES:
            given = getattr(self, name)
            if given is not None and not (isinstance(given, int | float) and given >= 0):
                raise UsageError(f"{name} is a time in seconds, not {given!r:.80}")
        if self.verify is not None and not callable(self.verify):
            raise UsageError(
                f"verify is a function that takes the output and gives True, False or a Verdict, not "
                f"{_kind(self.verify)}; agents_progress.verify has equals(...), matches(...) and more"
            )

    def _refuse_wrong_forms(self) -> None:
        if wrong := set(self.approval_kinds.values()) - set(get_args(Kind)):
            raise UsageError(f"{min(wrong)!r:.80} is no kind of question; there are {', '.join(get_args(Kind))}")
        self._refuse_choices_unseen()
        if self.keep_context is not None and not _is_pair(self.keep_context):
            raise UsageError("keep_context is a pair of functions: context to JSON mapping, and mapping to context")
        for name, members in (("approve_blind", "tools"), ("answerers", "actors")):
            if isinstance(given := getattr(self, name), str):
                raise UsageError(f"{name} names {members}; write [{given!r}]")
        for name, otherwise in (("unread", "let a run go unread"), ("approval_ttl", "let a question wait")):
            if (given := getattr(self, name)) is not None and given <= 0:
                raise UsageError(f"{name} is a time in seconds, not {given!r}; leave it out to {otherwise}")

    def _refuse_choices_unseen(self) -> None:
        for tool in {name for name, kind in self.approval_kinds.items() if kind == "choice"} - self.choices.keys():
            raise UsageError(f"{tool} asks for a choice; name the argument that lists the options: choices={{...}}")
        for tool in self.choices:
            if not self.disclosure.opens("approval_details", tool):
                raise UsageError(f"nobody is shown the options of {tool}; name it in Disclosure(approval_details=...)")

    def using(self, **changes: Unpack[Given]) -> Options:
        """These options with some of them changed. Raises :exc:`UsageError` for a name that is no option."""
        for name in changes.keys() - Given.__annotations__.keys():
            near = get_close_matches(name, Given.__annotations__, 1)
            raise UsageError(
                f"{name} is no option; "
                + (f"did you mean {near[0]}?" if near else f"there are {', '.join(Given.__annotations__)}")
            )
        return replace(self, **changes)

    @cached_property
    def reading(self) -> Reading:
        """How SDK events are read under these options."""
        blind = frozenset(self.approve_blind)
        return Reading(
            self.title_of,
            self.unknown_items == "block",
            self.clock.monotonic,
            self.prices,
            blind,
            self._expires_at,
            {**self.approval_kinds, **dict.fromkeys(self.choices, "choice")},
            self.choices,
            None if self.keep_context is None else self.keep_context[0],
        )

    def _expires_at(self) -> str | None:
        """Until when a question that is asked now can be answered."""
        return None if self.approval_ttl is None else rfc3339(int((self.clock.wall() + self.approval_ttl) * 1000))

    @property
    def exclusive_key(self) -> str | None:
        """The exclusive key as the journal has it: tenants never share one."""
        return self.exclusive if None in (self.exclusive, self.tenant) else json.dumps([self.tenant, self.exclusive])

    def title_of(self, name: str) -> str:
        """The title of a tool: the application's own, or its name in words."""
        return (self.titles.get(name) or in_words(name))[:512]

    def new_journal(self) -> Journal:
        """The journal for one more run: a private one in memory when the application named none."""
        if self.journal is None:
            return MemoryJournal()
        return shared_journal(self.journal) if isinstance(self.journal, str) else self.journal

    def plan(
        self,
        function: Callable[..., Any] | str,
        *,
        run_id: str | None = None,
        task_id: str | None = None,
        journal: Journal | None = None,
        attempt: int | None = None,
        parent: Parent | None = None,
    ) -> Plan:
        """The plan of one run of a function. The title comes from its name, never from its input."""
        name = function if isinstance(function, str) else getattr(function, "__name__", "run")
        chosen = run_id or self.run_id or self.clock.new_id()
        return Plan(
            run_id=chosen,
            task_id=task_id or self.task_id or chosen,
            title=self.title or self.title_of(name),
            journal=journal or self.new_journal(),
            origin=Origin(owner=self.owner, tenant=self.tenant, labels=dict(self.labels)),
            verify=self.verify,
            verify_timeout=self.verify_timeout,
            disclosure=self.disclosure,
            sinks=self.sinks,
            coalesce=self.coalesce,
            caps=self.caps,
            deadline=self.deadline,
            settle=self.settle,
            patience=self.patience,
            language=self.language,
            clock=self.clock,
            attempt=attempt,
            parent=parent,
            exclusive=self.exclusive_key,
            unread=self.unread,
            given=chosen == self.run_id,
            shared=self.journal is not None,
        )


def _kind(given: object) -> str:
    return type(given).__name__


def _is_pair(given: object) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and all(map(callable, given))


def _is_first_id(run_id: str) -> bool:
    return len(run_id) <= LONGEST_FIRST_ID and re.fullmatch(r".*\.[0-9]+", run_id, re.ASCII) is None


def switched_off() -> bool:
    """Whether ``AGENTS_PROGRESS=off`` asks for plain calls."""
    return os.environ.get("AGENTS_PROGRESS", "").lower() == "off"


def in_words(name: str) -> str:
    """A name as a title: ``look_up_order`` becomes ``Look up order``."""
    words = name.strip("_").replace("_", " ").replace("-", " ").strip()
    return (words[:1].upper() + words[1:])[:128] if words else name[:128]
