"""Every scenario, by theme. A scenario is what a user of the SDK would write; it knows nothing of agents_progress.

Each is re-runnable, bounded in time and independent of the others: all of them may run at once in one process.
"""

from . import (
    answers,
    approvals,
    cancelling,
    chat,
    delegation,
    endings,
    guardrails,
    hooks,
    hosted,
    hosted_local,
    model_errors,
    readers,
    sessions,
    slow_readers,
    tools,
)

__all__ = [
    "answers",
    "approvals",
    "cancelling",
    "chat",
    "delegation",
    "endings",
    "guardrails",
    "hooks",
    "hosted",
    "hosted_local",
    "model_errors",
    "readers",
    "sessions",
    "slow_readers",
    "tools",
]
