"""A pause that is sealed tells a reader of the store nothing, and goes on only where the key is."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool

from agents_progress import progress
from agents_progress.decorate import Decorated
from agents_progress.errors import NotResumableHere, SealExtraMissing, UsageError
from agents_progress.journal import Journal, open_journal
from agents_progress.sealing import Key, Seal
from agents_progress.testing import ScriptedAPI, call, text, turn

pytest.importorskip("cryptography", reason="the extra `sealed` is not installed")


@function_tool(needs_approval=True)
def danger() -> str:
    return "ok"


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
    yield journal
    await journal.close()


class Own:
    """A seal of the application's own."""

    def seal(self, plain: bytes, about: bytes) -> bytes:
        return plain

    def unseal(self, sealed: bytes, about: bytes) -> bytes:
        return sealed


def work_of(journal: Journal, seal: Any, *turns: Any) -> Decorated[...]:
    @progress(journal=journal, keep_pauses=seal)
    def work(what: str) -> RunResultStreaming:
        return Runner.run_streamed(Agent(name="A", model=ScriptedAPI(turns).model(), tools=[danger]), what)

    return work


async def test_a_sealed_pause_tells_nothing_and_goes_on_with_its_key(journal: Journal, tmp_path: Path) -> None:
    old, new = Key.new(), Key.new()
    run = work_of(journal, Key(old), turn(text("S3CRET-OUT"), call("danger", {})))("S3CRET-IN")
    assert (await run).kind == "paused"
    await run.closed()
    pause = await journal.pause(run.id)
    assert pause is not None and pause.body.startswith("sealed:")
    for file in tmp_path.iterdir():
        assert b"S3CRET-IN" not in file.read_bytes()
    for seal in (True, Key(new)):
        with pytest.raises(NotResumableHere, match="not with a key that is here") as refused:
            await work_of(journal, seal, turn(text("ok"))).resume(run.id, approve="all")
        assert refused.value.code == "sealed"
    assert await journal.pause(run.id) == pause, "still waits"
    later = await work_of(journal, Key(new, old), turn(text("ok"))).resume(run.id, approve="all")
    assert (await later).kind == "succeeded"


async def test_a_pause_that_is_not_sealed_goes_on_where_there_is_a_key_only_if_the_key_says_so(
    journal: Journal,
) -> None:
    run = work_of(journal, True, turn(call("danger", {})))("go")
    await run
    await run.closed()
    for seal in (Key(Key.new()), Own()):
        with pytest.raises(NotResumableHere, match="not sealed") as refused:
            await work_of(journal, seal, turn(text("ok"))).resume(run.id, approve="all")
        assert refused.value.code == "unsealed"
    before = Key(Key.new(), unsealed=True)
    later = await work_of(journal, before, turn(text("ok"))).resume(run.id, approve="all")
    assert (await later).kind == "succeeded"


def test_a_seal_is_about_one_thing_and_no_byte_of_it_can_be_changed() -> None:
    key = Key(Key.new())
    sealed = key.seal(b"state", b"run-1")
    assert key.unseal(sealed, b"run-1") == b"state" and key.seal(b"state", b"run-1") != sealed
    with pytest.raises(UsageError, match="none of these keys"):
        key.unseal(sealed, b"run-2")
    for place in range(len(sealed)):
        with pytest.raises(UsageError):
            key.unseal(sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :], b"run-1")


def test_what_is_no_key_is_refused_and_a_key_is_in_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ((), ("",), ("short",), ("é" * 44,), (Key.new()[:-4],)):
        with pytest.raises(UsageError, match="key"):
            Key(*wrong)
    key = Key.new()
    assert key not in repr(Key(key)) and isinstance(Key(key), Seal)
    with pytest.raises(UsageError, match="keep_pauses is True, False or a Seal"):
        progress(keep_pauses="yes")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(SealExtraMissing, match=r"agents-progress\[sealed\]"):
        Key(key)
