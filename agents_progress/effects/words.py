"""What a model is told of an effect that it did not have, what the steps of a reaction are called, and why one stopped:
words that travel, where those of :mod:`agents_progress.labels` are a display's.
"""

from __future__ import annotations

from typing import Final

from agents_progress.messages import Language

TOLD: Final[dict[str, dict[Language, str]]] = {
    "effect_uncertain": {
        "en": "This may already have happened and is being checked. Do not try it again or another way; say so.",
        "zh": "此操作可能已经发生，正在核对。请不要重试，也不要换一种方式再做，并如实说明。",
    },
    "effect_busy": {
        "en": "The same is being carried out elsewhere and has not ended. Do not do it another way; say so.",
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

STEPS: Final[dict[str, dict[Language, str]]] = {
    "read": {"en": "Read the record", "zh": "读取记录"},
    "prepare": {"en": "Prepare the result", "zh": "准备结果"},
    "submit": {"en": "Submit the result", "zh": "提交结果"},
    "receipt": {"en": "Read the receipt back", "zh": "读回回执"},
}
"""The steps, and the titles of their rows."""

STOPPED: Final[dict[str, dict[Language, str]]] = {
    "grant_unknown": {"en": "Nothing permits this", "zh": "没有任何授权允许此操作"},
    "grant_cancelled": {"en": "What permitted this was cancelled", "zh": "相应的授权已被取消"},
    "grant_expired": {"en": "What permitted this has expired", "zh": "相应的授权已过期"},
    "grant_changed": {"en": "What permitted this was changed", "zh": "相应的授权已更改"},
    "who_differs": {"en": "This is permitted to somebody else", "zh": "此操作只授权给其他人"},
    "resource_not_granted": {"en": "This is not permitted for this record any more", "zh": "对此记录的授权已不再有效"},
    "action_not_granted": {"en": "This action is not permitted any more", "zh": "不再允许此操作"},
    "source_closed": {"en": "The record is closed or gone", "zh": "记录已关闭或不存在"},
    "source_changed": {"en": "The record was changed meanwhile", "zh": "记录在此期间已更改"},
    "source_unreadable": {"en": "The record could not be read", "zh": "无法读取记录"},
    "prepare_failed": {"en": "No result could be prepared", "zh": "未能准备出结果"},
    "prepare_paused": {"en": "Whoever prepares the result waits for an answer", "zh": "准备结果的运行在等待答复"},
    "prepare_rejected": {"en": "The prepared result did not pass its check", "zh": "准备的结果没有通过检查"},
    "empty_result": {"en": "The prepared result is empty", "zh": "准备的结果为空"},
    "bad_result": {"en": "The prepared result has no form to be submitted in", "zh": "准备的结果没有可提交的形式"},
    "result_differs": {"en": "The result is not what was to be approved", "zh": "结果与待批准的内容不符"},
    "given_up": {
        "en": "Whether it happened could not be found out; check it",
        "zh": "无法查明是否已经发生，请核对",
    },
    "other": {"en": "It was stopped", "zh": "已停止"},
}
"""Why a reaction stopped, by its code."""
