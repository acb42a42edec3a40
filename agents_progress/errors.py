"""Everything this package raises, as one tree.

* :exc:`ProgressError`
    * :exc:`UsageError`: the call is wrong; nothing was started or lost
        * :exc:`NotAStreamedResult`
        * :exc:`NotDecoratable`
        * :exc:`NoEventLoop`
        * :exc:`WrongLoop`
        * :exc:`UnknownInteraction`
        * :exc:`UnknownJournalURL`
        * :exc:`OutputTypeDiffers`
        * :exc:`BadRecording`
        * :exc:`TerminalExtraMissing`
        * :exc:`JournalExtraMissing`
        * :exc:`ClientExtraMissing`
        * :exc:`ServerExtraMissing`
        * :exc:`SealExtraMissing`
        * :exc:`BridgeExtraMissing`
        * :exc:`NotServable`
        * :exc:`NoVerdict`
        * :exc:`NotPublishable`
        * :exc:`EffectUnscoped`
        * :exc:`BadNotification`
        * :exc:`GrantConflict`
    * :exc:`ProtocolError`: bytes or objects that are not `agents-progress/1`
        * :exc:`BadEnvelope`
        * :exc:`BadPayload`
        * :exc:`UnknownEventType`
        * :exc:`BadSnapshot`
        * :exc:`BadFrame`
    * :exc:`JournalError`: the journal refused or could not be reached
        * :exc:`AppendConflict`
        * :exc:`AppendGap`
        * :exc:`Fenced`
        * :exc:`LeaseHeld`
        * :exc:`Sealed`
        * :exc:`AlreadyEnded`
        * :exc:`RunErased`
        * :exc:`CursorExpired`
        * :exc:`JournalUnreadable`
        * :exc:`JournalUnavailable`
        * :exc:`JournalClosed`
        * :exc:`RunNotFound`
    * :exc:`EffectError`: a tool that has its effect once was not run
        * :exc:`EffectUncertain`
        * :exc:`EffectBusy`
        * :exc:`EffectConflict`
        * :exc:`EffectErased`
    * :exc:`ReactionError`: a reaction was left as it is, or stopped
        * :exc:`ReactionNotFound`
        * :exc:`ReactionRefused`
    * :exc:`RemoteError`: a server of runs refused or could not be reached
        * :exc:`Refused`
        * :exc:`Unreachable`
    * :exc:`ResumeError`: a paused run that cannot be continued like this
        * :exc:`NotPaused`
        * :exc:`NotRepeatable`
        * :exc:`NotResumableHere`
        * :exc:`AnswerNotUsed`
        * :exc:`AlreadyResumed`
    * :exc:`RunSetupError`: the run can have no truthful record, so it is not started
        * :exc:`SDKTooOld`

Category classes end in ``Error``; leaves state the fact. Every message says what to do next. Exceptions of the SDK and
of the application are never wrapped: they keep their type and their place. The exceptions of
:mod:`agents_progress.testing` stand apart, so that no ``except ProgressError`` of an application swallows a failing
test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from agents_progress.reasons import ANSWERS_NOT_USED, NOT_HERE


class ProgressError(Exception):
    """Root of every exception this package raises by itself."""


class UsageError(ProgressError):
    """The call is wrong. Nothing was started and nothing was lost."""


class NotAStreamedResult(UsageError, TypeError):
    """A function under ``@progress`` returned something that is not a streamed run."""


class NotDecoratable(UsageError, TypeError):
    """The object cannot be wrapped: a synchronous generator, a realtime session, a voice pipeline."""


class NoEventLoop(UsageError, RuntimeError):
    """A run was started outside a running event loop."""


class WrongLoop(UsageError, RuntimeError):
    """A run was touched from another event loop or thread than the one that owns it."""


class UnknownInteraction(UsageError, LookupError):
    """An answer names a question that this run did not ask or that is settled."""


class UnknownJournalURL(UsageError, ValueError):
    """No journal backend answers to this URL."""


class OutputTypeDiffers(UsageError, TypeError):
    """The output is not of the type that was asked for."""


class BadRecording(UsageError, ValueError):
    """A file that holds no envelopes, or only part of them."""


class TerminalExtraMissing(UsageError, ImportError):
    """The live display needs a package that is not installed."""


class JournalExtraMissing(UsageError, ImportError):
    """The journal behind this URL needs a package that is not installed."""


class ClientExtraMissing(UsageError, ImportError):
    """The client needs a package that is not installed."""


class ServerExtraMissing(UsageError, ImportError):
    """The server needs packages that are not installed."""


class SealExtraMissing(UsageError, ImportError):
    """Sealing needs a package that is not installed."""


class BridgeExtraMissing(UsageError, ImportError):
    """A bridge needs a package that is not installed."""


class NotServable(UsageError, LookupError):
    """What was to be served is not there, or is no decorated function."""


class NoVerdict(UsageError, TypeError):
    """A verifier returned something that is neither a bool nor a Verdict."""


class NotPublishable(UsageError, TypeError):
    """An output has no JSON form, so that no verdict could be bound to it."""


class EffectUnscoped(UsageError, LookupError):
    """Nobody said whose effect it is, so that two tenants might share one."""


class BadNotification(UsageError, ValueError):
    """A field of a notification is not as it must be; nothing was stored. The message quotes no value."""


class GrantConflict(UsageError):
    """A grant was cancelled, or given with other content under the same revision; give it a new id or revision."""


class ProtocolError(ProgressError, ValueError):
    """Bytes or an object are not `agents-progress/1`."""


class BadEnvelope(ProtocolError):
    """The envelope is malformed: a field is missing, extra or of the wrong form."""


class BadPayload(ProtocolError):
    """The payload does not fit its type."""


class UnknownEventType(ProtocolError):
    """The type is none of this protocol version and no ``note.``."""


class BadSnapshot(ProtocolError):
    """The snapshot was not made by this version of the view."""


class BadFrame(ProtocolError):
    """Bytes that no strict event-stream reader may accept."""


class JournalError(ProgressError):
    """The journal refused an operation or could not be reached."""


class AppendConflict(JournalError):
    """The journal already holds other content under one of these sequence numbers."""


class AppendGap(JournalError):
    """The batch does not continue the log where it ends, so a hole would be left."""


class Fenced(JournalError):
    """The lease is no longer the run's newest one: another node owns the run, or it was lost."""


