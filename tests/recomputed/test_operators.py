"""Every figure of the section Operators, of a real trace of PyTorch. No such trace ships."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.recomputed import displayed, operators
from tests.recomputed.test_cells import SEED, VIEW
from warpladder.collectors.kineto.parse import import_report
from warpladder.dashboard.core import run_data
from warpladder.data import store

TRACE = Path(__file__).parents[1] / "fixtures" / "kineto" / "graph_and_two_streams.json.gz"


def test_operators() -> None:
    with TemporaryDirectory() as folder:
        run = store.open_run(Path(folder) / import_report(TRACE, Path(folder), "", None, []))
        (shown,) = displayed.charts(VIEW["operators"], run.run_id, random.Random(SEED), run_data.load(run))
        tables = {name: run.table(name) for name in ("operations", "kernels", "memory_ops", "api_calls")}
    assert len(shown.frame) == 3
    for row in shown.frame.to_dict("records"):
        figures = operators.figures(tables, row["operator"])
        assert {name: row[name] for name in figures} == pytest.approx(figures)
