"""``python -m agents_progress`` is the command ``agents-progress``."""

from __future__ import annotations

import sys

from agents_progress.cli import main

if __name__ == "__main__":
    sys.exit(main())
