"""`python -m tests.browser.take_pictures`: the README's picture in docs/images/, of the longest shipped run in a 1280x720 window."""

import shutil
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from tests.browser.pages import BROWSERS, READY, ROOT, open_page, serving
from warpladder.data import store

PICTURE: Final = ROOT / "docs" / "images" / "ladder.png"


def main() -> None:
    run = max(store.list_runs([store.RECORDED])[0], key=lambda run: run.rows("samples")).run_id
    chromium = next(filter(None, map(shutil.which, BROWSERS)))
    with tempfile.TemporaryDirectory() as logs, serving(Path(logs) / "log") as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
        open_page(page, f"{address}/ladder?run={run}&workload=tensor_transpose&case.n=512&case.perm=210")
        page.locator(".js-plotly-plot .main-svg").first.wait_for()
        page.wait_for_selector(READY)
        page.screenshot(path=PICTURE)
        print(PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
