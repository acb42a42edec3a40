"""The page as the server gives it: which files, under which headers and addresses, and to whom."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from importlib.resources import files
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest
from serving import by_token, caller, code, done, write
from starlette.applications import Starlette
from starlette.routing import Mount

from agents_progress.journal import MemoryJournal
from agents_progress.labels import label
from agents_progress.messages import LANGUAGES
from agents_progress.server import runs_app
from agents_progress.server.pages import MEDIA_TYPES, PAGE_PATHS

ROOT = Path(__file__).parent.parent
FOLDER = Path(str(files("agents_progress").joinpath("server/page")))
FILES = sorted(file.name for file in FOLDER.iterdir())
PARTS = [name for name in FILES if name != "index.html"]
DOCUMENT = (FOLDER / "index.html").read_text(encoding="utf-8")


@pytest.fixture
def app(journal: MemoryJournal) -> Starlette:
    return runs_app(journal, by_token)


# What is there.


async def test_nobody_needs_to_say_who_they_are_to_get_the_page(app: Starlette) -> None:
    async with caller(app, None) as nobody:
        answer = await nobody.get("/")
        assert (answer.status_code, answer.text) == (200, DOCUMENT)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert (await nobody.get("/runs")).status_code == 401


@pytest.mark.parametrize("name", PARTS)
async def test_every_part_of_the_page_is_given_as_what_it_is(app: Starlette, name: str) -> None:
    async with caller(app, None) as nobody:
        answer = await nobody.get(f"/page/{name}")
    assert (answer.status_code, answer.content) == (200, (FOLDER / name).read_bytes())
    assert answer.headers["content-type"] == MEDIA_TYPES[Path(name).suffix]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/page",
        "/page/",
        "/page/index.html",
        "/page/none.js",
        "/page/../app.py",
        "/page/..%2fapp.py",
        "/page/%2e%2e/app.py",
        "/page/site.js/",
        "/page/SITE.JS",
        "/page/site.js%00",
        "/page/site",
        "/index.html",
        "/site.js",
        "//page/site.js",
    ],
)
async def test_nothing_else_can_be_had_under_the_page(app: Starlette, path: str) -> None:
    async with caller(app) as ada:
        answer = await ada.get(path)
    assert (answer.status_code, code(answer)) == (404, "no_such_path")


async def test_a_file_that_comes_later_is_not_served(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    for name, text in (("index.html", "<p>"), ("a.js", "1"), ("notes.txt", "private")):
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr("agents_progress.server.pages.files", lambda package: tmp_path)
    app = runs_app(journal, by_token)
    (folder / "later.js").write_text("2", encoding="utf-8")
    (folder / "a.js").write_text("3", encoding="utf-8")
    async with caller(app) as ada:
        assert (await ada.get("/page/a.js")).text == "1"
        for name in ("later.js", "notes.txt"):
            assert code(await ada.get(f"/page/{name}")) == "no_such_path"


async def test_an_app_without_the_page_has_its_routes_alone(journal: MemoryJournal) -> None:
    app = runs_app(journal, by_token, page=False)
    async with caller(app) as ada:
        for path in ("/", "/page/site.js"):
            assert code(await ada.get(path)) == "no_such_path"
        assert (await ada.get("/runs")).status_code == 200


# Its headers.


async def test_the_document_may_run_and_ask_for_what_is_of_its_own_origin_and_nothing_else(app: Starlette) -> None:
    async with caller(app, None) as nobody:
        headers = (await nobody.get("/")).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy.pop("default-src") == "'none'"
    assert {name for name, value in policy.items() if value == "'self'"} == {
        "script-src",
        "style-src",
        "connect-src",
        "img-src",
    }
    assert {name for name, value in policy.items() if value == "'none'"} == {
        "base-uri",
        "form-action",
        "frame-ancestors",
        "trusted-types",
    }
    assert policy["require-trusted-types-for"] == "'script'"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"


def test_the_document_holds_no_code_no_style_and_no_address_of_another_place() -> None:
    assert re.findall(r"<script[^>]*>([^<]*)</script>", DOCUMENT) == [""]
    assert not re.search(r"<style|\sstyle=|\son\w+=|<base|javascript:", DOCUMENT)
    linked = re.findall(r'(?:href|src)="([^"]*)"', DOCUMENT)
    assert linked
    assert {f"page/{name}" for name in PARTS} >= set(linked)


def test_the_document_says_in_every_language_that_it_needs_scripts() -> None:
    (said,) = re.findall(r"<noscript>(.*)</noscript>", DOCUMENT, re.DOTALL)
    assert re.findall(r"<p[^>]*>(.+)</p>", said) == [label("needs_script", language) for language in LANGUAGES]


@pytest.mark.parametrize("name", [name for name in PARTS if name.endswith((".css", ".svg"))])
def test_styles_and_images_bring_nothing_from_elsewhere(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"//|url\(|@import|<script|\son\w+=", text)


@pytest.mark.parametrize("path", ["/", "/page/site.js"])
async def test_a_browser_keeps_the_files_and_asks_whether_they_are_still_right(app: Starlette, path: str) -> None:
    async with caller(app, None) as nobody:
        first = await nobody.get(path)
        assert first.headers["cache-control"] == "no-cache"
        tag = first.headers["etag"]
        for known in (tag, f"W/{tag}", f'"other", {tag}'):
            again = await nobody.get(path, headers={"if-none-match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
            assert again.headers["content-security-policy"] == first.headers["content-security-policy"]
        assert (await nobody.get(path, headers={"if-none-match": '"other"'})).status_code == 200


async def test_files_of_other_content_have_other_tags(app: Starlette) -> None:
    async with caller(app, None) as nobody:
        tags = {(await nobody.get(f"/page/{name}")).headers["etag"] for name in PARTS}
    assert len(tags) == len(PARTS)


@pytest.mark.parametrize("path", ["/", "/page/site.css"])
async def test_head_says_what_get_would(app: Starlette, path: str) -> None:
    async with caller(app, None) as nobody:
        whole, head = await nobody.get(path), await nobody.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers == whole.headers


@pytest.mark.parametrize("path", ["/", "/page/site.js"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_the_page_takes_nothing(app: Starlette, path: str, method: str) -> None:
    body = {"json": {}} if method == "POST" else {}
    async with caller(app) as ada:
        answer = await ada.request(method, path, **body)  # type: ignore[arg-type]
    assert (answer.status_code, code(answer)) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD"


# Behind the guard.


async def test_the_page_stands_behind_the_guard(journal: MemoryJournal) -> None:
    app = runs_app(journal, by_token, hosts=["runs.test"], direct=True)
    async with caller(app, None) as nobody:
        for path in ("/", "/page/site.js"):
            assert (await nobody.get(path)).status_code == 200
            assert code(await nobody.get(path, headers={"host": "evil.test"})) == "wrong_host"
            assert code(await nobody.get(path, headers={"x-forwarded-for": "10.0.0.1"})) == "forwarded"
            assert code(await nobody.get(path, params={"token": "x"})) == "token_in_url"


# Wherever it is mounted.


def mounted(runs: Starlette, prefix: str) -> Starlette:
    return Starlette(routes=[Mount(prefix, runs)])


@pytest.mark.parametrize("prefix", ["/agent", "/a/b", "/流 程", "/a%b"])
async def test_under_any_prefix_the_page_finds_its_parts_and_its_runs(journal: MemoryJournal, prefix: str) -> None:
    await write(journal, done("r1"))
    async with caller(mounted(runs_app(journal, by_token), prefix), follow_redirects=True) as ada:
        page = await ada.get(httpx.URL("http://runs.test", path=prefix))
        assert page.text == DOCUMENT
        place = str(page.url)
        for linked in [*re.findall(r'(?:href|src)="([^"]*)"', DOCUMENT), "runs", "runs/r1"]:
            assert (await ada.get(urljoin(place, linked))).status_code == 200, linked


def bare(runs: Starlette, prefix: str) -> httpx.AsyncClient:
    """A caller of an app that is mounted by what sends nobody on by itself, as some frameworks do."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(runs, root_path=prefix), base_url="http://runs.test")


@pytest.mark.parametrize(
    ("prefix", "place"),
    [("/agent", "./agent/"), ("/a/b", "./b/"), ("/x//evil.test", "./evil.test/"), ("/a:b", "./a%3Ab/")],
)
async def test_an_app_that_is_asked_without_its_last_slash_sends_on_to_it_and_never_elsewhere(
    journal: MemoryJournal, prefix: str, place: str
) -> None:
    async with bare(runs_app(journal, by_token), prefix) as nobody:
        answer = await nobody.get(prefix)
        assert (answer.status_code, answer.headers["location"]) == (308, place)
        assert code(await nobody.get(prefix, params={"token": "x"})) == "token_in_url"
    async with bare(runs_app(journal, by_token, page=False), prefix) as nobody:
        assert code(await nobody.get(prefix)) == "no_such_path"


# As it is shipped.


def test_every_file_of_the_page_is_of_a_kind_that_is_served() -> None:
    assert {Path(name).suffix for name in FILES} == set(MEDIA_TYPES)
    assert PAGE_PATHS == ("/", "/page/{name}")


def test_the_wheel_holds_every_file_of_the_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, timeout=50, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name.rpartition("/")[2] for name in archive.namelist() if "/server/page/" in name}
    assert held == set(FILES)
