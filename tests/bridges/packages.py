"""The front ends, each pinned, and what bundles them: `python -m tests.bridges.packages` prints what is not
installed yet, for `.ci/browser`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FOLDER: Final = Path(os.environ.get("BRIDGES", Path(sys.prefix, "bridges")))
"""Where .ci/browser puts them: a folder of the virtual environment, or the one that BRIDGES names."""
HERE: Final = Path(__file__).parent / "fronts"
PAGE: Final = Path(__file__).parents[2] / "agents_progress/server/page"

FRONTS: Final[Mapping[str, tuple[str, ...]]] = {
    "ag-ui": ("@ag-ui/client@1.0.0",),
    "ai-6": ("ai@6.0.325", "@ai-sdk/react@3.0.328", "react@19.3.1", "react-dom@19.3.1"),
    "ai-7": ("ai@7.0.173", "@ai-sdk/react@4.0.177", "react@19.3.1", "react-dom@19.3.1"),
}
"""Each in a folder of its own, so that two majors never meet."""
OLDEST: Final[Mapping[str, tuple[str, ...]]] = {"ai-6.0.0": ("ai@6.0.0",), "ai-7.0.0": ("ai@7.0.0",)}
"""First releases, whose schemas the stored streams are held to."""
BUNDLER: Final = ("esbuild", "esbuild@0.28.2")
ESBUILD: Final = FOLDER / BUNDLER[0] / "node_modules/.bin/esbuild"
SOURCES: Final[Mapping[str, str]] = {"ag-ui": "ag_ui", "ai-6": "ai", "ai-7": "ai"}
"""The driver of a front end, whose `.js` plays it in Node, and whose `_page.js` is its page."""


def lacking() -> dict[str, tuple[str, ...]]:
    """Folder to packages of those that are not there in the version of the table."""
    wanted = {**FRONTS, **OLDEST, BUNDLER[0]: BUNDLER[1:]}
    return {name: packages for name, packages in wanted.items() if not all(_is_there(name, each) for each in packages)}


def missing() -> str | None:
    """Why the front ends cannot be played here; None when they can."""
    names = ", ".join(name for name in lacking() if name not in OLDEST)
    return (
        f"{names} not installed as tests/bridges/packages.py names them; .ci/browser installs them" if names else None
    )


def _is_there(folder: str, package: str) -> bool:
    name, _, version = package.rpartition("@")
    about = FOLDER / folder / "node_modules" / name / "package.json"
    return about.is_file() and json.loads(about.read_bytes())["version"] == version


def bundled(front: str, folder: Path) -> tuple[Path, Path]:
    """A front end as one module for Node and one for a browser, which asks the server for the module of ours."""
    found = {"NODE_PATH": str(FOLDER / front / "node_modules")}
    source = SOURCES[front]
    shared = ["--bundle", "--format=esm", "--log-level=warning", '--define:process.env.NODE_ENV="production"']
    made = []
    for entry, platform, ours in (
        ("node.js", "node", f"--alias:ours={PAGE / 'bridge.js'}"),
        (f"{source}_page.js", "browser", "--external:/page/bridge.js"),
    ):
        made.append(folder / f"{front}.{platform}.mjs")
        aliases = [f"--alias:front={HERE / f'{source}.js'}", ours]
        command = [str(ESBUILD), str(HERE / entry), *shared, f"--platform={platform}", *aliases]
        subprocess.run([*command, f"--outfile={made[-1]}"], env={**os.environ, **found}, check=True, timeout=60)
    return made[0], made[1]


if __name__ == "__main__":
    for folder, packages in lacking().items():
        print(folder, *packages)
