"""Answers that carry something, given in the page: a text, an option, other arguments; and how a refusal is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agents_progress.labels import label, refusal
from agents_progress.messages import Language
from agents_progress.reasons import ANSWERS_NOT_USED

from .host import Host
from .scripts import REFUND
from .tab import Tab, Tabs
from .test_page_axe import audited
from .test_page_keyboard import reach

if TYPE_CHECKING:
    from playwright.async_api import Route

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def waiting(host: Host, tabs: Tabs, name: str, **how: Any) -> tuple[Tab, str]:
    run_id = await host.start(name)
    tab = await tabs.open(host.page(run_id), **how)
    await tab.shows(host, run_id, "waiting")
    return tab, run_id


async def sent(tab: Tab, part: str = "approve") -> dict[str, Any]:
    """What the page asks for when a button is used."""
    async with tab.page.expect_request("**/interactions/ask-1") as request:
        await tab.part(part).click()
    body: dict[str, Any] = (await request.value).post_data_json
    return body


async def told(tab: Tab, sentence: str) -> None:
    await tab.part("answered").get_by_text(sentence).wait_for()


async def test_a_question_is_answered_in_words_by_keyboard(host: Host, tabs: Tabs) -> None:
    tab, run_id = await waiting(host, tabs, "clarified")
    assert await tab.part("text-name").inner_text() == label("answer_text", "en")
    tab.excuse("422")
    assert "text" not in await sent(tab)
    await told(tab, label("refusal_text_missing", "en"))
    await tab.page.keyboard.press("Shift+Tab")
    await reach(tab, "text")
    await tab.page.keyboard.type("the <b>blue</b> one")
    await reach(tab, "approve")
    await tab.page.keyboard.press("Enter")
    view = await tab.shows(host, f"{run_id}.2", "done")
    assert [row.output for row in view.activities] == ["they said the <b>blue</b> one"]


async def test_an_option_is_chosen_by_keyboard_and_shown_as_text(host: Host, tabs: Tabs, axe: str) -> None:
    tab, run_id = await waiting(host, tabs, "chosen", before=axe)
    assert await tab.part("option-row").all_inner_texts() == ["Mon <b>9</b>", "Tue 10", "11"]
    assert await audited(tab) == []
    tab.excuse("422")
    await sent(tab)
    await told(tab, label("refusal_text_missing", "en"))
    await tab.part("option").first.focus()
    for _ in range(2):
        await tab.page.keyboard.press("ArrowDown")
    assert (await sent(tab))["text"] == "11"
    view = await tab.shows(host, f"{run_id}.2", "done")
    assert [row.output for row in view.activities] == ["they chose 11"]


async def test_other_arguments_are_approved_in_the_page_and_it_says_who_did(host: Host, tabs: Tabs, axe: str) -> None:
    tab, run_id = await waiting(host, tabs, "approval", before=axe)
    await tab.part("edit-name").focus()
    await tab.page.keyboard.press("Enter")
    field = tab.part("arguments")
    assert json.loads(await field.input_value()) == REFUND
    assert await tab.part("approve").inner_text() == label("approve", "en")
    for typed, sentence in {
        '{"order": 4711': label("refusal_no_object", "en"),
        "[4711]": label("refusal_no_object", "en"),
        '{"order": 4711}': refusal("arguments_missing", "en", {"names": ["eur"]}),
        '{"order": 4711, "eur": 1, "to": 2}': refusal("arguments_unknown", "en", {"names": ["to"]}),
    }.items():
        tab.excuse("422")
        await field.fill(typed)
        assert await tab.part("approve").inner_text() == label("approve_edited", "en")
        await tab.part("approve").click()
        await told(tab, sentence)
        assert await field.input_value() == typed, "what was typed stays"
    assert await audited(tab) == []
    await field.fill('{"order": 12345678901234567890, "eur": 1}')
    async with tab.page.expect_request("**/interactions/ask-1") as request:
        await tab.part("approve").click()
    assert json.loads((await request.value).post_data or "")["arguments"] == {"order": 12345678901234567890, "eur": 1}
    host.gates.open("after")
    view = await tab.shows(host, f"{run_id}.2", "done")
    assert [row.edited for row in view.interactions.values()] == [True]
    assert label("edited_by", "en", name="ada") in await tab.part("decided").inner_text()


async def test_a_closed_edit_and_a_rejection_change_nothing(host: Host, tabs: Tabs) -> None:
    tab, _ = await waiting(host, tabs, "approval")
    await tab.part("edit-name").click()
    await tab.part("arguments").fill("{}")
    await tab.part("edit-name").click()
    assert not await tab.part("arguments").is_visible()
    assert (await sent(tab, "reject")).keys() == {"decision", "digest"}


async def test_what_is_not_shown_cannot_be_edited(host: Host, tabs: Tabs) -> None:
    tab, _ = await waiting(host, tabs, "approval_blind")
    assert await tab.part("approve").is_visible() and not await tab.part("edit").is_visible()


@pytest.mark.parametrize("look", [{"locale": "en-GB"}, {"locale": "zh-CN"}], ids=["en", "zh"])
async def test_every_refusal_of_an_answer_has_a_sentence_on_the_page(
    host: Host, tabs: Tabs, look: dict[str, str]
) -> None:
    language: Language = "zh" if look["locale"] == "zh-CN" else "en"
    run_id = await host.start("approval")
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "waiting", language=language)
    codes = iter(ANSWERS_NOT_USED)

    async def refuse(route: Route) -> None:
        error = {"code": next(codes), "message": "x", "names": ["a", "b"]}
        await route.fulfill(status=409, json={"error": error})

    await tab.page.route("**/interactions/ask-1", refuse)
    tab.excuse("409")
    for code in ANSWERS_NOT_USED:
        await tab.part("reject").click()
        await told(tab, refusal(code, language, {"names": ["a", "b"]}))


async def test_an_answer_with_which_no_run_went_on_yet_is_called_kept(host: Host, tabs: Tabs) -> None:
    tab, _ = await waiting(host, tabs, "approval")

    async def keep(route: Route) -> None:
        await route.fulfill(status=202, json={"answer": "accepted", "continued_as": None})

    await tab.page.route("**/interactions/ask-1", keep)
    await tab.part("approve").click()
    await told(tab, label("answer_kept", "en"))
