"""The custom element `<agent-progress>`: what it decides without a document, and what its modules never do.

How it behaves in a browser is tested in tests/page.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.browser.node import PAGE, needs_node, played, scenarios_of

SCENARIOS = scenarios_of("element.mjs")
MODULES = sorted(PAGE.glob("*.js"))
DOCUMENTATION = Path(__file__).parents[1] / "docs/page.md"
MARKUP = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|setHTML\w*|document\.write\w*|createContextualFragment|DOMParser"
    r"|parseHTML\w*|srcdoc|eval|Function)\b\s*(?:=|\()|\bcssText\b|\bstyle\s*=\s*[\"'`]|\.style\b|[\"'`]style[\"'`]"
    r"|\bon(?:click|error|load)\s*[=:]|[\"'`]javascript:"
)
"""Ways from a text to markup, code or inline style."""


@needs_node
def test_every_scenario_is_played() -> None:
    assert list(played("element.mjs")) == SCENARIOS
    assert len(SCENARIOS) == 12


@needs_node
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_element_holds_that(scenario: str) -> None:
    assert played("element.mjs")[scenario] is None, played("element.mjs")[scenario]


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.name)
def test_no_module_makes_markup_code_or_inline_style_of_text(file: Path) -> None:
    assert MARKUP.findall(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "node.innerHTML = text",
        'node.insertAdjacentHTML("beforeend", text)',
        "document.write(text)",
        "eval(text)",
        'new Function("a", text)',
        'mark(node, { "style": text })',
        "node.style.color = text",
        "`<b style='x'>`",
        "node.onclick = run",
        'new DOMParser("x")',
    ],
)
def test_such_a_line_would_be_found(line: str) -> None:
    assert MARKUP.search(line)


def test_no_shape_but_that_of_done_has_a_check_mark() -> None:
    shapes = dict(re.findall(r"^  (\w+): (.+),$", (PAGE / "icons.js").read_text(encoding="utf-8"), re.MULTILINE))
    tick = re.search(r"M8 12\S+l\S+ \S+L\S+ \S+", shapes["done"])
    assert tick is not None
    assert [name for name, shape in shapes.items() if tick.group().rstrip("`") in shape] == ["done"]


def test_green_is_for_done_alone() -> None:
    rules = (PAGE / "style.js").read_text(encoding="utf-8")
    assert re.findall(r"([^{}]+)\{[^{}]*var\(--done\)", rules) == ["\n[data-status=done] "]


def test_the_documentation_names_every_part_property_and_event() -> None:
    said = DOCUMENTATION.read_text(encoding="utf-8")
    modules = "".join(file.read_text(encoding="utf-8") for file in MODULES)
    rules = (PAGE / "style.js").read_text(encoding="utf-8")
    parts = set(re.findall(r'part: "([\w-]+)"', modules))
    properties = set(re.findall(r"var\((--agent-progress-[\w-]+)", rules))
    events = set(re.findall(r'#tell\("(agent-progress-[\w-]+)"', modules))
    assert len(parts) > 30 and len(properties) > 10 and len(events) == 2
    assert {name for name in parts | properties | events if f"`{name}`" not in said} == set()
    assert set(re.findall(r"`(--agent-progress-[\w-]+)`", said)) == properties
