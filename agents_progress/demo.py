"""The run that ``agents-progress demo`` plays: a broken cup, two look-ups, a refund that a person approves, a check.

Only the model and the shop are scripted; the client, the SDK, the owner, the journal and the display are the real ones.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any, Final

from agents import Agent, RunConfig, Runner, RunResultStreaming, function_tool

from agents_progress.current import current_run
from agents_progress.decorate import progress
from agents_progress.disclosure import Disclosure
from agents_progress.journal import DEFAULT_URL, open_journal
from agents_progress.messages import Language
from agents_progress.plaintext import clean, printable
from agents_progress.terminal import show
from agents_progress.testing import ScriptedAPI, Turn, call, pause, text, turn
from agents_progress.verify import matches

RECEIPT: Final = "R-0815"
WORDS: Final[dict[Language, dict[str, str]]] = {
    "en": {
        "opening": "A customer writes: the cup in order 4711 arrived broken.\n(Scripted model and shop; no network.)",
        "looking": "I am sorry about the cup. I look up the order and see whether another one is left.",
        "shelf": "shelf",
        "due": "No cup of this kind is left. I can refund the 12 EUR once a person has approved it.",
        "asks": "The run waits for a person: refund with {details}?\nThe demo answers in your place: approved.",
        "answer": f"Order 4711: {{eur}} EUR refunded, receipt {RECEIPT}.",
        "refused": "Order 4711: nothing was refunded.",
        "keeps": "Every event is kept in {journal}. Look at it again:",
        "forgets": "This journal was in memory and is gone. After a demo without --journal, try:",
    },
    "zh": {
        "opening": "一位顾客来信：订单 4711 的杯子到货时已碎。\n（模型和商店都是脚本，不使用网络。）",
        "looking": "杯子碎了，很抱歉。我先查询订单，再看看还有没有同款。",
        "shelf": "货架",
        "due": "同款已经没有了。经人批准之后，我可以退还 12 EUR。",
        "asks": "运行正在等待人工答复：以 {details} 退款？\n演示程序替您回答：批准。",
        "answer": f"订单 4711：已退款 {{eur}} EUR，收据 {RECEIPT}。",
        "refused": "订单 4711：没有退款。",
        "keeps": "所有事件都保存在 {journal}。可以再看一遍：",
        "forgets": "这个日志只在内存里，现在已经没有了。不带 --journal 运行演示之后，可以试试：",
    },
}
TITLES: Final[dict[Language, dict[str, str]]] = {
    "en": {},  # the names of the functions say enough
    "zh": {
        "refund_a_broken_cup": "为碎杯退款",
        "look_up_order": "查询订单",
        "check_stock": "检查库存",
        "refund": "退款",
    },
}


async def main(journal_url: str, fast: bool = False, language: Language = "en", *, ask: bool = False) -> int:
    """Play the demo into a journal and give its exit code: 0 when the check accepted the answer, 1 otherwise.

    With ``ask`` the person at the terminal answers its question; otherwise it answers by itself.
    It takes about nine seconds, with ``fast`` less than one. A journal that cannot be used is refused at once.
    """
    words, unit = WORDS[language], 0.0 if fast else 1.0
    refunds: list[int] = []
    journal = open_journal(journal_url)
    try:
        await journal.runs(limit=1)  # nothing is opened before its first use
        clerk = _clerk(words, unit, refunds)

        @progress(
            journal=journal,
            verify=matches(rf".*4711.* EUR.*{RECEIPT}.*"),
            disclosure=Disclosure(approval_details=["refund"]),  # what is asked must be seen
            titles=TITLES[language],
            language=language,
        )
        def refund_a_broken_cup(letter: str) -> RunResultStreaming:
            return Runner.run_streamed(clerk, letter, run_config=RunConfig(tracing_disabled=True))

        _say(words["opening"])
        async with refund_a_broken_cup("The cup in order 4711 arrived broken.") as run:
            outcome = await show(run, ask=ask)
        if outcome.kind == "paused" and not ask:
            await asyncio.sleep(1.5 * unit)
            _say(words["asks"].format(details=run.view.interactions["ask-1"].details))
            await asyncio.sleep(1.5 * unit)
            async with run.resume(approve="ask-1", actor="demo") as run:
                outcome = await show(run)
    finally:
        await journal.close()
    _say(_farewell(words, journal_url, run.id))
    return 0 if outcome.accepted else 1


def _clerk(words: dict[str, str], unit: float, refunds: list[int]) -> Agent[Any]:
    @function_tool
    async def look_up_order(number: int) -> str:
        await asyncio.sleep(unit)
        return f"order {number}: one blue cup, 12 EUR, paid by card"

    @function_tool
    async def check_stock(product: str) -> str:
        for shelf in range(1, 4):
            current_run().report(words["shelf"], shelf, 3)
            await asyncio.sleep(0.6 * unit)
        return f"{product}: none left"

    @function_tool(needs_approval=True)
    async def refund(order: int, eur: int) -> str:
        await asyncio.sleep(unit)
        refunds.append(eur)
        return f"receipt {RECEIPT}"

    model = ScriptedAPI(_script(words, unit, refunds)).model()
    return Agent("Clerk", model=model, tools=[look_up_order, check_stock, refund])


def _script(words: dict[str, str], unit: float, refunds: list[int]) -> Iterator[Turn]:
    def spoken(sentence: str) -> Any:
        pieces = (sentence[at : at + 4] for at in range(0, len(sentence), 4))
        return text(*(part for piece in pieces for part in (piece, pause(0.06 * unit))))

    look_ups = call("look_up_order", {"number": 4711}), call("check_stock", {"product": "blue cup"})
    yield turn(spoken(words["looking"]), *look_ups)
    yield turn(spoken(words["due"]), call("refund", {"order": 4711, "eur": 12}))
    yield turn(spoken(words["answer"].format(eur=refunds[0]) if refunds else words["refused"]))


def _farewell(words: dict[str, str], journal_url: str, run_id: str) -> str:
    name, called = "agents-progress", sys.argv[0]
    if Path(called).name == name and not shutil.which(name):
        name = called  # as in .venv/bin/agents-progress, so that the line can be copied
    if journal_url.startswith("memory:"):
        return f"{words['forgets']}\n  {name} runs\n  {name} show RUN_ID"
    option = "" if journal_url == DEFAULT_URL else f" --journal {quote(journal_url)}"
    return f"{words['keeps'].format(journal=journal_url)}\n  {name} runs{option}\n  {name} show {run_id}{option}"


def _say(message: str) -> None:
    lines = "\n".join(clean(line) for line in message.split("\n"))
    sys.stdout.write(printable(f"\n{lines}\n\n", sys.stdout.encoding))
    sys.stdout.flush()
