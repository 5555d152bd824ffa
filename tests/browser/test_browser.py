"""The dashboard in a real Chromium: every page, the state in the URL, the downloads, and that nothing leaves the machine."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import synthetic_run

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, of requirements-dev.txt")
expect = sync_api.expect

# One server for all of them, so one worker.
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PAGES = ("", "sizes", "published", "ladder", "roofline", "details", "trust")
READY = '[data-testid="stApp"][data-test-script-state="notRunning"][data-test-connection-state="CONNECTED"]'
LOCAL_HOSTS = {"localhost", "127.0.0.1"}
PATIENCE_MS = 30_000


@pytest.fixture(scope="module")
def chromium() -> str:
    """The system's Chromium. Only a machine that is not CI may be without one."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        missing = f"no browser on PATH ({', '.join(BROWSERS)}); on Debian: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard on synthetic runs and a free port."""
    runs = tmp_path_factory.mktemp("runs")
    synthetic_run.write(runs, "gpu", rounds=20)
    synthetic_run.write_host_run(runs, "host")
    log = tmp_path_factory.mktemp("log") / "streamlit.log"
    with serving(log, "--data-dir", str(runs)) as url:
        yield url
    assert "Traceback" not in log.read_text()


@contextmanager
def serving(log: Path, *arguments: str) -> Iterator[str]:
    """A dashboard on a free port, with these arguments; its address."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/app.py", "--server.port", str(port), "--", *arguments]
    with log.open("w") as output, subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT) as server:
        try:
            wait_until_healthy(f"http://localhost:{port}/_stcore/health", server, log)
            yield f"http://localhost:{port}"
        finally:
            server.terminate()


def wait_until_healthy(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    pytest.fail(f"the dashboard did not start:\n{log.read_text()}")


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator["sync_api.Browser"]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def page(browser: "sync_api.Browser") -> Iterator["sync_api.Page"]:
    """A page that fails the test when it asks another machine for anything, or when a script of it fails."""
    context = browser.new_context(viewport={"width": 1280, "height": 720}, accept_downloads=True)
    context.set_default_timeout(PATIENCE_MS)
    opened = context.new_page()
    asked: list[str] = []
    failed: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("websocket", lambda websocket: asked.append(websocket.url))
    opened.on("pageerror", lambda error: failed.append(str(error)))
    yield opened
    context.close()
    hosts = {urlsplit(url).hostname for url in asked if urlsplit(url).scheme in ("http", "https", "ws", "wss")}
    assert hosts <= LOCAL_HOSTS, f"asked {sorted(str(host) for host in hosts)}"
    assert failed == []


def open_page(page: "sync_api.Page", url: str) -> None:
    page.goto(url)
    settle(page)


def settle(page: "sync_api.Page") -> None:
    """Wait until the script has run and everything drawn is of that run."""
    page.wait_for_selector(READY)
    expect(page.locator('[data-stale="true"]')).to_have_count(0, timeout=PATIENCE_MS)
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)
    # Streamlit's word for a page that is not there.
    expect(page.get_by_role("dialog")).to_have_count(0)


def option(page: "sync_api.Page", group: str, name: str) -> "sync_api.Locator":
    return page.get_by_role("radiogroup", name=group, exact=True).get_by_role("radio", name=name, exact=True)


def test_every_page_opens_without_an_exception_and_draws(page: "sync_api.Page", address: str) -> None:
    for name in PAGES:
        open_page(page, f"{address}/{name}?run=gpu")
        expect(page.get_by_role("heading", level=2).first).to_be_visible(timeout=PATIENCE_MS)
        if name != "trust":
            expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)


def test_every_page_is_reached_from_the_sidebar_and_keeps_the_run(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/?run=host")
    for title, name in (("Sizes", "sizes"), ("Ladder", "ladder"), ("Runs & checks", "trust"), ("Overview", "")):
        page.get_by_test_id("stSidebarNav").get_by_role("link", name=title).click()
        expect(page.get_by_role("heading", level=2, name=title)).to_be_visible(timeout=PATIENCE_MS)
        settle(page)
        expect(page).to_have_url(re.compile(rf"/{name}\?.*run=host"), timeout=PATIENCE_MS)


def test_a_reload_of_the_url_finds_the_same_choices(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/sizes?run=gpu")
    option(page, "Workload", "conv2d").click()
    expect(page).to_have_url(re.compile("workload=conv2d"), timeout=PATIENCE_MS)
    settle(page)
    option(page, "L2", "hot").click()
    expect(page).to_have_url(re.compile("cache=hot"), timeout=PATIENCE_MS)
    settle(page)
    chosen = page.url

    page.reload()
    settle(page)

    for group, name in (("Workload", "conv2d"), ("L2", "hot")):
        expect(option(page, group, name)).to_have_attribute("aria-checked", "true", timeout=PATIENCE_MS)
    assert page.url == chosen


def test_the_back_button_takes_a_choice_back(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/trust?run=gpu")
    option(page, "Show", "Verdicts").click()
    expect(page).to_have_url(re.compile("topic=verdicts"), timeout=PATIENCE_MS)
    settle(page)
    page.go_back()
    expect(page).to_have_url(re.compile("topic=findings"), timeout=PATIENCE_MS)
    expect(option(page, "Show", "Findings")).to_have_attribute("aria-checked", "true", timeout=PATIENCE_MS)


def test_a_chart_is_downloaded_as_csv_html_svg_and_png(page: "sync_api.Page", address: str, tmp_path: Path) -> None:
    open_page(page, f"{address}/ladder?run=gpu&workload=conv2d&case.n=2048")
    content = {kind: download(page, kind) for kind in ("CSV", "HTML", "SVG", "PNG")}
    header, *rows = content["CSV"].decode().splitlines()
    assert "median_ns" in header.split(",")
    assert any("v04_sliding" in row for row in rows)
    assert content["HTML"].startswith(b"<!DOCTYPE html>")
    assert b"<svg" in content["SVG"][:500]
    assert content["PNG"].startswith(b"\x89PNG\r\n\x1a\n")

    saved = tmp_path / "chart.html"
    saved.write_bytes(content["HTML"])
    page.goto(saved.as_uri())
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)


def download(page: "sync_api.Page", kind: str) -> bytes:
    with page.expect_download(timeout=PATIENCE_MS) as started:
        page.get_by_role("button", name=kind, exact=True).first.click()
    return Path(started.value.path()).read_bytes()


def test_a_dark_browser_gets_dark_charts(browser: "sync_api.Browser", address: str) -> None:
    backgrounds = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme=scheme)
        page = context.new_page()
        open_page(page, f"{address}/ladder?run=gpu")
        text = page.locator(".js-plotly-plot .ytick text, .js-plotly-plot .xtick text").first
        expect(text).to_be_visible(timeout=PATIENCE_MS)
        backgrounds[scheme] = text.evaluate("element => getComputedStyle(element).fill")
        context.close()
    assert backgrounds["light"] != backgrounds["dark"]
