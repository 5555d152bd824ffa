"""How fast the Timeline is: seconds to its first view in a fresh server, and to each zoom step with the server's answer drawn.

    python -m benchmarks.timeline RUN_FOLDER

RUN_FOLDER is the folder of a run with a trace, such as one imported from a report of millions of kernels. It needs playwright, of
requirements-dev.txt, and a Chromium on PATH. The first view is timed twice: in a browser that opens the dashboard for the first time, in
a server that has answered nothing yet (the server imports its libraries then, and the browser fetches Streamlit), and on a change to the
page by the sidebar in another fresh server that has shown a page of another kind.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.pages import BROWSERS, HERE, free_port, wait_until_healthy

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_MS = 120_000
STEPS = 14


def main() -> None:
    """Time the page on the run that the command line names."""
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "run.parquet").exists():
        sys.exit("usage: python -m benchmarks.timeline RUN_FOLDER, a folder with run.parquet")
    run = Path(sys.argv[1]).resolve()
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        with serving(run.parent) as (address, process):
            page = new_page(browser)
            seconds = timed(lambda: (page.goto(f"{address}/timeline?run={run.name}"), wait_drawn(page, None)))
            print(f"first view, fresh server and browser: {seconds:.2f} s")
            for direction, pixels in (("in", -300), ("out", 300)):
                steps = [zoom_step(page, pixels) for _ in range(STEPS)]
                print(f"zoom {direction}: median {statistics.median(steps):.2f} s, longest {max(steps):.2f} s of {STEPS} steps")
            print(f"server, most memory held: {peak_bytes(process) / 1e9:.2f} GB")
        with serving(run.parent) as (address, process):
            page = new_page(browser)
            page.goto(f"{address}/trust?run={run.name}")
            link = page.get_by_test_id("stSidebarNav").get_by_role("link", name="Timeline")
            link.wait_for(timeout=PATIENCE_MS)
            page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=PATIENCE_MS)
            print(f"first view, from another page: {timed(lambda: (link.click(), wait_drawn(page, None))):.2f} s")
        browser.close()


def new_page(browser: Browser) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    return page


def timed(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def zoom_step(page: Page, pixels: int) -> float:
    """Seconds from a turn of the wheel to the server's answer drawn."""
    canvas = page.locator("canvas.lanes")
    box = canvas.bounding_box()
    assert box is not None
    before = page.locator(".timeline").get_attribute("data-number")
    page.mouse.move(box["x"] + 500, box["y"] + 30)

    def step() -> None:
        page.mouse.wheel(0, pixels)
        wait_drawn(page, before)

    seconds = timed(step)
    time.sleep(0.2)
    return seconds


def wait_drawn(page: Page, before: str | None) -> None:
    """Until the canvas shows an answer that is not the one numbered `before`."""
    other = f':not([data-number="{before}"])' if before is not None else ""
    page.wait_for_selector(f".timeline[data-number]{other}", timeout=PATIENCE_MS)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """A dashboard on a free port that has answered nothing yet."""
    address = f"http://localhost:{(port := free_port())}"
    command = [*HERE, "app", "--port", str(port), "--data-dir", str(folder)]
    with tempfile.NamedTemporaryFile() as log, subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log) as server:
        try:
            wait_until_healthy(f"{address}/_stcore/health", server, Path(log.name))
            yield address, server
        finally:
            server.terminate()


def peak_bytes(process: "subprocess.Popen[bytes]") -> int:
    """Most memory that the process has held, in bytes, as Linux counts it; 0 elsewhere."""
    status = Path(f"/proc/{process.pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


if __name__ == "__main__":
    main()
