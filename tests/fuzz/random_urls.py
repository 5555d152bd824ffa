"""Opens random addresses of a running dashboard in a browser: `python -m tests.fuzz.random_urls [SECONDS] [SEED]`.

The dashboard has good runs of each kind, damaged ones, and a link to itself. An address passes when its page is complete within 60
seconds, and shows no exception, and when the server's log has no traceback.
"""

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from tests import damage, hostile_run
from tests.browser.pages import BROWSERS, READY, serving, sync_api
from tests.dashboard.test_hostile_links import KEYS, VALUES
from tests.synthetic import made_runs, made_sweeps, made_traces
from warpladder.dashboard.views import FORMER, VIEWS

_HANGS_MS: Final = 60_000
_SETTLED: Final = """() => !document.querySelector('[data-stale="true"]')"""
RUNS: Final = ("gpu", "host", "counted", "scaling", "trace", "hostile", "loop", "absent", "")
WORDS: Final = (
    *VALUES.values(),
    *("conv2d", "tensor_transpose", "v01_naive", "v02_shared", "v04_sliding", "n=512", "n=1024,perm=210", "cold", "hot", "device"),
    *("operation", "end_to_end", "0", "-1", "1e308", "nan", "inf", "5-1", "0-1000", "kernels-0", "kernels-99999", "ranges-1", "[", "(?P<variant>.*)"),
    *("(a+)+$", "nvtx:(?P<variant>.)", "../../etc/passwd", "%00", "\x1b[2J", "a,b,,c", "true", "false", "None", "@", "gpu@v01_naive", "host@"),
)  # fmt: skip


def make(folder: Path) -> list[str]:
    """Write the runs. Returns the names of all."""
    made_runs.write(folder, "gpu", rounds=8)
    made_runs.write_host_run(folder, "host", rounds=8)
    made_sweeps.write_counted(folder)
    made_sweeps.write_scaling(folder)
    made_traces.write(folder)
    hostile_run.write(folder / "gpu", folder / "hostile")
    (folder / "loop").symlink_to("loop")
    every = [each for each in damage.every_damage() if "FIFO" not in each.name]
    for number, each in enumerate(random.Random(0).sample(every, 20)):
        with tempfile.TemporaryDirectory() as beside:
            damage.write_whole(Path(beside), "good")
            shutil.copytree(Path(beside) / "good", folder / f"bad{number}")
        damage.renamed(folder / f"bad{number}")
        each.make(folder / f"bad{number}")
    return [*RUNS, *(f"bad{number}" for number in range(20))]


def address(draw: random.Random, names: list[str]) -> str:
    """A random address: a page, often a run, and some parameters, which may be given twice."""
    view = draw.choice(
        ["", *(view.name for view in VIEWS[1:]), *FORMER, "absent"] if draw.random() < 0.95 else ["a/b", "%00", "overview/.."]
    )
    pairs = [("run", draw.choice(names))] if draw.random() < 0.8 else []
    for _ in range(draw.randrange(6)):
        key = draw.choice([*KEYS, "device", "on"])
        value = draw.choice(WORDS)
        pairs += [(key, value)] * (2 if draw.random() < 0.1 else 1)
    return f"/{quote(view, safe='/%')}?{urlencode(pairs, errors='replace')}"


def main(seconds: float = 600.0, seed: float = 0.0) -> int:
    """Open addresses for that long, and print what is wrong with any. Returns 1 where something is."""
    draw = random.Random(int(seed))
    chromium = next(filter(None, map(shutil.which, BROWSERS)))
    opened, failed, slowest = 0, 0, 0.0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "runs"
        folder.mkdir()
        names = make(folder)
        log = Path(temporary) / "log"
        with serving(log, "--data-dir", str(folder)) as url, sync_api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1280, "height": 720})
            page.set_default_timeout(_HANGS_MS)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                at = address(draw, names)
                begin = time.monotonic()
                wrong = ""
                try:
                    page.goto(url + at)
                    if page.query_selector("#root"):  # else the server itself answered, as for a path of two parts
                        page.wait_for_selector(READY)
                        page.wait_for_function(_SETTLED)
                        if error := page.query_selector('[data-testid="stException"]'):
                            wrong = f"an exception: {error.inner_text()[:300]!r}"
                except sync_api.TimeoutError:
                    wrong = "hangs"
                slowest = max(slowest, time.monotonic() - begin)
                opened += 1
                if wrong:
                    failed += 1
                    print(f"{at}: {wrong}", flush=True)
            browser.close()
            tracebacks = log.read_text().count("Traceback")
    print(f"{opened} addresses in {seconds:.0f} s: {failed} failed, {tracebacks} tracebacks, the slowest {slowest:.1f} s")
    return int(failed > 0 or tracebacks > 0)


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
