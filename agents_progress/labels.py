"""The words around a status: what displays call rows, endings and answers, by language.

The sentences of the statuses stand in :mod:`agents_progress.messages`; nothing here claims how a run ended.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from agents_progress.messages import Language, Status

Label: TypeAlias = Literal[
    "requested",
    "running",
    "returned",
    "failed",
    "rejected",
    "skipped",
    "reused",
    "effect_uncertain",
    "effect_busy",
    "effect_conflict",
    "effect_erased",
    "start_not_seen",
    "more_open",
    "more_ended",
    "question",
    "expires",
    "approved",
    "refused",
    "expired",
    "cancelled",
    "check",
    "check_reason",
    "reason",
    "error",
    "cancel_by",
    "cancel_by_nobody",
    "completed_anyway",
    "effects",
    "issues",
    "guardrail",
    "continued",
    "artifact",
    "source",
    "answer",
    "answer_so_far",
    "answer_unchecked",
    "answer_refused",
    "answer_partial",
    "answer_unconfirmed",
    "answer_empty",
    "beginning_missing",
]

LABELS: Final[dict[Label, dict[Language, str]]] = {
    "requested": {"en": "requested", "zh": "已请求"},
    "running": {"en": "running", "zh": "正在运行"},
    "returned": {"en": "returned", "zh": "已返回"},
    "failed": {"en": "failed", "zh": "失败"},
    "rejected": {"en": "refused", "zh": "已拒绝"},
    "skipped": {"en": "not run", "zh": "未执行"},
    "reused": {"en": "stored result used", "zh": "使用已存结果"},
    "effect_uncertain": {"en": "may have happened; being checked", "zh": "可能已经发生，正在核对"},
    "effect_busy": {"en": "being done elsewhere", "zh": "正在别处执行"},
    "effect_conflict": {"en": "its key was used with other arguments", "zh": "同一键已用于其他参数"},
    "effect_erased": {"en": "happened before; its result was erased", "zh": "此前已经发生，结果已被删除"},
    "start_not_seen": {"en": "start not seen", "zh": "未见开始"},
    "more_open": {"en": "and {count} more that have not ended", "zh": "另有 {count} 项还没有结束"},
    "more_ended": {"en": "and {count} more that ended", "zh": "另有 {count} 项已经结束"},
    "question": {"en": "Waiting for an answer: {title} ({tool})", "zh": "等待答复：{title}（{tool}）"},
    "expires": {"en": "until {when}", "zh": "截止 {when}"},
    "approved": {"en": "Approved: {title} ({tool})", "zh": "已批准：{title}（{tool}）"},
    "refused": {"en": "Refused: {title} ({tool})", "zh": "已拒绝：{title}（{tool}）"},
    "expired": {"en": "Expired without an answer: {title} ({tool})", "zh": "到期未答复：{title}（{tool}）"},
    "cancelled": {"en": "Withdrawn: {title} ({tool})", "zh": "已撤回：{title}（{tool}）"},
    "check": {"en": "Check: {name}", "zh": "检查：{name}"},
    "check_reason": {"en": "The check says: {reason}", "zh": "检查说明：{reason}"},
    "reason": {"en": "Reason: {reason}", "zh": "原因：{reason}"},
    "error": {"en": "Error {code}: {message}", "zh": "错误 {code}：{message}"},
    "cancel_by": {"en": "Cancel requested by: {name}", "zh": "取消请求来自：{name}"},
    "cancel_by_nobody": {"en": "Nobody is known to have requested the cancel", "zh": "不知道是谁请求了取消"},
    "completed_anyway": {
        "en": "An output existed before the cancel took effect",
        "zh": "取消生效之前已经有了输出",
    },
    "effects": {"en": "May have had an effect: {names}", "zh": "可能已产生影响：{names}"},
    "issues": {"en": "What does not fit: {codes}", "zh": "不相符之处：{codes}"},
    "guardrail": {"en": "Guardrail tripped: {name} ({stage})", "zh": "护栏触发：{name}（{stage}）"},
    "continued": {"en": "Continued as {run_id}: {sentence}", "zh": "已由 {run_id} 继续：{sentence}"},
    "artifact": {"en": "File: {name} ({media_type}, {size} bytes)", "zh": "文件：{name}（{media_type}，{size} 字节）"},
    "source": {"en": "Source: {title}", "zh": "来源：{title}"},
    "answer": {"en": "Answer:", "zh": "回答："},
    "answer_so_far": {"en": "Answer so far:", "zh": "目前的回答："},
    "answer_unchecked": {"en": "Answer, unchecked:", "zh": "回答（尚未检查）："},
    "answer_refused": {"en": "Answer, not passed:", "zh": "未通过检查的回答："},
    "answer_partial": {"en": "Partial answer:", "zh": "部分回答："},
    "answer_unconfirmed": {"en": "Unconfirmed text:", "zh": "文字（未经确认）："},
    "answer_empty": {"en": "(empty)", "zh": "（空）"},
    "beginning_missing": {"en": "(beginning missing)", "zh": "（缺少开头）"},
}

ANSWER_LABELS: Final[dict[Status, Label]] = {
    "accepted": "answer_so_far",
    "running": "answer_so_far",
    "waiting": "answer_so_far",
    "cancelling": "answer_so_far",
    "checking": "answer_unchecked",
    "done": "answer",
    "rejected": "answer_refused",
    "cancelled": "answer_unconfirmed",
    "failed": "answer_unconfirmed",
    "incomplete": "answer_unconfirmed",
    "unknown": "answer_unconfirmed",
}
"""What the text beside a status is called, in few words. Only `done` has an answer without a reservation."""

DECISION_LABELS: Final[dict[str, Label]] = {
    "approved": "approved",
    "rejected": "refused",
    "expired": "expired",
    "cancelled": "cancelled",
}
"""How a settled question is called."""


NOTE_LABELS: Final[dict[str, Label]] = {
    "effect_uncertain": "effect_uncertain",
    "effect_busy": "effect_busy",
    "effect_conflict": "effect_conflict",
    "effect_erased": "effect_erased",
}
"""Codes of a row that are shown in words; the others are shown as they are."""

TOLD: Final[dict[str, dict[Language, str]]] = {
    "effect_uncertain": {
        "en": "This may already have happened and is being checked. Do not try it again or another way; say so.",
        "zh": "此操作可能已经发生，正在核对。请不要重试，也不要换一种方式再做，并如实说明。",
    },
    "effect_busy": {
        "en": "The same is being done elsewhere and has not ended. Do not do it another way; say so.",
        "zh": "同一操作正在别处执行，还没有结束。请不要换一种方式再做，并如实说明。",
    },
    "effect_conflict": {
        "en": "Something else was done under the same key, so nothing was done now. Check the arguments.",
        "zh": "同一键下已执行过别的操作，这次没有执行任何操作。请检查参数。",
    },
    "effect_erased": {
        "en": "This has happened before; its result is no longer known. Do not try it again.",
        "zh": "此操作此前已经发生，结果已不可知。请不要重试。",
    },
}
"""Code of an effect that was not had, and what the model is told of it."""


def label(name: Label, language: Language, /, **values: object) -> str:
    """One label with its values put in; the values are not cleaned here."""
    return LABELS[name][language].format(**values)
