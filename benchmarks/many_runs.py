"""How long a data folder of thousands of runs takes to list, at first and at each click, and what that adds to a click on each page.

    python -m benchmarks.many_runs [RUN] [--runs 2000] [--folder FOLDER]

RUN, by default a shipped recording, is copied under that many names; all tables but `run` are links to its own. A click is a rerun of a
page through Streamlit's test driver, the median of five, beside the same with two runs.

Measured on two cores of an AMD EPYC that other programs used too (load 2), 2,000 runs; before runs were remembered, every click took
16.1 s to list them:

    first listing   2.7 s
    listing again   0.05 s
                  first, with two runs    a click, with two runs
    overview      3.5 s  1.0 s            0.11 s  0.11 s
    ladder        0.4 s  0.4 s            0.19 s  0.16 s
    roofline      0.6 s  0.3 s            0.16 s  0.13 s
    counters      0.2 s  0.1 s            0.04 s  0.03 s
    gpus          0.2 s  0.1 s            0.05 s  0.03 s
    trust         0.4 s  0.2 s            0.07 s  0.05 s
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from warpladder.data import store

ROOT: Final = Path(__file__).resolve().parent.parent
RUN: Final = store.RECORDED / "20261123T165210Z-h200-mlp-training-8f59"
PAGES: Final = ("overview", "ladder", "roofline", "counters", "gpus", "trust")
REPEATS: Final = 5
GOAL_CLICK_S: Final = 0.3


def main(arguments: Sequence[str]) -> None:
    """Make the runs and print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", nargs="?", type=Path, default=RUN, help="folder of the run that is copied")
    parser.add_argument("--runs", type=int, default=2_000, help="how many copies")
    parser.add_argument("--folder", type=Path, help="where they are written meanwhile, on the file system of the run")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="warpladder-", dir=chosen.folder) as folder:
        few, many = Path(folder) / "few", Path(folder) / "many"
        copy(chosen.run, few, 2)
        copy(chosen.run, many, chosen.runs)
        print(f"first listing   {seconds(lambda: store.list_runs([many])):6.2f} s")
        again = statistics.median(seconds(lambda: store.list_runs([many])) for _ in range(REPEATS))
        print(f"listing again   {again:6.3f} s (goal {GOAL_CLICK_S})")
        store.LOCAL = store.RECORDED = Path(folder) / "none"  # type: ignore[misc]
        for page in PAGES:
            (first_two, two), (first_all, every) = click(few, page), click(many, page)
            print(
                f"{page:10} first {first_all:5.2f} s, with two runs {first_two:5.2f} s; click {every:5.2f} s, with two runs {two:5.2f} s"
            )


def copy(run: Path, folder: Path, count: int) -> None:
    """Copies of a run, each with an id and a label of its own."""
    info = pq.read_table(run / "run.parquet")
    for number in range(count):
        name = f"20260101T000000Z-copy-{number:05}"
        (folder / name).mkdir(parents=True)
        for file in run.iterdir():
            if file.stem != "run":
                link(file, folder / name / file.name)
        mine = {"run_id": name, "label": f"copy {number}"}
        pq.write_table(
            pa.table({c: pa.array([mine[c]]) if c in mine else info[c] for c in info.column_names}, schema=info.schema),
            folder / name / "run.parquet",
        )


def link(file: Path, to: Path) -> None:
    """A hard link, or a symbolic one where the two places are on different file systems."""
    try:
        os.link(file, to)
    except OSError:
        to.symlink_to(file)


def click(folder: Path, page: str) -> tuple[float, float]:
    """Seconds to open a page, and of a click on it."""
    os.environ["WARPLADDER_DATA_DIR"] = str(folder)
    app = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=300)
    app._page_hash = calc_hash(page)  # before the first run, `switch_page` takes the file's name for the page's address
    first = seconds(app.run)
    assert not app.exception, app.exception[0].message
    return first, statistics.median(seconds(app.run) for _ in range(REPEATS))


def seconds(what: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    begin = time.perf_counter()
    what()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main(sys.argv[1:])
