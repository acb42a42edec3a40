"""An approval after a restart: the process that asked is killed, and another one goes on with the answer, once."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import Disclosure, progress
from agents_progress.errors import AlreadyResumed
from agents_progress.testing import ScriptedAPI, call, text, turn

FOLDER = os.environ.get("EXAMPLE_FOLDER") or tempfile.mkdtemp()
FIRST, REFUND, SHOP = "EXAMPLE_FOLDER" in os.environ, Path(FOLDER, "refund"), f"sqlite:///{FOLDER}/shop.db"
api = ScriptedAPI([turn(call("refund", {"order": 4711}) if FIRST else text("Refunded."))])


@function_tool(needs_approval=True)
def refund(order: int) -> str:
    REFUND.touch(exist_ok=False)  # a second refund would fail
    return f"refunded order {order}"


@progress(journal=SHOP, keep_pauses=True, approval_ttl=3600, disclosure=Disclosure(approval_details=["refund"]))
def settle(letter: str) -> RunResultStreaming:
    return Runner.run_streamed(Agent("Clerk", model=api.model(), tools=[refund]), letter)


async def ask() -> None:
    await (run := settle("The cup in order 4711 arrived broken."))
    (question,) = run.view.interactions.values()
    print(run.id, question.digest, question.title, question.details, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


async def answer(run_id: str, digest: str) -> None:
    run = await settle.resume(run_id, approve="ask-1", actor="ada", digest=digest)
    print(f"second process: {(await run).kind}: {run.view.text}")
    await run.closed()
    try:
        await settle.resume(run_id, approve="all", actor="bob")
    except AlreadyResumed:
        print("a second answer is refused")


if __name__ == "__main__":
    set_tracing_disabled(True)
    if FIRST:
        asyncio.run(ask())
    more = {**os.environ, "EXAMPLE_FOLDER": FOLDER}
    child = subprocess.run([sys.executable, __file__], env=more, check=False, stdout=subprocess.PIPE)
    run_id, digest, *shown = child.stdout.decode().split()
    print(f"first process: asks {' '.join(shown)}, ended by signal {-child.returncode}")
    asyncio.run(answer(run_id, digest))
    print(f"refunded: {REFUND.exists()}")
