"""`make walk`: every page and each option of it, over every shipped run and over fresh runs; then every page in a browser.

It takes more than an hour on two cores: Home alone takes 5 minutes in the browser, in six states over each of 37 runs. It prints a
table of heights and seconds, and ends with 1 where it found a problem.
"""

import argparse
import logging
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.pages import BROWSERS, serving
from tests.dashboard.conftest import pytest_configure
from tests.walk import fresh
from tests.walk.in_browser import Seen, see
from tests.walk.in_process import Walk
from warpladder.dashboard.core import run_index
from warpladder.dashboard.core.run_index import ListedRun
from warpladder.dashboard.ui import runs
from warpladder.dashboard.ui.view import View
from warpladder.dashboard.views import VIEWS
from warpladder.data import store


def main() -> int:
    """Walk, and print what was found; the exit code."""
    parser = argparse.ArgumentParser(prog="make walk", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="data folders in place of fresh runs")
    given = parser.parse_args().folders
    logging.disable(logging.WARNING)
    pytest_configure()
    with tempfile.TemporaryDirectory() as made:
        folders = given or [fresh.record(Path(made) / "fresh", *fresh.WHOLE)]
        store.LOCAL = Path(made) / "none"  # type: ignore[misc]
        os.environ[runs.DATA_DIR_VARIABLE] = os.pathsep.join(map(str, folders))
        problems = _in_process(folders) + _in_browser(folders, Path(made) / "log")
    print("\n".join(["", f"{len(problems)} problems", *problems]))
    return 1 if problems else 0


def _in_process(folders: list[Path]) -> list[str]:
    walk = Walk()
    for view in VIEWS:
        for name in runs.listing((*folders, store.RECORDED)).index:
            walk.expect_content(walk.open(view, run=name), view, name)
            walk.every_option(view, name)
        print(f"{view.name:10} {walk.opened[view.name]:5} times drawn, {walk.seconds[view.name]:6.1f} s", flush=True)
    return walk.problems


def _in_browser(folders: list[Path], log: Path) -> list[str]:
    every = list(runs.listing((*folders, store.RECORDED)).index.values())
    seen: dict[str, list[Seen]] = defaultdict(list)
    problems: list[str] = []
    chromium = next(filter(None, map(shutil.which, BROWSERS)))
    arguments = [part for folder in folders for part in ("--data-dir", str(folder))]
    with serving(log, *arguments) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_default_timeout(90_000)
        for view in VIEWS:
            able = _able(view, every)
            for each in able:
                for section in view.applying(each.fits) or view.sections[:1]:
                    seen[view.name] += see(page, address, f"{view.name}?run={each.name}&section={section.name}")
            print(_line(view.name, seen[view.name]), flush=True)
            told = [
                f"{each.path} at {each.width}, {each.theme}: {problem}" for each in seen[view.name] for problem in each.problems
            ]
            print("\n".join(told), flush=True)
            problems += told
        browser.close()
    return problems


def _able(view: View, every: list[ListedRun]) -> list[ListedRun]:
    """The runs that have what the page needs, and one that has not."""
    able = [
        each
        for device in run_index.devices(every)
        for each in every
        if each.facts.device == device and view.applying(each.fits)
    ]
    return [*able, *[each for each in every if each not in able][:1]]


def _line(name: str, of: list[Seen]) -> str:
    """The highest and the slowest of a page."""
    heights = {width: max(each.height for each in of if each.width == width) for width in {each.width for each in of}}
    told = ", ".join(f"{height} px high at {width}" for width, height in sorted(heights.items()))
    slowest = max(of, key=lambda each: each.seconds)
    return f"{name:10} {told}, at most {slowest.seconds:.1f} s ({slowest.path})"


if __name__ == "__main__":
    sys.exit(main())
