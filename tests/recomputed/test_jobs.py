"""Twenty figures of each page of a job, at random from a made job, from the parquet files alone."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recomputed import definitions, displayed, jobs
from tests.recomputed.figures import draw
from tests.recomputed.test_cells import SEED, VIEW, check
from tests.synthetic import made_jobs
from warpladder.dashboard.core import run_data
from warpladder.data import store

pytestmark = pytest.mark.slow
_FOLDER: list[Path] = []


@pytest.fixture(autouse=True, scope="module")
def _job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    _FOLDER.append(made_jobs.write(tmp_path_factory.mktemp("jobs")))
    yield
    _FOLDER.clear()


def _draw(page: str) -> None:
    (folder,) = _FOLDER
    run, rng = definitions.Shipped(folder), random.Random(f"{page} {SEED}")
    data = run_data.load(store.open_run(folder))
    found = [(run, shown, jobs.RULES[shown.name]) for shown in displayed.charts(VIEW[page], run.id, rng, data)]
    assert len(found) == 2
    check(draw(rng, found, lambda run, shown: list(jobs.sentence(run, shown))))


def test_ranks() -> None:
    _draw("ranks")


def test_stragglers() -> None:
    _draw("stragglers")
