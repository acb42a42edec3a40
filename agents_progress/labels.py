"""The words around a status: what displays call rows, endings and answers, by language.

The sentences of the statuses stand in :mod:`agents_progress.messages`; nothing here claims how a run ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from agents_progress.messages import Language, Status

Label: TypeAlias = Literal[
    "requested", "running", "returned", "failed", "rejected", "skipped", "reused", "effect_uncertain",
    "effect_busy", "effect_conflict", "effect_erased", "start_not_seen", "more_open", "earlier_step",
    "earlier_steps", "tokens_used", "costs", "question", "expires", "approved", "refused", "expired",
    "cancelled", "check", "check_reason", "reason", "error", "cancel_by", "cancel_by_nobody",
    "completed_anyway", "effects", "issues", "guardrail", "continued", "loading", "needs_script", "step",
    "steps", "work", "details", "questions", "files", "sources", "new_content", "stop", "stop_asked",
    "already_ended", "approve", "approve_edited", "reject", "answer_reason", "answer_sent", "answer_taken",
    "exactly", "not_shown", "not_shown_allowed", "in_tool", "in_call", "in_agent", "in_run", "in_task",
    "link_lost", "link_trying", "link_back", "runs", "no_runs", "filter", "all_statuses", "older_runs",
    "newest_runs", "run_name", "status_name", "title_name", "age_name", "activity_name", "tokens_name",
    "cost_name", "at_least", "seconds", "minutes", "hours", "days", "ago", "silent", "continued_as", "language",
    "token", "token_asked", "token_use", "token_forget", "token_kept", "refusal_token", "refusal_forbidden",
    "refusal_not_found", "refusal_erased", "refusal_answered", "refusal_not_waiting", "refusal_differs",
    "refusal_expired", "refusal_not_allowed", "refusal_for_now", "refusal_other", "not_reached",
    "page_outdated", "prompt_answer", "prompt_reject", "prompt_reason", "prompt_again", "still_waits",
    "answer_kept", "stop_after_turn", "stop_at_once", "stop_too_late", "left", "left_alone", "artifact",
    "source", "answer", "answer_so_far", "answer_unchecked", "answer_refused", "answer_partial", "edited",
    "edited_by", "answer_text", "answer_text_optional", "choose", "edit_arguments", "arguments_json",
    "refusal_text_missing", "refusal_unexpected", "refusal_too_long", "refusal_no_option",
    "refusal_not_editable", "refusal_no_object", "refusal_unknown_arguments", "refusal_missing_arguments",
    "refusal_way", "prompt_edit", "prompt_text", "prompt_text_optional", "prompt_option", "prompt_arguments",
    "answer_unconfirmed", "answer_empty", "beginning_missing",
]  # fmt: skip

LABELS: Final[dict[Label, dict[Language, str]]] = {
    "requested": {"en": "requested", "zh": "已请求"},
    "running": {"en": "running", "zh": "正在运行"},
    "returned": {"en": "returned", "zh": "已返回"},
    "failed": {"en": "failed", "zh": "失败"},
    "rejected": {"en": "refused", "zh": "已拒绝"},
    "skipped": {"en": "not run", "zh": "未执行"},
    "reused": {"en": "stored result used", "zh": "使用已存结果"},
    "effect_uncertain": {"en": "may have happened; being checked", "zh": "可能已经发生，正在核对"},
    "effect_busy": {"en": "being carried out elsewhere", "zh": "正在别处执行"},
    "effect_conflict": {"en": "its key was used with other arguments", "zh": "同一键已用于其他参数"},
    "effect_erased": {"en": "happened before; its result was erased", "zh": "此前已经发生，结果已被删除"},
    "start_not_seen": {"en": "start not seen", "zh": "未见开始"},
    "more_open": {"en": "{count} more that have not ended", "zh": "另有 {count} 项还没有结束"},
    "earlier_step": {"en": "{count} earlier step", "zh": "更早的 {count} 个步骤"},
    "earlier_steps": {"en": "{count} earlier steps", "zh": "更早的 {count} 个步骤"},
    "tokens_used": {"en": "Tokens: {amount}", "zh": "Token 数：{amount}"},
    "costs": {"en": "Cost: {amount}", "zh": "费用：{amount}"},
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
    "loading": {"en": "Loading", "zh": "正在加载"},
    "needs_script": {"en": "This page needs JavaScript", "zh": "此页面需要 JavaScript"},
    "step": {"en": "{count} step", "zh": "{count} 个步骤"},
    "steps": {"en": "{count} steps", "zh": "{count} 个步骤"},
    "work": {"en": "Activities", "zh": "活动"},
    "details": {"en": "Details", "zh": "详情"},
    "questions": {"en": "Questions", "zh": "待答复"},
    "files": {"en": "Files", "zh": "文件"},
    "sources": {"en": "Sources", "zh": "来源"},
    "new_content": {"en": "New content", "zh": "有新内容"},
    "stop": {"en": "Stop", "zh": "停止"},
    "stop_asked": {"en": "Asking the run to stop", "zh": "正在请求停止"},
    "already_ended": {"en": "The run had already ended", "zh": "运行此前已经结束"},
    "approve": {"en": "Approve", "zh": "批准"},
    "approve_edited": {"en": "Approve as edited", "zh": "按修改后的内容批准"},
    "reject": {"en": "Reject", "zh": "拒绝"},
    "answer_reason": {"en": "Reason (may stay empty)", "zh": "理由（可不填）"},
    "answer_sent": {"en": "Sending the answer", "zh": "正在提交答复"},
    "answer_taken": {"en": "The answer was taken", "zh": "答复已被接受"},
    "exactly": {"en": "Exactly this is asked:", "zh": "所请求的确切内容："},
    "edited": {"en": "arguments edited", "zh": "参数已修改"},
    "edited_by": {"en": "arguments edited by {name}", "zh": "参数已由 {name} 修改"},
    "answer_text": {"en": "Your answer", "zh": "您的答复"},
    "answer_text_optional": {"en": "Your answer (may stay empty)", "zh": "您的答复（可不填）"},
    "choose": {"en": "Choose one", "zh": "请选择一项"},
    "edit_arguments": {"en": "Approve other arguments", "zh": "批准其他参数"},
    "arguments_json": {"en": "Arguments as JSON", "zh": "JSON 格式的参数"},
    "not_shown": {
        "en": "What exactly is asked is not shown, so it cannot be approved here",
        "zh": "没有显示所请求的确切内容，因此不能在此批准",
    },
    "not_shown_allowed": {
        "en": "What exactly is asked is not shown; the application lets it be approved all the same",
        "zh": "没有显示所请求的确切内容；应用允许在这种情况下批准",
    },
    "in_tool": {"en": "Tool: {name}", "zh": "工具：{name}"},
    "in_call": {"en": "Call: {call_id}", "zh": "调用：{call_id}"},
    "in_agent": {"en": "Agent: {name}", "zh": "智能体：{name}"},
    "in_run": {"en": "Run: {run_id}", "zh": "运行：{run_id}"},
    "in_task": {"en": "Task: {task_id}", "zh": "任务：{task_id}"},
    "link_lost": {"en": "Connection lost; trying again in {seconds} s", "zh": "连接已断开，{seconds} 秒后重试"},
    "link_trying": {"en": "Connection lost; trying again now", "zh": "连接已断开，正在重试"},
    "link_back": {"en": "Connected again", "zh": "已恢复连接"},
    "runs": {"en": "Runs", "zh": "运行"},
    "no_runs": {"en": "No runs", "zh": "没有运行"},
    "filter": {"en": "Filter by status", "zh": "按状态筛选"},
    "all_statuses": {"en": "All statuses", "zh": "所有状态"},
    "older_runs": {"en": "Older runs", "zh": "更早的运行"},
    "newest_runs": {"en": "Newest runs", "zh": "最新的运行"},
    "run_name": {"en": "Run", "zh": "运行"},
    "status_name": {"en": "Status", "zh": "状态"},
    "title_name": {"en": "Title", "zh": "标题"},
    "age_name": {"en": "Age", "zh": "时间"},
    "activity_name": {"en": "Activity", "zh": "当前活动"},
    "tokens_name": {"en": "Tokens", "zh": "Token 数"},
    "cost_name": {"en": "Cost", "zh": "费用"},
    "at_least": {"en": "at least {amount}", "zh": "至少 {amount}"},
    "seconds": {"en": "{count} s", "zh": "{count} 秒"},
    "minutes": {"en": "{count} min", "zh": "{count} 分钟"},
    "hours": {"en": "{count} h", "zh": "{count} 小时"},
    "days": {"en": "{count} d", "zh": "{count} 天"},
    "ago": {"en": "{age} ago", "zh": "{age}前"},
    "silent": {"en": "last event {age} ago", "zh": "最近事件在 {age}前"},
    "continued_as": {"en": "Continued as {run_id}", "zh": "已由 {run_id} 继续"},
    "language": {"en": "Language", "zh": "语言"},
    "token": {"en": "Token", "zh": "访问令牌"},
    "token_asked": {"en": "This server asks for a token", "zh": "此服务需要访问令牌"},
    "token_use": {"en": "Use the token", "zh": "使用此令牌"},
    "token_forget": {"en": "Forget the token", "zh": "忘记令牌"},
    "token_kept": {"en": "It is kept in this tab alone", "zh": "令牌只保存在此标签页中"},
    "refusal_token": {"en": "The server does not take this token", "zh": "服务器不接受此令牌"},
    "refusal_forbidden": {"en": "You may not do this", "zh": "您无权执行此操作"},
    "refusal_not_found": {"en": "There is no such run, or you may not see it", "zh": "没有这个运行，或者您无权查看"},
    "refusal_erased": {"en": "This run was erased", "zh": "此运行已被删除"},
    "refusal_answered": {"en": "Somebody answered this first", "zh": "已有其他人答复"},
    "refusal_not_waiting": {"en": "The run does not wait for this answer any more", "zh": "运行不再等待此答复"},
    "refusal_differs": {
        "en": "What is asked is not what was shown; look again before you answer",
        "zh": "所请求的内容与显示的不同，请重新查看后再答复",
    },
    "refusal_expired": {"en": "The time to answer this is over", "zh": "答复时间已过"},
    "refusal_not_allowed": {"en": "Others may answer this; ask one of them", "zh": "此项应由其他人答复"},
    "refusal_text_missing": {"en": "This is approved with an answer in words; give one", "zh": "批准此项需要填写答复"},
    "refusal_unexpected": {"en": "This takes no such text or arguments", "zh": "此项不接受这样的文字或参数"},
    "refusal_too_long": {"en": "What the answer carries is too long; shorten it", "zh": "答复内容过长，请缩短"},
    "refusal_no_option": {"en": "Choose one of the options", "zh": "请从所列选项中选择"},
    "refusal_not_editable": {
        "en": "The arguments of this call cannot be edited; approve it as it is, or reject it",
        "zh": "此调用的参数不能修改，请原样批准或拒绝",
    },
    "refusal_no_object": {"en": "The arguments are not one JSON object", "zh": "参数不是一个 JSON 对象"},
    "refusal_unknown_arguments": {"en": "The tool has no such arguments: {names}", "zh": "工具没有这些参数：{names}"},
    "refusal_missing_arguments": {
        "en": "The tool needs these arguments too: {names}",
        "zh": "工具还需要这些参数：{names}",
    },
    "refusal_way": {
        "en": "The server takes no request that comes this way",
        "zh": "服务器不接受以这种方式发来的请求",
    },
    "refusal_for_now": {
        "en": "The server cannot do this now; try again in a moment",
        "zh": "服务器暂时无法处理，请稍后再试",
    },
    "refusal_other": {"en": "The server refused this ({code})", "zh": "服务器拒绝了此请求（{code}）"},
    "not_reached": {
        "en": "No answer from the server; whether the request arrived is not known",
        "zh": "服务器没有回应，不知道请求是否送达",
    },
    "page_outdated": {
        "en": "This page does not fit the server; load it again",
        "zh": "此页面与服务器版本不符，请重新加载",
    },
    "prompt_answer": {"en": "[a]pprove, [r]eject, [s]kip:", "zh": "[a] 批准，[r] 拒绝，[s] 跳过："},
    "prompt_edit": {"en": "[a]pprove, [e]dit, [r]eject, [s]kip:", "zh": "[a] 批准，[e] 修改，[r] 拒绝，[s] 跳过："},
    "prompt_text": {"en": "Your answer:", "zh": "您的答复："},
    "prompt_text_optional": {"en": "Your answer (Enter for none):", "zh": "您的答复（可直接回车）："},
    "prompt_option": {"en": "Number of your choice:", "zh": "所选项的编号："},
    "prompt_arguments": {
        "en": "Arguments as JSON (Enter leaves them as they are):",
        "zh": "JSON 格式的参数（直接回车则不修改）：",
    },
    "prompt_reject": {"en": "[r]eject, [s]kip:", "zh": "[r] 拒绝，[s] 跳过："},
    "prompt_reason": {"en": "Reason (Enter for none):", "zh": "理由（可直接回车）："},
    "prompt_again": {"en": "Please answer with one of these letters", "zh": "请输入其中一个字母"},
    "still_waits": {"en": "Nothing was answered; the run still waits", "zh": "没有作出答复，运行仍在等待"},
    "answer_kept": {"en": "The answer is kept; the run did not go on yet", "zh": "答复已保存，运行还没有继续"},
    "stop_after_turn": {
        "en": "Asked the run to stop after its turn; Ctrl-C again stops it at once",
        "zh": "已请求在本轮结束后停止；再按一次 Ctrl-C 立即停止",
    },
    "stop_at_once": {
        "en": "Asked the run to stop at once; Ctrl-C again leaves",
        "zh": "已请求立即停止；再按则退出",
    },
    "stop_too_late": {
        "en": "The run had already ended; a third Ctrl-C leaves",
        "zh": "运行已结束；按第三次则退出",
    },
    "left": {"en": "Left; the run may still be going on", "zh": "已退出；运行可能仍在继续"},
    "left_alone": {"en": "Left; the run is left as it is", "zh": "已退出；运行不受影响"},
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

REFUSAL_LABELS: Final[dict[str, Label]] = {
    "unauthenticated": "refusal_token",
    "forbidden": "refusal_forbidden",
    "not_found": "refusal_not_found",
    "erased": "refusal_erased",
    "unknown_interaction": "refusal_not_waiting",
    "not_waiting": "refusal_not_waiting",
    "already_answered": "refusal_answered",
    "digest_differs": "refusal_differs",
    "expired": "refusal_expired",
    "not_allowed": "refusal_not_allowed",
    "answer_missing": "refusal_text_missing",
    "answer_unexpected": "refusal_unexpected",
    "answer_too_long": "refusal_too_long",
    "body_too_large": "refusal_too_long",
    "not_an_option": "refusal_no_option",
    "not_editable": "refusal_not_editable",
    "arguments_not_object": "refusal_no_object",
    "arguments_unknown": "refusal_unknown_arguments",
    "arguments_missing": "refusal_missing_arguments",
    "cross_origin": "refusal_way",
    "forwarded": "refusal_way",
    "wrong_host": "refusal_way",
    "token_in_url": "refusal_way",
    "bad_json": "page_outdated",
    "bad_fields": "page_outdated",
    "bad_request": "page_outdated",
    "bad_query": "page_outdated",
    "not_json": "page_outdated",
    "no_such_path": "page_outdated",
    "method_not_allowed": "page_outdated",
    "slow_body": "refusal_for_now",
    "too_many_runs": "refusal_for_now",
    "too_many_readers": "refusal_for_now",
    "draining": "refusal_for_now",
    "full": "refusal_for_now",
    "unavailable": "refusal_for_now",
    "authorize_failed": "refusal_for_now",
    "internal": "refusal_for_now",
}
"""What a refusal of the server is called, by its code; any other is `refusal_other`."""

AGE_LABELS: Final[tuple[tuple[int, Label], ...]] = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
"""Units of an age, in seconds, the longest first."""


NOTE_LABELS: Final[dict[str, Label]] = {
    "effect_uncertain": "effect_uncertain",
    "effect_busy": "effect_busy",
    "effect_conflict": "effect_conflict",
    "effect_erased": "effect_erased",
}
"""Codes of a row that are shown in words; the others are shown as they are."""


def label(name: Label, language: Language, /, **values: object) -> str:
    """One label with its values put in; the values are not cleaned here."""
    return LABELS[name][language].format(**values)


def refusal(code: str, language: Language, facts: Mapping[str, object]) -> str:
    """A refusal in words, by its code and what was said besides. Not cleaned."""
    names = facts.get("names")
    named = ", ".join(map(str, names)) if isinstance(names, list) else ""
    return label(REFUSAL_LABELS.get(code, "refusal_other"), language, code=code, names=named)


def in_words(code: str | None, language: Language) -> str | None:
    """The code or reason of a row, in words where there are any."""
    name = NOTE_LABELS.get(code or "")
    return code if name is None else label(name, language)


def age(seconds: float, language: Language) -> str:
    """How long something has lasted, in whole units of the longest one that fits; nothing lasts less than nothing."""
    whole = max(int(seconds), 0)
    unit, name = next((pair for pair in AGE_LABELS if pair[0] <= whole), AGE_LABELS[-1])
    return label(name, language, count=whole // unit)
