"""The eleven statuses and their sentences, and what each row of the ending table says. Nothing else in this package
words a status.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from agents_progress.errors import UsageError

Status: TypeAlias = Literal[
    "accepted",
    "running",
    "waiting",
    "cancelling",
    "checking",
    "done",
    "rejected",
    "cancelled",
    "failed",
    "incomplete",
    "unknown",
]
Language: TypeAlias = Literal["en", "zh"]

MESSAGES: Final[dict[Status, dict[Language, str]]] = {
    "accepted": {"en": "Accepted; not started yet", "zh": "已接收，还没有开始"},
    "running": {"en": "Working; not finished yet", "zh": "正在运行，还没有结束"},
    "waiting": {"en": "Waiting for approval; not finished yet", "zh": "等待人工批准，任务还没完成"},
    "cancelling": {"en": "Cancel requested; waiting for the run to stop", "zh": "已请求取消，等待运行停止"},
    "checking": {"en": "Run ended; waiting for the application's check", "zh": "运行已结束，等待应用检查"},
    "done": {"en": "Done: the run ended and the check passed", "zh": "已完成：运行结束，应用检查通过"},
    "rejected": {"en": "Run ended; the application's check did not pass", "zh": "运行已结束，应用检查没有通过"},
    "cancelled": {"en": "Cancelled; check what tools already did", "zh": "已取消；请核对工具已产生的影响"},
    "failed": {"en": "Failed; the task is not finished", "zh": "运行失败，任务没有完成"},
    "incomplete": {"en": "Stopped at a limit; the task is not finished", "zh": "触及限制而停止，任务没有完成"},
    "unknown": {"en": "Not enough evidence of an ending; check the result", "zh": "证据不足以判断是否结束，请核对结果"},
}

ROWS: Final[dict[int, dict[Language, str]]] = {
    1: {"en": "the limit of turns stopped the run", "zh": "运行达到回合数上限而停止"},
    2: {"en": "the run failed on a response that was cut short", "zh": "模型响应被截断，运行因此出错"},
    3: {"en": "the run raised an error", "zh": "运行抛出了错误"},
    4: {
        "en": "a guardrail tripped, or the limit of turns was passed, though nothing was raised",
        "zh": "护栏被触发或超过回合数上限，但没有抛出错误",
    },
    5: {"en": "the run was not seen to its end, or did not come to rest", "zh": "没有看到运行的结尾，或运行没有停稳"},
    6: {"en": "the SDK does not say that the run is over", "zh": "SDK 没有表明运行已经结束"},
    7: {"en": "the run waits for an answer", "zh": "运行正在等待答复"},
    8: {"en": "the run was cancelled", "zh": "运行被取消"},
    9: {
        "en": "the response that made the output was cut short, failed or refused",
        "zh": "产生输出的响应被截断、失败或拒绝了回答",
    },
    10: {"en": "there is an output, and nothing speaks against it", "zh": "有输出，且没有相反的证据"},
    11: {"en": "there is no output, and nothing says why", "zh": "没有输出，也不知道原因"},
}
"""What each row of the ending table found, by its number."""

LANGUAGES: Final[tuple[Language, ...]] = ("en", "zh")


def refuse_unspoken(language: str) -> None:
    """Raise :exc:`UsageError` for a language that has no sentences here."""
    if language not in LANGUAGES:
        raise UsageError(f"language {language!r:.80} is not spoken here; choose of {', '.join(LANGUAGES)}")


def sentence(status: Status, language: Language = "en") -> str:
    """The sentence shown for a status; an unknown language is a ``KeyError`` of the caller."""
    return MESSAGES[status][language]
