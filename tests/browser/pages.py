"""The dashboard as the tests see it in a browser: a server of their own, pages once they have settled, what they download."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

try:
    from playwright import sync_api
except ModuleNotFoundError:  # the fixture `browser` says so
    sync_api = None  # type: ignore[assignment]
expect = sync_api and sync_api.expect

ROOT = Path(__file__).resolve().parents[2]
HERE: Final = (sys.executable, "-m", "warpladder")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
READY = '[data-testid="stApp"][data-test-script-state="notRunning"][data-test-connection-state="CONNECTED"]'
#: Whether nothing waits to be drawn, and the height of what is drawn, as scripts of a page.
DRAWN: Final = """() => ![...document.querySelectorAll('[data-testid="stSkeleton"]')].some(each => each.offsetParent)
  && [...document.querySelectorAll('.warpladder-chart')].every(each => each.querySelector('.main-svg'))"""
HEIGHT: Final = "document.querySelector('[data-testid=\"stMainBlockContainer\"]').scrollHeight"
PATIENCE_MS = 90_000


@contextmanager
def serving(log: Path, *arguments: str, program: Sequence[str] = HERE, **settings: Any) -> Iterator[str]:
    """A dashboard on a free port, with these arguments; its address. Fails where a script of it raised.

    Args:
        program: the command that serves it.
        settings: of the process.
    """
    port = free_port()
    command = [*program, "app", "--port", str(port), *arguments]
    where = {"cwd": ROOT, **settings}
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, **where) as server:
        try:
            wait_until_healthy(f"http://localhost:{port}/_stcore/health", server, log)
            yield f"http://localhost:{port}"
        finally:
            server.terminate()
    assert "Traceback" not in log.read_text()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port: int = free.getsockname()[1]
        return port


def wait_until_healthy(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):  # it loads its libraries meanwhile
            time.sleep(0.05)
    pytest.fail(f"the dashboard did not start:\n{log.read_text()}")


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


def download(page: "sync_api.Page", kind: str) -> bytes:
    with page.expect_download(timeout=PATIENCE_MS) as started:
        page.get_by_role("button", name=kind, exact=True).first.click()
    return Path(started.value.path()).read_bytes()
