/**
 * The words around a status and the tables that choose them, which texts.js shares with `agents_progress/labels.py`,
 * `render.py` and `plaintext.py`.
 *
 * Written by `python -m tests.browser.table`; a test compares it with the package. Do not edit.
 */

export const LANGUAGES = ["en", "zh"];

export const LABELS = {
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
  "completed_anyway": {"en": "An output existed before the cancel took effect", "zh": "取消生效之前已经有了输出"},
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
  "reject": {"en": "Reject", "zh": "拒绝"},
  "answer_reason": {"en": "Reason (may stay empty)", "zh": "理由（可不填）"},
  "answer_sent": {"en": "Sending the answer", "zh": "正在提交答复"},
  "answer_taken": {"en": "The answer was taken", "zh": "答复已被接受"},
  "exactly": {"en": "Exactly this is asked:", "zh": "所请求的确切内容："},
  "not_shown": {"en": "What exactly is asked is not shown, so it cannot be approved here",
    "zh": "没有显示所请求的确切内容，因此不能在此批准"},
  "not_shown_allowed": {"en": "What exactly is asked is not shown; the application lets it be approved all the same",
    "zh": "没有显示所请求的确切内容；应用允许在这种情况下批准"},
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
  "age_name": {"en": "Age", "zh": "时长"},
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
  "refusal_differs": {"en": "What is asked is not what was shown; look again before you answer",
    "zh": "所请求的内容与显示的不同，请重新查看后再答复"},
  "refusal_for_now": {"en": "The server cannot do this now; try again in a moment", "zh": "服务器暂时无法处理，请稍后再试"},
  "refusal_other": {"en": "The server refused this ({code})", "zh": "服务器拒绝了此请求（{code}）"},
  "not_reached": {"en": "No answer from the server; whether the request arrived is not known",
    "zh": "服务器没有回应，不知道请求是否送达"},
  "page_outdated": {"en": "This page does not fit the server; load it again", "zh": "此页面与服务器版本不符，请重新加载"},
  "prompt_answer": {"en": "[a]pprove, [r]eject, [s]kip:", "zh": "[a] 批准，[r] 拒绝，[s] 跳过："},
  "prompt_reject": {"en": "[r]eject, [s]kip:", "zh": "[r] 拒绝，[s] 跳过："},
  "prompt_reason": {"en": "Reason (Enter for none):", "zh": "理由（可直接回车）："},
  "prompt_again": {"en": "Please answer with one of these letters", "zh": "请输入其中一个字母"},
  "still_waits": {"en": "Nothing was answered; the run still waits", "zh": "没有作出答复，运行仍在等待"},
  "answer_kept": {"en": "The answer is kept; the run did not go on yet", "zh": "答复已保存，运行还没有继续"},
  "stop_after_turn": {"en": "Asked the run to stop after its turn; Ctrl-C again stops it at once",
    "zh": "已请求在本轮结束后停止；再按一次 Ctrl-C 立即停止"},
  "stop_at_once": {"en": "Asked the run to stop at once; Ctrl-C again leaves", "zh": "已请求立即停止；再按则退出"},
  "stop_too_late": {"en": "The run had already ended; a third Ctrl-C leaves", "zh": "运行已结束；按第三次则退出"},
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
};

export const ANSWER_LABELS = {
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
};

export const DECISION_LABELS = {
  "approved": "approved",
  "rejected": "refused",
  "expired": "expired",
  "cancelled": "cancelled",
};

export const NOTE_LABELS = {
  "effect_uncertain": "effect_uncertain",
  "effect_busy": "effect_busy",
  "effect_conflict": "effect_conflict",
  "effect_erased": "effect_erased",
};

export const REFUSAL_LABELS = {
  "unauthenticated": "refusal_token",
  "forbidden": "refusal_forbidden",
  "not_found": "refusal_not_found",
  "erased": "refusal_erased",
  "unknown_interaction": "refusal_not_waiting",
  "not_waiting": "refusal_not_waiting",
  "already_answered": "refusal_answered",
  "digest_differs": "refusal_differs",
  "too_many_readers": "refusal_for_now",
  "draining": "refusal_for_now",
  "full": "refusal_for_now",
  "unavailable": "refusal_for_now",
  "authorize_failed": "refusal_for_now",
  "internal": "refusal_for_now",
};

export const AGE_LABELS = [[86400, "days"], [3600, "hours"], [60, "minutes"], [1, "seconds"]];

export const DID_SOMETHING = {
  "running": "running",
  "returned": "returned",
  "failed": "failed",
  "requested": "start_not_seen",
};

export const TO_BE_CHECKED = ["cancelled", "failed", "incomplete", "unknown"];

export const KEPT = ["failed", "rejected"];

export const DEEPEST = 3;

export const COUNTABLE = 1000000000000000;

export const UNSAFE = [
  [0, 31], [127, 159], [1564, 1564], [8206, 8207], [8234, 8238], [8294, 8297], [8232, 8233], [173, 173],
    [6158, 6158], [8203, 8203], [8288, 8293], [8298, 8303], [65279, 65279], [65529, 65531], [78896, 78911],
    [113824, 113827], [119155, 119162], [917504, 917631], [55296, 57343]
];

export const ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"};
