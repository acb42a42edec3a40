"""The bars of the page: real runs on a real server, and the element shows what Python's view says, to the end."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from agents_progress.labels import label

from .host import Host, hosting
from .owner import LEASE_S
from .scripts import TOTAL
from .tab import Tabs
from .wire import wired

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROOT = Path(__file__).parents[2]


async def test_a_plain_run_is_shown_from_its_first_words_to_the_verdict(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("plain")
    tab = await tabs.open(host.page(run_id))
    await host.reaches(run_id, "text.delta")
    await tab.shows(host, run_id, "running")
    host.gates.open("text")
    view = await tab.shows(host, run_id, "done")
    assert view.text == TOTAL


async def test_two_tools_in_parallel_are_two_rows_of_which_the_open_one_comes_first(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("parallel")
    tab = await tabs.open(host.page(run_id))
    await host.reaches(run_id, "tool.progress")
    await host.reaches(run_id, "tool.finished")
    view = await tab.shows(host, run_id, "running")
    assert view.tools == {"c1": "returned", "c2": "running"}
    assert "3/10" in await tab.part("words").first.inner_text()
    host.gates.open("slow")
    await tab.shows(host, run_id, "done")
    await tab.unfold()
    await tab.shows(host, run_id, "done", unfolded=True)


async def test_a_nested_agent_is_indented_under_the_call_that_started_it(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("nested")
    tab = await tabs.open(host.page(run_id))
    await host.comes(run_id, {"c1": "running", "c1/p1": "running"})
    await tab.shows(host, run_id, "running")
    outer, inner = [await row.bounding_box() for row in await tab.part("words").all()]
    assert outer is not None and inner is not None
    assert inner["x"] > outer["x"] and inner["y"] > outer["y"]
    host.gates.open("inner")
    await tab.shows(host, run_id, "done")


async def test_an_approval_is_given_in_the_page_with_exactly_what_was_asked_in_sight(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("approval")
    tab = await tabs.open(host.page(run_id))
    view = await tab.shows(host, run_id, "waiting")
    (question,) = view.interactions.values()
    assert question.details is not None and "4711" in await tab.part("what").inner_text()
    async with tab.page.expect_request("**/interactions/ask-1") as sent:
        await tab.part("approve").click()
    assert (await sent.value).post_data_json == {"decision": "approve", "digest": question.digest}
    later = f"{run_id}.2"
    await host.reaches(later, "text.delta")
    await tab.shows(host, later, "running")
    host.gates.open("after")
    view = await tab.shows(host, later, "done")
    assert [(row.decision, row.actor) for row in view.interactions.values()] == [("approved", "ada")]


async def test_an_approval_is_refused_in_the_page_with_a_reason(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("approval")
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "waiting")
    await tab.part("reason").fill("too much <b>money</b>")
    async with tab.page.expect_request("**/interactions/ask-1") as sent:
        await tab.part("reject").click()
    body = (await sent.value).post_data_json
    assert (body["decision"], body["reason"]) == ("reject", "too much <b>money</b>")
    host.gates.open("after")
    view = await tab.shows(host, f"{run_id}.2", "done")
    assert view.tools == {"c1": "rejected"}


async def test_what_is_not_shown_cannot_be_approved_but_refused(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("approval_hidden")
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "waiting")
    assert not await tab.part("approve").is_visible()
    assert label("not_shown", "en") in await tab.part("question").inner_text()
    await tab.part("reject").click()
    host.gates.open("after")
    view = await tab.shows(host, f"{run_id}.2", "done")
    assert view.tools == {"c1": "rejected"}


async def test_what_is_not_shown_is_approved_where_the_application_lets_it(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("approval_blind")
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "waiting")
    assert label("not_shown_allowed", "en") in await tab.part("question").inner_text()
    await tab.part("approve").click()
    host.gates.open("after")
    view = await tab.shows(host, f"{run_id}.2", "done")
    assert view.tools == {"c1": "returned"}


async def test_an_answer_that_somebody_else_gave_first_is_told_and_changes_nothing(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("approval")
    tab = await tabs.open(host.page(run_id))
    tab.excuse("409")
    view = await tab.shows(host, run_id, "waiting")
    held, go = asyncio.Event(), asyncio.Event()

    async def hold(route: object) -> None:
        held.set()
        await go.wait()
        await route.continue_()  # type: ignore[attr-defined]

    await tab.page.route("**/interactions/ask-1", hold)
    await tab.part("approve").click()
    await held.wait()
    body = {"decision": "reject", "digest": view.interactions["ask-1"].digest}
    (await host.client.post(f"/runs/{run_id}/interactions/ask-1", json=body)).raise_for_status()
    async with tab.page.expect_response("**/interactions/ask-1") as answered:
        go.set()
    assert (await answered.value).status == 409
    host.gates.open("after")
    view = await tab.shows(host, f"{run_id}.2", "done")
    assert view.tools == {"c1": "rejected"}


async def test_a_run_is_stopped_in_the_page_which_names_what_may_have_had_an_effect(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("cancelled")
    tab = await tabs.open(host.page(run_id))
    await host.reaches(run_id, "tool.progress")
    await tab.shows(host, run_id, "running")
    await tab.part("stop").click()
    view = await tab.shows(host, run_id, "cancelled")
    assert view.terminal is not None and view.terminal["requested_by"] == "ada"
    assert any("Send mail" in text for text in await tab.part("details").locator("li").all_inner_texts())
    assert not await tab.part("stop").is_visible()


async def test_a_failure_keeps_half_an_answer_and_calls_it_partial(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("failing")
    tab = await tabs.open(host.page(run_id))
    await host.reaches(run_id, "tool.finished")
    host.gates.open("fail")
    await tab.shows(host, run_id, "failed")
    assert await tab.part("answer-name").inner_text() == label("answer_partial", "en")


async def test_a_limit_is_told_with_its_reason(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("limited")
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "incomplete")
    assert "max_turns" in await tab.part("details").inner_text()


async def test_an_answer_that_did_not_pass_its_check_is_shown_as_that(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("refused")
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "rejected")
    assert await tab.part("answer-name").inner_text() == label("answer_refused", "en")


async def test_a_run_that_waits_for_its_check_is_not_called_done(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("unchecked")
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "checking")
    host.gates.open("check")
    await tab.shows(host, run_id, "done")


async def test_sources_and_files_are_named_and_only_web_addresses_are_links(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("cited")
    tab = await tabs.open(host.page(run_id))
    view = await tab.shows(host, run_id, "done")
    assert len(view.sources) == 2 and len(view.artifacts) == 1
    links = await tab.part("sources").locator("a").all()
    assert [await link.get_attribute("href") for link in links] == ["https://prices.test/a?b=1"]
    assert "noopener" in (await links[0].get_attribute("rel") or "")


async def test_a_run_whose_owner_was_killed_is_unknown_and_names_what_may_have_happened(
    browser: object, tabs: Tabs, tmp_path: Path
) -> None:
    async with hosting(tmp_path / "runs.db", lease_s=LEASE_S) as host:
        run_id = "run-of-the-killed"
        command = sys.executable, "-m", "tests.page.owner", str(tmp_path / "runs.db"), run_id
        owner = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
        try:
            await host.comes(run_id, {"c1": "returned", "c2": "running"})
            tab = await tabs.open(host.page(run_id))
            await tab.shows(host, run_id, "running")
        finally:
            owner.send_signal(signal.SIGKILL)
            await owner.wait()
        await tab.shows(host, run_id, "unknown")
        assert "lease_expired" in await tab.part("details").inner_text()
        assert "Send mail" in await tab.part("details").inner_text()
        await tabs.close()


async def test_a_page_that_is_loaded_again_in_the_middle_shows_the_same(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("plain")
    tab = await tabs.open(host.page(run_id))
    await host.reaches(run_id, "text.delta")
    await tab.shows(host, run_id, "running")
    await tab.page.reload()
    await tab.shows(host, run_id, "running")
    host.gates.open("text")
    await tab.shows(host, run_id, "done")
    await tab.page.reload()
    view = await tab.shows(host, run_id, "done")
    assert view.text == TOTAL


async def test_a_network_that_is_cut_for_three_seconds_is_told_and_heals_with_nothing_doubled(
    host: Host, tabs: Tabs
) -> None:
    run_id = await host.start("parallel")
    async with wired(host.url) as wire:
        tab = await tabs.open(host.page(run_id, by=wire.url))
        tab.excuse(r"net::ERR_")
        await host.reaches(run_id, "tool.progress")
        await tab.shows(host, run_id, "running")
        loop = asyncio.get_running_loop()
        until = loop.time() + 3
        await wire.cut()
        await tab.part("link").wait_for(state="visible")
        host.gates.open("slow")
        await host.over(run_id)
        assert (await host.view(run_id)).status == "done"
        assert await tab.part("run").get_attribute("data-status") == "running", "the cut says nothing of the run"
        await asyncio.sleep(until - loop.time())  # the cut itself
        await wire.heal()
        view = await tab.shows(host, run_id, "done")
        await tab.part("link").wait_for(state="hidden")
        await tab.unfold()
        await tab.shows(host, run_id, "done", unfolded=True)
        assert view.text == TOTAL
        await tabs.close()


async def test_a_second_tab_sees_what_the_first_one_answers_and_both_end_alike(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("approval")
    first, second = await tabs.open(host.page(run_id)), await tabs.open(host.page(run_id))
    await first.shows(host, run_id, "waiting")
    await second.shows(host, run_id, "waiting")
    await first.part("approve").click()
    host.gates.open("after")
    later = f"{run_id}.2"
    await first.shows(host, later, "done")
    await second.shows(host, later, "done")
    assert await first.shown() == await second.shown()


async def test_five_tabs_of_three_runs_hold_a_feed_each_at_most_and_leave_room_for_a_fetch(
    host: Host, tabs: Tabs
) -> None:
    runs = [await host.start("plain") for _ in range(3)]
    for run_id in runs:
        await host.reaches(run_id, "text.delta")
    opened = [await tabs.open(host.embedding(*runs)) for _ in range(5)]
    for tab in opened:
        await tab.show(host, dict.fromkeys(runs, "running"))
    asked = "async () => { const at = performance.now(); await fetch('/livez'); return performance.now() - at }"
    assert [await tab.page.evaluate(asked) < 1000 for tab in opened] == [True] * 5
    assert host.counted.most_at_once <= 4
    assert max(host.counted.most.values()) == 1
    host.gates.open("text")
    for tab in opened:
        await tab.show(host, dict.fromkeys(runs, "done"))


HIDEABLE = """
let hidden = false;
Object.defineProperty(Document.prototype, "hidden", { get: () => hidden, configurable: true });
Object.defineProperty(Document.prototype, "visibilityState", { get: () => (hidden ? "hidden" : "visible") });
globalThis.hideTab = (wanted) => {
  hidden = wanted;
  document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
};
"""
"""Headless Chromium holds every page for visible, so the page is told."""


async def test_a_hidden_tab_holds_no_feed_and_catches_up_when_it_is_shown(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("plain")
    await host.reaches(run_id, "text.delta")
    tab = await tabs.open(host.page(run_id), before=HIDEABLE)
    await tab.shows(host, run_id, "running")
    assert host.counted.feeds[tab.name] == 1
    await tab.page.evaluate("hideTab(true)")
    await host.counted.until(lambda: host.counted.feeds[tab.name] == 0)
    host.gates.open("text")
    await host.over(run_id)
    await tab.page.evaluate("hideTab(false)")
    view = await tab.shows(host, run_id, "done")
    assert view.text == TOTAL


async def test_the_policy_of_the_document_lets_nothing_in_but_its_own_files(host: Host) -> None:
    response = await host.client.get("/")
    policy = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
    assert policy.pop("default-src") == "'none'"
    closed = ("base-uri", "form-action", "frame-ancestors")
    assert {name: policy.pop(name) for name in closed} == dict.fromkeys(closed, "'none'")
    own = ("script-src", "style-src", "connect-src", "img-src")
    assert {name: policy.pop(name) for name in own} == dict.fromkeys(own, "'self'")
    assert policy.keys() <= {"require-trusted-types-for", "trusted-types"}
