"""Clicks and seconds from a start of the app to the sentence that answers, for eight questions of a new user: `python -m benchmarks.questions`.

Each question has a start and a browser of its own, whose cache is empty. The app starts beside the shipped runs, or at a trace or a job,
which were imported before. A click follows as soon as its link is there, so that the seconds are those of the machine and not of the
reader.
"""

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

from tests.browser.pages import BROWSERS, HERE, PATIENCE_MS, free_port, wait_until_healthy

_KINETO: Final = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "kineto"
#: Label -> what `warpladder import` is given.
FIXTURES: Final = {"trace": (str(_KINETO / "resnet18_train_h2d.json.gz"),), "job": ("--job", str(_KINETO / "fsdp"))}


@dataclass(frozen=True)
class Question:
    """A question of a new user.

    Attributes:
        opened: what the app is started with: the label of an imported run; empty for none.
        clicks: the names of the links on the way.
        answer: the sentence, as a pattern.
    """

    words: str
    opened: str
    clicks: tuple[str, ...]
    answer: str


QUESTIONS: Final = (
    Question("Which variant wins for my size?", "", ("Sizes",), r": at .+, first is \S+ with "),
    Question("By how much?", "", (), r"wins with .+ of its limit, [0-9.]+× "),
    Question("Why?", "", ("Why",), r"is [0-9.]+× (faster|slower) than .+: "),
    Question("Can I believe it?", "", (), r"Can I believe it\? (Yes|No)"),
    Question("What changed since last week?", "", (), r"^Since .+: [0-9]+ "),
    Question("Where does my step's time go?", "trace", (), r" [0-9.]+ % of [0-9.]+ ms"),
    Question("Which rank is late?", "job", (), r"^Rank [0-9]+ is late: "),
    Question("Which variant do I ship?", "", ("Which to ship →",), r"^Ship .+: at most "),
)


def main() -> int:
    """Ask every question, and print the table; 1 where one took more than two clicks or the median more than ten seconds."""
    chromium = next(filter(None, map(shutil.which, BROWSERS)))
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(made)
        for label in FIXTURES:
            import_fixture(folder, label)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        seconds = [ask(question, folder, browser) for question in QUESTIONS]
        browser.close()
    median = statistics.median(seconds)
    print(f"median {median:.1f} s")
    return int(median > 10 or max(len(question.clicks) for question in QUESTIONS) > 2)


def import_fixture(folder: Path, label: str) -> None:
    """Import the trace or the job into a folder of runs."""
    command = [*HERE, "import", *FIXTURES[label], "--label", label, "--data-dir", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ask(question: Question, folder: Path, browser: Browser) -> float:
    """Start the app, follow the clicks until the answer is seen, print a line, and return the seconds."""
    log, port = folder / "log", free_port()
    opened = [question.opened, "--no-browser", "--data-dir", str(folder)] if question.opened else []
    command = [*HERE, "app", *opened, "--port", str(port)]
    begin = time.monotonic()
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as server:
        try:
            wait_until_healthy(f"http://localhost:{port}/_stcore/health", server, log)
            started = time.monotonic() - begin
            printed = re.search(r"http://\S+/\?run=\S+", log.read_text())
            page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.goto(printed[0] if printed else f"http://localhost:{port}/")
            for name in question.clicks:
                page.get_by_role("link", name=name, exact=True).first.click()
            page.get_by_test_id("stMain").get_by_text(re.compile(question.answer)).first.wait_for()
            took = time.monotonic() - begin
            said = page.get_by_test_id("stMain").get_by_text(re.compile(question.answer)).first.inner_text()
            page.context.close()
        finally:
            server.terminate()
    print(
        f"{question.words:32} {len(question.clicks)} clicks {took:5.1f} s ({started:.1f} s of them the start)  {said[:110]!r}",
        flush=True,
    )
    return took


if __name__ == "__main__":
    sys.exit(main())