class LeaseHeld(JournalError):
    """The run, or another one with the same exclusive key, has an owner whose lease is live."""


class Sealed(JournalError):
    """Nothing more can be written to this run: its log is closed."""


class AlreadyEnded(JournalError):
    """A run with this id has ended, so it is not started again. Nothing was executed."""


class RunErased(JournalError):
    """The run was erased; only that it existed is known."""


class CursorExpired(JournalError):
    """What comes after this cursor was pruned; go on from ``snapshot``, whose ``seq`` is the new cursor."""

    def __init__(self, message: str, snapshot: dict[str, Any]) -> None:
        super().__init__(message)
        self.snapshot = snapshot


class JournalUnreadable(JournalError):
    """The file or server is not a journal, or of a version this release does not know."""


class JournalUnavailable(JournalError):
    """The journal exists but could not be used now: locked, full, away."""


class JournalClosed(JournalError):
    """The journal was closed."""


class RunNotFound(JournalError, LookupError):
    """The journal holds no run with this id."""


class EffectError(ProgressError):
    """A tool that has its effect once was not run. The message may be shown to a model: it quotes nothing.

    ``entry`` names what the ledger holds, and ``generation`` the attempt that an answer must be about. ``code`` is what
    the tool's row shows.
    """

    code: ClassVar[str]

    def __init__(self, message: str, entry: str, generation: int = 0) -> None:
        super().__init__(message)
        self.entry = entry
        self.generation = generation


class EffectUncertain(EffectError):
    """It may have happened, and nobody knows yet; find out, and say so with :meth:`Ledger.resolve`."""

    code = "effect_uncertain"


class EffectBusy(EffectError):
    """It is being done elsewhere, for longer than the caller waits."""

    code = "effect_busy"


class EffectConflict(EffectError):
    """The key was used with other arguments; use another key for another effect."""

    code = "effect_conflict"


class EffectErased(EffectError):
    """It happened, and its stored result was erased."""

    code = "effect_erased"


class ReactionError(ProgressError):
    """What was asked of a reaction was not done."""


class ReactionNotFound(ReactionError, LookupError):
    """There is no reaction with this task id, or it is somebody else's."""


class ReactionRefused(ReactionError):
    """The word of a person was not used. ``code`` says why: `not_waiting`, `digest_differs`, `not_uncertain`,
    `already_ended`, `may_have_happened` (it is not submitted again, and its receipt is still looked for), or the reason
    for which the reaction was stopped instead.
    """

    def __init__(self, code: str) -> None:
        why = f"this was not used ({code}); look at the reaction again"
        if code == "may_have_happened":
            why = "this does not stop (may_have_happened); it is not submitted again, and its receipt is looked for"
        super().__init__(why)
        self.code = code


class RemoteError(ProgressError):
    """A server of runs refused a request or could not be reached."""


class Refused(RemoteError):
    """The server answered, and not with what was asked for.

    ``status`` is that of HTTP and ``code`` the server's word for the reason. ``facts`` is what it said besides, as it
    said it: who answered first, for example. ``retry_after_s`` is when to come back, None when it did not say.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        facts: Mapping[str, Any] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{message} ({status} {code})")
        self.status = status
        self.code = code
        self.facts = dict(facts or {})
        self.retry_after_s = retry_after_s


class Unreachable(RemoteError):
    """No answer came, or a feed did not go on for longer than the patience that was given."""


class ResumeError(ProgressError):
    """A paused run cannot be continued like this."""


class NotPaused(ResumeError):
    """The run is not waiting for an answer."""


class NotRepeatable(ResumeError):
    """The call that started the run was not intercepted, so it cannot be repeated with the answer."""


class NotResumableHere(ResumeError):
    """A paused run cannot be continued in this process. It stays as it is, and no answer was used up.

    ``code`` says why: one of `nothing_kept`, `other_function`, `arguments`, `no_call`, `context`, `state`, `tool`,
    `call_differs`, `sealed` and `tampered`.
    """

    def __init__(self, run_id: str, code: str) -> None:
        super().__init__(f"run {run_id} cannot be continued here and still waits: {NOT_HERE[code]}")
        self.run_id = run_id
        self.code = code


class AnswerNotUsed(ResumeError):
    """The answer to a question of a run was not used, and changed nothing.

    ``code`` says why, one of :data:`agents_progress.reasons.ANSWERS_NOT_USED`. ``facts`` is what is known besides: the
    `decision` and `actor` that were first, or the `names` of arguments.
    """

    def __init__(self, code: str, **facts: Any) -> None:
        names = f": {', '.join(facts['names'])}" if "names" in facts else ""
        super().__init__(f"the answer was not used ({code}); {ANSWERS_NOT_USED[code]}{names}"[:2000])
        self.code = code
        self.facts = facts


class AlreadyResumed(ResumeError):
    """Somebody else continued this run first; the answer was not used."""


class RunSetupError(ProgressError):
    """The run can have no truthful record."""


class SDKTooOld(RunSetupError, ImportError):
    """The installed SDK hides endings; it is refused instead of guessed at."""
