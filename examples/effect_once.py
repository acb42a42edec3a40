"""An effect that happens once: a process is killed between a payment and its record, and the next one asks the bank."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import progress
from agents_progress.effects.entry import DidNotHappen, Happened
from agents_progress.effects.once import effect_key, once, worded
from agents_progress.effects.places import open_ledger
from agents_progress.testing import ScriptedAPI, call, text, turn

DIES = "EXAMPLE_FOLDER" in os.environ
FOLDER = os.environ.get("EXAMPLE_FOLDER") or tempfile.mkdtemp()
BANK, SHOP = Path(FOLDER, "bank.txt"), f"sqlite:///{FOLDER}/shop.db"  # runs and effects, side by side


def payments() -> list[str]:
    return BANK.read_text().splitlines() if BANK.exists() else []


def ask_bank(key: str, arguments: object) -> Happened | DidNotHappen:
    print("  the bank is asked: was this paid?", key in payments())
    return Happened("paid 12 EUR") if key in payments() else DidNotHappen()


@function_tool(failure_error_function=worded)
@once(key="order-{order}", reconcile=ask_bank, ledger=SHOP)
def pay(order: int, eur: int) -> str:
    with BANK.open("a") as bank:
        bank.write(f"{effect_key()}\n")  # a real bank takes it as the idempotency key
    if DIES:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {eur} EUR"


@progress(journal=SHOP, owner="ada")
def settle() -> RunResultStreaming:
    api = ScriptedAPI([turn(call("pay", {"order": 4711, "eur": 12})), turn(text("Paid."))])
    return Runner.run_streamed(Agent("Clerk", model=api.model(), tools=[pay]), "Pay order 4711.")


if __name__ == "__main__":
    set_tracing_disabled(True)
    open_ledger(SHOP).lease_s = 1.0  # how long a dead process counts as alive; 15 if you leave it
    if not DIES:
        child = subprocess.run([sys.executable, __file__], env={**os.environ, "EXAMPLE_FOLDER": FOLDER}, check=False)
        print(f"first process: ended by signal {-child.returncode}, the bank has {len(payments())} payment")
    outcome = settle.run_sync()
    print(f"{outcome.kind}: {outcome.output} The bank has {len(payments())} payment")
    (effect,) = open_ledger(SHOP).entries()
    print(f"{effect.effect.name} {effect.effect.key}: {effect.settled}, says {effect.settled_by}")
    open_ledger(SHOP).close()
