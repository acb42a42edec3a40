"""The eleven statuses and their sentences. Nothing else in this package words a status."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

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

LANGUAGES: Final[tuple[Language, ...]] = ("en", "zh")


def sentence(status: Status, language: Language = "en") -> str:
    """The sentence shown for a status; an unknown language is a ``KeyError`` of the caller."""
    return MESSAGES[status][language]
