"""A label that several runs have."""

import json
import os
from pathlib import Path

import pytest

from tests.collectors.kineto.made_events import document, kernel
from warpladder.collectors.kineto.parse import import_report
from warpladder.data import store


def _imported(folder: Path, number: int, label: str, base_ns: int) -> Path:
    path = folder / f"trace-{number}.json"
    path.write_text(json.dumps(document([kernel(0, 10 + number, 1)], baseTimeNanoseconds=base_ns)))
    run = folder / "runs" / import_report(path, folder / "runs", label, None, [])
    os.utime(run / "run.parquet", (1_700_000_000 + number, 1_700_000_000 + number))
    return run


@pytest.mark.slow
def test_a_label_opens_the_run_that_was_imported_last(tmp_path: Path) -> None:
    """Whatever the dates of the profiles, and in whatever order their folders are listed."""
    day = 86_400 * 10**9
    for order in ([3, 1, 2], [1, 2, 3], [2, 3, 1]):
        folder = tmp_path / "".join(map(str, order))
        folder.mkdir()
        runs = {number: _imported(folder, number, "mine", 10**18 - number * day) for number in order}
        assert store.find_run("mine", [folder / "runs"]).path == runs[3]
        assert store.find_run(runs[1].name, [folder / "runs"]).path == runs[1]


def test_of_several_imports_of_one_trace_the_last_is_opened(tmp_path: Path) -> None:
    for _ in range(3):
        _imported(tmp_path, 5, "mine", 10**18)
    paths = sorted((tmp_path / "runs").iterdir())
    for last in paths:
        for path in paths:
            time = 1_700_000_000 + (path == last)
            os.utime(path / "run.parquet", (time, time))
        assert store.find_run("mine", [tmp_path / "runs"]).path == last
        found = store.import_of(tmp_path / "trace-5.json", tmp_path / "runs")
        assert found is not None and found.path == last
