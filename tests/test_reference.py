"""The reference page: made from the tables, complete, and the same as the file that is read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from agents_progress.journal.rules import LEASE_EXPIRED, NEVER_STARTED
from agents_progress.outcome import RULES, Evidence, Rule
from agents_progress.payloads import OutcomeKind
from agents_progress.sdk.failures import CODES, EXCEPTIONS, SERVICE_CODES
from agents_progress.sdk.reference import CLOSED, ISSUES, REASONS, page
from agents_progress.sdk.surface import surface
from agents_progress.view import IssueCode

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "agents_progress"
TREES = {
    file: ast.parse(file.read_text(encoding="utf-8"))
    for file in PACKAGE.rglob("*.py")
    if not {"testing", "terminal", "cli"} & {*file.relative_to(PACKAGE).parts}  # what they say is no run's own word
}


def test_the_page_is_the_one_that_the_tables_make() -> None:
    written = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert written == page(), "`python -m agents_progress.sdk.reference > docs/errors.md` writes it"


def test_the_readme_links_the_page() -> None:
    assert "(docs/errors.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_kind_of_ending_is_on_the_page() -> None:
    outcomes = set(get_args(OutcomeKind))
    assert {*REASONS, "failed", "succeeded"} == {*outcomes, "unknown"}
    for name in outcomes:
        assert f"`{name}`" in page()


@pytest.mark.parametrize("name", [*CODES, *SERVICE_CODES, *(name for names in EXCEPTIONS.values() for name in names)])
def test_every_code_and_exception_is_on_the_page(name: str) -> None:
    assert re.search(rf"`(\w+\.)?{name}`", page())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.number}-{rule.kind}")
def test_every_reason_of_the_ending_table_has_a_row(rule: Rule) -> None:
    reason, kind = rule.reason(Evidence()), rule.kind
    assert kind in ("failed", "succeeded") or (reason or "") in REASONS[kind]


def test_every_limit_that_the_client_names_has_a_row() -> None:
    assert set(surface()["limit"]) <= set(REASONS["incomplete"])


def calls(*names: str) -> Iterator[ast.Call]:
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names:
                yield node


def test_every_stage_that_can_fault_has_a_row_and_no_other() -> None:
    stages = {
        call.args[0].value
        for call in calls("fault", "_on_fault", "emit", "say", "_write")
        if call.args and isinstance(call.args[0], ast.Constant)
    }
    assert {f"fault_{stage}" for stage in stages} == {name for name in REASONS["unknown"] if name.startswith("fault_")}


def test_every_reason_that_an_outcome_is_given_has_a_row() -> None:
    given = {
        keyword.value.value
        for call in calls("replace", "Outcome")
        for keyword in call.keywords
        if keyword.arg == "reason" and isinstance(keyword.value, ast.Constant)
    }
    assert given == {"journal", "owner_stopped"} and given <= set(REASONS["unknown"])


def test_every_reason_of_a_journal_that_declares_a_run_lost_has_a_row() -> None:
    assert {LEASE_EXPIRED, NEVER_STARTED} <= set(REASONS["unknown"])


def test_every_reason_of_a_tool_that_was_not_executed_has_a_row_and_no_other() -> None:
    said = set()
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict) and [ast.unparse(key) for key in node.keys if key][-1:] == ["'reason'"]:
                said |= {value.value for value in node.values if isinstance(value, ast.Constant)}
            if isinstance(node, ast.Tuple) and ast.unparse(node).startswith(
                ("('tool.rejected', '", "('tool.skipped', '")
            ):
                said.add(node.elts[1].value)  # type: ignore[attr-defined]
    assert said == set(CLOSED)


def test_every_issue_has_a_row_and_no_other() -> None:
    assert set(ISSUES) == set(get_args(IssueCode))
