"""The shape of the package: what imports what, what importing loads, the first ring of names, sizes, and words."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from types import ModuleType

import pytest

import agents_progress
from agents_progress import errors
from agents_progress.effects import reactions

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "agents_progress"
FILES = sorted(PACKAGE.rglob("*.py"))
TREES = {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}
BANNED = {"manager", "handler", "util", "utils", "helper", "helpers", "data", "info", "common"}
"""Words of section 2 of the design, and the module names of section 7."""

FOREIGN_NAMES = {("sse.py", "data"), ("vercel_parts.py", "data")}
"""Names that a standard gives: the field of an event stream, and that of a data part of the AI SDK."""

SDK_SIDE = {"sdk", "decorate.py", "inside.py", "current.py", "options.py", "demo.py", "testing"}
"""Where the SDK or its client may be imported."""


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def python(code: str, *flags: str) -> str:
    done = subprocess.run(
        [sys.executable, *flags, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Import contracts.


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("lint-imports")),
        "--no-cache",
        "--config",
        str(folder / "pyproject.toml"),
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=50, check=False)


def test_the_import_contracts_hold() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "agents_progress", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold_in_an_untouched_copy(copy: Path) -> None:
    assert lint_imports(copy).returncode == 0


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("events.py", "import agents", "Only the SDK adapter and the decorators know the SDK"),
        ("view.py", "import openai", "Only the SDK adapter and the decorators know the SDK"),
        ("view.py", "import sqlite3", "The middle does no input or output"),
        ("fold.py", "import time", "The middle does no input or output"),
        ("events.py", "from agents_progress import run", "Imports point inward"),
        ("errors.py", "from agents_progress.events import Envelope", "Imports point inward"),
        ("journal/base.py", "from agents_progress.sdk import calls", "Imports point inward"),
        ("client/feed.py", "from agents_progress import journal", "The client knows a server by its wire only"),
        ("client/feed.py", "from agents_progress.server import limits", "Imports point inward"),
        ("server/feeds.py", "from agents_progress.client import pace", "Imports point inward"),
    ],
)
def test_a_planted_wrong_import_is_caught(copy: Path, file: str, line: str, contract: str) -> None:
    planted = copy / "agents_progress" / file
    planted.write_text(planted.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    done = lint_imports(copy)
    assert done.returncode == 1
    assert f"{contract} BROKEN" in done.stdout


def test_a_new_module_must_take_its_place_in_the_layers(copy: Path) -> None:
    (copy / "agents_progress" / "brand_new.py").write_text('"""New."""\n', encoding="utf-8")
    done = lint_imports(copy)
    assert done.returncode == 1
    assert "brand_new" in done.stdout


def test_the_sdk_is_imported_at_the_edge_only() -> None:
    for file, tree in TREES.items():
        place = file.relative_to(PACKAGE).parts[0]
        outside = {name.split(".")[0] for name in imported(tree)} & {"agents", "openai"}
        assert not outside or place in SDK_SIDE, module_name(file)


def test_every_module_outside_the_edge_is_under_the_contract_that_forbids_the_sdk() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (contract,) = (contract for contract in contracts if "know the SDK" in contract["name"])
    listed = {name.removeprefix("agents_progress.").split(".")[0] for name in contract["source_modules"]}
    present = {file.relative_to(PACKAGE).parts[0].removesuffix(".py") for file in FILES}
    free = {name.removesuffix(".py") for name in SDK_SIDE}
    assert present - free - {"__init__", "__main__"} - listed == set()


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


# The first ring.


def test_the_first_ring_is_small_and_every_name_can_be_imported() -> None:
    names = agents_progress.__all__
    assert len(names) == len(set(names)) <= 15
    for name in names:
        assert getattr(agents_progress, name) is not None
        assert name in dir(agents_progress)
    assert {"progress", "follow", "Run", "current_run", "RunView", "Envelope", "Evidence", "Outcome", "Verdict"} <= set(
        names
    )
    assert {"Disclosure", "open_journal", "ProgressError"} <= set(names)


@pytest.mark.parametrize("package", [agents_progress, reactions], ids=["the package", "reactions"])
def test_the_names_a_type_checker_sees_are_the_same(package: ModuleType) -> None:
    (guard,) = (node for node in TREES[Path(package.__file__ or "")].body if isinstance(node, ast.If))
    seen = {
        alias.asname: (node.module, alias.name)
        for node in guard.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(seen) == set(package.__all__)
    for name, (home, original) in seen.items():
        assert getattr(import_module(home or ""), original) is getattr(package, name)
    with pytest.raises(AttributeError, match="brand_new"):
        _ = package.brand_new


FOREIGN = ["agents", "openai", "pydantic", "rich", "httpx", "httpx2", "respx", "sqlite3", "asyncio"]


def test_importing_the_package_loads_nothing_it_does_not_need() -> None:
    code = f"import agents_progress, sys; print([name for name in {FOREIGN} if name in sys.modules])"
    assert python(code) == "[]"


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("agents_progress.events", ["agents", "openai", "rich", "httpx", "asyncio", "sqlite3"]),
        ("agents_progress.view", ["agents", "openai", "rich", "httpx", "sqlite3"]),
        ("agents_progress.journal", ["agents", "openai", "rich", "httpx"]),
        ("agents_progress.run", ["agents", "openai", "rich", "httpx"]),
        ("agents_progress.effects.places", ["agents", "openai", "rich", "httpx", "sqlite3", "psycopg"]),
        ("agents_progress.effects.reactions.sqlite", ["agents", "openai", "rich", "httpx", "psycopg"]),
        ("agents_progress.effects.ledger.sqlite", ["agents", "openai", "rich", "httpx", "psycopg"]),
        ("agents_progress.client", ["agents", "openai", "rich", "sqlite3", "starlette"]),
        ("agents_progress.sse", ["agents", "openai", "rich", "httpx", "sqlite3"]),
    ],
)
def test_a_module_of_the_middle_loads_neither_the_sdk_nor_an_extra(module: str, absent: list[str]) -> None:
    assert python(f"import {module}, sys; print([name for name in {absent} if name in sys.modules])") == "[]"


def test_the_decorators_need_no_extra_and_no_mock() -> None:  # PKG-1
    code = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"rich", "httpx", "respx", "pytest", "hypothesis", "jsonschema"}:
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Refuse())
from agents_progress import progress, follow, current_run, Run, open_journal
import agents_progress.inside, agents_progress.cli, agents_progress.journal.sqlite
print(progress)
"""
    assert "Progress" in python(code)


