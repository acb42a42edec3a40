"""Use the installed SDK as an application would, and print the sentence with which it is refused."""

from __future__ import annotations

from agents_progress import progress
from agents_progress.errors import SDKTooOld


@progress.inside
def work() -> None:
    """Never called: the decorator refuses before."""
    raise AssertionError


def main() -> int:
    try:
        work()
    except SDKTooOld as refusal:
        print(refusal)
        return 0
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
