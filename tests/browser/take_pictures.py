"""`python -m tests.browser.take_pictures`: the README's pictures in docs/images/, of the longest shipped run in a 1280x720 window."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.pages import BROWSERS, READY, ROOT, open_page, serving
from warpladder.data import store

PICTURES = {
    "overview": "?run={run}",
    "ladder": "ladder?run={run}&workload=tensor_transpose&case.n=512&case.perm=210",
}


def main() -> None:
    folder = ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    run = max(store.list_runs([store.RECORDED])[0], key=lambda run: run.rows("samples")).run_id
    chromium = next(filter(None, map(shutil.which, BROWSERS)))
    with tempfile.TemporaryDirectory() as logs, serving(Path(logs) / "log") as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
        for name, url in PICTURES.items():
            open_page(page, f"{address}/{url.format(run=run)}")
            page.locator(".js-plotly-plot .main-svg").first.wait_for()
            page.wait_for_selector(READY)
            page.screenshot(path=folder / f"{name}.png")
            print(folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
