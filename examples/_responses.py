"""What the examples that mock HTTP with respx share: the client, and one streamed answer."""

import json
import re
from typing import Any

import httpx
from openai import AsyncOpenAI

URL = "https://api.openai.com/v1/responses"
DETAILS = {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
USAGE = {**DETAILS, "input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1_700_000_000, "model": "mocked", "tools": []}


def client(http: Any) -> AsyncOpenAI:
    """The real client over a legacy `httpx.AsyncClient()`: openai 3 uses httpx2, which respx does not intercept."""
    return AsyncOpenAI(api_key="mocked", http_client=http, max_retries=0)


def answer(text: str) -> httpx.Response:
    """A streamed Responses API response with one assistant message, sent word by word."""
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part: dict[str, Any] = {"type": "output_text", "annotations": [], "logprobs": []}
    item: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    whole = {**item, "content": [{**part, "text": text}]}
    head: dict[str, Any] = {**RESPONSE, "parallel_tool_calls": True, "tool_choice": "auto"}
    usage = {**USAGE, "output_tokens_details": {"reasoning_tokens": 0}}
    deltas = [{"delta": word, "logprobs": []} for word in re.findall(r"\S+\s*", text)]
    return stream(
        {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, **delta} for delta in deltas),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": {**part, "text": text}},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": "response.completed", "response": {**head, "status": "completed", "output": [whole], "usage": usage}},
    )


def stream(*frames: dict[str, Any]) -> httpx.Response:
    """A response whose body is these objects as server-sent events."""
    numbered = [{**frame, "sequence_number": number} for number, frame in enumerate(frames)]
    body = "".join(f"data: {json.dumps(frame)}\n\n" for frame in numbered)
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=body)
