"""One Chromium for all tests of this folder, and pages that tell of what they should not do."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import pytest

from tests.browser.pages import BROWSERS, PATIENCE_MS, serving, sync_api
from tests.synthetic import made_jobs, made_runs, made_sweeps, made_traces

_LOCAL_HOSTS = {"localhost", "127.0.0.1"}


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups there too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(folder):
            item.add_marker("browser")
            item.add_marker(pytest.mark.xdist_group("browser"))  # one browser for all of them, so one worker


def without(missing: str) -> NoReturn:
    """Skip for want of something. Only a machine that is not CI may be without it."""
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="package")
def chromium() -> str:
    """The system's Chromium."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    return found or without(f"no browser on PATH ({', '.join(BROWSERS)}); on Debian: apt-get install chromium")


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator["sync_api.Browser"]:
    if sync_api is None:
        without("needs playwright: pip install -r requirements-dev.txt")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="package")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard on one run of each kind: of a GPU, of a host, with counters, of several GPUs, a job, and a trace of 12300 ns."""
    runs = tmp_path_factory.mktemp("runs")
    made_runs.write(runs, "gpu", rounds=8)
    made_runs.write_host_run(runs, "host", rounds=8)
    made_sweeps.write_counted(runs)
    made_sweeps.write_scaling(runs)
    made_traces.write(runs)
    made_jobs.write(runs)
    with serving(tmp_path_factory.mktemp("log") / "streamlit.log", "--data-dir", str(runs)) as url:
        yield url


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
    assert hosts <= _LOCAL_HOSTS, f"asked {sorted(str(host) for host in hosts)}"
    assert failed == []