# The error tree.


def test_the_error_tree_is_the_docstring_word_for_word() -> None:
    defined = {name: cls for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, Exception)}
    drawn = re.findall(r"^( *)\* :exc:`(\w+)`", getdoc(errors) or "", flags=re.MULTILINE)
    assert [name for _, name in drawn] == list(dict.fromkeys(name for _, name in drawn))
    assert {name for _, name in drawn} == set(defined)
    above: dict[int, str] = {}
    for indent, name in drawn:
        above[len(indent)] = name
        parents = [depth for depth in above if depth < len(indent)]
        expected = defined[above[max(parents)]] if parents else Exception
        assert defined[name].__bases__[0] is expected, name


def test_everything_the_package_raises_as_its_own_stands_in_the_tree() -> None:
    outside = []
    for file, tree in TREES.items():
        if file.name != "errors.py" and "testing" not in file.parts:
            known = set(vars(errors))
            for node in ast.walk(tree):
                bases = {ast.unparse(base) for base in node.bases} if isinstance(node, ast.ClassDef) else set()
                outside += [
                    f"{module_name(file)}.{node.name}" for base in bases & known if isinstance(node, ast.ClassDef)
                ]
    assert outside == []


def test_category_classes_end_in_error_and_leaves_state_the_fact() -> None:
    for cls in vars(errors).values():
        if isinstance(cls, type) and issubclass(cls, errors.ProgressError):
            assert bool(cls.__subclasses__()) is cls.__name__.endswith("Error"), cls
            assert cls.__doc__


# Sizes and words.


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_a_module_is_at_most_400_lines_and_says_what_it_is(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 400
    assert ast.get_docstring(TREES[file])


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_a_function_is_at_most_40_lines(file: Path) -> None:
    for node in ast.walk(TREES[file]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno + 1 <= 40, node.name


def own_names(tree: ast.Module) -> Iterator[str]:
    """Public classes, functions, methods, constants and attributes that a module defines."""
    bodies: list[list[ast.stmt]] = [tree.body]
    while bodies:
        for node in bodies.pop():
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name
                if isinstance(node, ast.ClassDef):
                    bodies.append(node.body)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (target.id for target in targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_no_public_name_uses_a_word_that_says_nothing(file: Path) -> None:
    for name in (*own_names(TREES[file]), *module_name(file).split(".")):
        words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
        assert name.startswith("_") or (file.name, name) in FOREIGN_NAMES or not words & BANNED, name


def test_the_package_is_marked_as_typed_and_ships_what_it_reads() -> None:
    for name in (
        "py.typed",
        "protocol-1.schema.json",
        "vectors/progress_cases.json",
        "vectors/sse_cases.json",
        "report/report.css",
    ):
        assert (PACKAGE / name).is_file()
