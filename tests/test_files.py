"""Files that tools give: told by name, type, size and digest, and shown nowhere."""

from __future__ import annotations

import base64
import hashlib
from types import SimpleNamespace
from typing import Any

import pytest
from agents import ComputerTool, ToolOutputFileContent, ToolOutputImage, ToolOutputText, function_tool
from staging import OPEN, log_of, scripted, started

from agents_progress.sdk.files import files_of, shown
from agents_progress.testing import call, raw_item, text, turn
from compat.scenarios.hosted_local import Screen, computer_call

CONTENT = b"\x00the content that never travels\xff"
BASE64 = base64.b64encode(CONTENT).decode()
PNG = f"data:image/png;base64,{BASE64}"

OUTPUTS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "image": (ToolOutputImage(image_url=PNG), [("image.png", "image/png")]),
    "image as a dict": ({"type": "image", "image_url": PNG}, [("image.png", "image/png")]),
    "svg": (ToolOutputImage(image_url=PNG.replace("png", "svg+xml")), [("image.svg", "image/svg+xml")]),
    "file": (ToolOutputFileContent(file_data=BASE64, filename="a.pdf"), [("a.pdf", "application/pdf")]),
    "file with a path": (
        ToolOutputFileContent(file_data=BASE64, filename="/home/me/a.pdf"),
        [("a.pdf", "application/pdf")],
    ),
    "file with a foreign path": (
        {"type": "file", "file_data": BASE64, "filename": "C:\\me\\a.txt"},
        [("a.txt", "text/plain")],
    ),
    "file without a name": (ToolOutputFileContent(file_data=BASE64), [("file", "application/octet-stream")]),
    "file as a data url": (
        {"type": "file", "file_data": PNG.replace("image/png", "text/csv"), "filename": "t"},
        [("t", "text/csv")],
    ),
    "several parts": (
        [ToolOutputText(text="two"), ToolOutputImage(image_url=PNG), {"type": "image", "image_url": PNG}],
        [("image.png", "image/png")] * 2,
    ),
    "data url": (PNG, [("image.png", "image/png")]),
    "image elsewhere": (ToolOutputImage(image_url="https://example.org/a.png"), []),
    "image by id": (ToolOutputImage(file_id="f"), []),
    "file by id": (ToolOutputFileContent(file_id="f"), []),
    "file elsewhere": (ToolOutputFileContent(file_url="https://example.org/a.pdf"), []),
    "bad base64": (ToolOutputImage(image_url="data:image/png;base64,%%%"), []),
    "empty": (ToolOutputImage(image_url="data:image/png;base64,"), []),
    "text": ("just text", []),
    "bytes": (CONTENT, []),
}


@pytest.mark.parametrize("name", OUTPUTS)
async def test_a_file_of_every_form_is_told_and_its_content_never_leaves(name: str) -> None:
    output, files = OUTPUTS[name]
    tool = function_tool(name_override="make")(lambda: output)
    agent = scripted(turn(call("make", call_id="c")), turn(text("ok")), tools=[tool])
    log = await log_of(started(agent, disclosure=OPEN))
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert log.of("artifact.created") == [
        {
            "artifact_id": f"artifact-{n}", "name": file, "media_type": media_type, "bytes": len(CONTENT),
            "call_id": "c", "sha256": digest,
        }
        for n, (file, media_type) in enumerate(files, start=1)
    ]  # fmt: skip
    assert log.view.tools == {"c": "returned"} and log.view.issues == []
    assert BASE64[:12] not in repr([envelope.payload for envelope in log.envelopes])


async def test_a_screenshot_is_a_file() -> None:
    log = await log_of(
        started(scripted(turn(computer_call()), turn(text("ok")), tools=[ComputerTool(Screen())]), disclosure=OPEN)
    )
    (made,) = log.of("artifact.created")
    assert (made["name"], made["bytes"], made["call_id"]) == ("image.png", 3, log.of("tool.requested")[0]["call_id"])
    assert "aW1n" not in repr(log.envelopes)


async def test_a_file_of_a_hosted_tool_is_told_and_previews_are_not() -> None:
    preview = {"type": "response.image_generation_call.partial_image", "partial_image_index": 0}
    drawn = raw_item(
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": BASE64},
        {**preview, "partial_image_b64": BASE64},
    )
    log = await log_of(started(scripted(turn(drawn, text("ok"))), disclosure=OPEN))
    assert [made["bytes"] for made in log.of("artifact.created")] == [len(CONTENT)]
    assert BASE64[:12] not in repr(log.envelopes)


@pytest.mark.parametrize(
    ("output", "text_of_it"),
    [
        (ToolOutputText(text="a\ud800"), "a\ufffd"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ("data:,plain", "data:,plain"),
        (PNG, f"(image/png, {len(BASE64)} characters of base64)"),
    ],
)
def test_an_output_of_parts_is_the_text_in_it(output: Any, text_of_it: str) -> None:
    assert shown(output) == text_of_it


class Hostile:
    @property
    def type(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("output", [Hostile(), [Hostile()], [], (), {}, None, 3, SimpleNamespace(type="image")])
def test_an_output_of_any_form_is_taken(output: Any) -> None:
    assert list(files_of(output)) == [] and isinstance(shown(output), str)
