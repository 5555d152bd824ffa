"""Pictures of pages in a 1280x720 window.

`python -m tests.browser.take_pictures` makes the README's picture in docs/images/, of the longest shipped run. With an address below the
dashboard's and a file, such as `"ladder?workload=conv2d" ladder.png`, it makes one of that page, all of it.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from tests.browser.pages import BROWSERS, DRAWN, HEIGHT, READY, ROOT, open_page, serving
from warpladder.data import store

PICTURE: Final = ROOT / "docs" / "images" / "ladder.png"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", nargs="?", default="", help="address of a page")
    parser.add_argument("file", nargs="?", type=Path, default=PICTURE, help="the picture, a .png")
    asked = parser.parse_args()
    if bool(asked.page) == (asked.file == PICTURE):
        parser.error("name a page and a file, or neither")
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not chromium:
        parser.error(f"no browser on PATH ({', '.join(BROWSERS)}); on Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory() as logs, serving(Path(logs) / "log") as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
        open_page(page, f"{address}/{asked.page or _ladder()}")
        page.wait_for_function(DRAWN)
        if asked.page:
            page.set_viewport_size({"width": 1280, "height": page.evaluate(HEIGHT)})
            page.wait_for_timeout(400)  # Plotly draws again after a moment
        page.wait_for_selector(READY)
        page.screenshot(path=asked.file)
        print(asked.file)
        browser.close()


def _ladder() -> str:
    run = max(store.list_runs([store.RECORDED])[0], key=lambda run: run.rows("samples")).run_id
    return f"ladder?run={run}&workload=tensor_transpose&case.n=512&case.perm=210"


if __name__ == "__main__":
    main()
