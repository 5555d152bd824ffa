"""Twenty figures of each page of a job, at random from a made job, from the parquet files alone."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.recomputed import definitions, displayed, jobs, paths
from tests.recomputed.definitions import Between
from tests.recomputed.figures import Rules, draw
from tests.recomputed.test_cells import SEED, VIEW, check
from tests.synthetic import made_jobs
from tests.synthetic.made_paths import REDUCE, Kernel, PathJob
from warpladder.dashboard.core import run_data
from warpladder.data import store

pytestmark = pytest.mark.slow
_FOLDER: list[Path] = []


@pytest.fixture(autouse=True, scope="module")
def _job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    _FOLDER.append(made_jobs.write(tmp_path_factory.mktemp("jobs")))
    yield
    _FOLDER.clear()


def _draw(page: str, charts: int) -> None:
    (folder,) = _FOLDER
    run, rng = definitions.Shipped(folder), random.Random(f"{page} {SEED}")
    data = run_data.load(store.open_run(folder))
    found = [(run, shown, jobs.RULES[shown.name]) for shown in displayed.charts(VIEW[page], run.id, rng, data)]
    assert len(found) == charts
    check(draw(rng, found, lambda run, shown: list(jobs.sentence(run, shown))))


def test_ranks() -> None:
    _draw("ranks", 2)


def test_critical_path() -> None:
    """The gains are those of a simulated job with the faster kernel."""
    program = [
        Kernel("gemm", lambda rank, iteration: 300 + iteration if rank == 2 else 200 + 3 * rank),
        Kernel(REDUCE, 40, 20, after=(7,)),
        Kernel("norm", lambda rank, _: 20 if rank < 3 else 35, after=(20,)),
    ]
    made = PathJob(3 * program, offset_us={1: 5_000.0, 3: -700.0})
    folder = made.write(_FOLDER[0].parent, "path")
    run, rng = definitions.Shipped(folder), random.Random(f"critical_path {SEED}")

    def gain(run: definitions.Shipped, row: Mapping[str, Any], shown: displayed.Shown) -> Between:
        number, _, _ = paths.span(run)
        truth = 1e3 * (made.duration_us(number) - made.with_faster(row["name"]).duration_us(number))
        return Between(truth - 2, truth + 2)

    rules: dict[str, Rules] = {name: dict(each) for name, each in paths.RULES.items()}
    rules["critical-path-gains"] = {**rules["critical-path-gains"], "gain_ns": gain}
    data = run_data.load(store.open_run(folder))
    found = [(run, shown, rules[shown.name]) for shown in displayed.charts(VIEW["critical_path"], run.id, rng, data)]
    assert len(found) == 2
    check(draw(rng, found, lambda run, shown: list(paths.sentence(run, shown))))
