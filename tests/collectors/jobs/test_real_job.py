"""A real job: four H200 train a model with FSDP (benchmarks/profiled_job.py), and rank 0 copies 256 MiB from pageable memory in each step.

Of the traces, operators and the arguments that no figure needs were removed.
"""

from pathlib import Path

import pytest

from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.job import Request, import_job, profiles
from warpladder.collectors.trace.notes import Notes
from warpladder.data import store

FIXTURE = Path(__file__).parents[2] / "fixtures" / "kineto" / "fsdp"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "run_all", lambda function, tasks, *_: map(function, tasks))
        return store.open_run(folder / import_job(Request(profiles(str(FIXTURE)), ""), folder, Notes()))


def test_the_planted_rank_is_late_in_every_collective(run: store.Run) -> None:
    ranks = run.table("ranks").set_index("rank")
    assert ranks["late"].tolist() == [True, False, False, False]
    assert ranks["last"].tolist() == [228, 0, 0, 0] and set(ranks["collectives"]) == {228}
    assert ranks["cause"][0] == "host", "copies from pageable memory hold its host, which launches later"
    assert ranks["wait_ns"][1:].tolist() == pytest.approx([703e6] * 3, rel=0.002)


def test_the_ends_of_collectives_agree_to_microseconds(run: store.Run) -> None:
    ranks = run.table("ranks")
    assert ranks["uncertainty_ns"].between(100, 3000).all()
    matched = run.table("collectives").dropna(subset=["match"])
    spread = matched.groupby("match")["finish_ns"].agg(lambda ends: ends.max() - ends.min())
    starts = matched.groupby("match")["start_ns"].agg(lambda begins: begins.max() - begins.min())
    assert len(spread) == 228 and spread.median() < 5_000 < 100 * spread.median() < starts.median()


def test_collectives_launched_before_the_trace_are_not_matched(run: store.Run) -> None:
    collectives = run.table("collectives")
    assert collectives["match"].isna().equals(collectives["iteration"].isna())
    assert collectives["match"].isna().groupby(collectives["rank"]).sum().tolist()[0] == 0
    assert set(collectives["group"]) == {"0"}, "those without arguments have the group of their stream"
