"""A review comment leads to a change that is approved, submitted once and confirmed, though its answer gets lost."""

import asyncio
import tempfile
import time

from agents import Agent, Runner, RunResultStreaming, set_tracing_disabled

from agents_progress import progress
from agents_progress.effects.reactions import Case, Grant, Reaction, Reactions, Receipt, Record
from agents_progress.testing import ScriptedAPI, text, turn
from agents_progress.verify import matches

COMMENTS = {"doc/7#c1": Record("v3", "'recieve' is misspelt, please mend it")}
changes: dict[str, str] = {}  # what the repository holds, by idempotency key


class Repository:
    async def read(self, resource: str) -> Record | None:
        return COMMENTS.get(resource)

    async def submit(self, key: str, result: str) -> None:
        changes.setdefault(key, result)  # the same key is the same change
        print(f"  the repository took it, and has {len(changes)} change; its answer is lost")
        raise ConnectionError

    async def receipt(self, key: str) -> Receipt | None:
        return Receipt(key, changes[key], reference="change 1") if key in changes else None


@progress(verify=matches(r"s/\w+/\w+/"))
def mend(case: Case) -> RunResultStreaming:
    api = ScriptedAPI([turn(text("s/recieve/receive/"))])
    return Runner.run_streamed(Agent("Editor", model=api.model()), f"Mend this: {case.content}")


async def main() -> None:
    grant = Grant("reviews", "ada", {"doc/*"}, {"mend"}, until=time.time() + 3600)
    review = Reaction("review", grant, Repository(), Repository(), mend, title="Mend what a comment asks for")
    reactions = Reactions(f"sqlite:///{tempfile.mkdtemp()}/runs.db", [review])
    hook: dict[str, object] = {"event_id": "evt-1", "reaction": "review", "who": "ada", "resource": "doc/7#c1"}
    hook |= {"version": "v3", "action": "mend", "occurred_at": time.time(), "text": "APPROVED"}  # permits nothing
    first, again = await reactions.receive(hook), await reactions.receive(hook)
    print(f"received: {type(first).__name__}, then {type(again).__name__}")
    await reactions.settle()  # `await reactions.work()` in a worker
    (held,) = await reactions.list(state="ready")
    print(f"held until somebody approves it: {held.result}; changes so far: {len(changes)}")
    await reactions.approve(held.task_id, held.asked or "", actor="ann")
    await reactions.settle()
    entry = await reactions.look(held.task_id)
    print(f"{entry.state}, submitted {entry.submits} time: {entry.reference}")
    runs = await reactions.journal.runs(task_id=entry.task_id)
    print("runs:", ", ".join(f"{run.title} ({run.status})" for run in reversed(runs)))
    print("audit:", ", ".join(line.what for line in await reactions.audit(task_id=entry.task_id)))


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
