"""A real job: four H200 train a model with FSDP (benchmarks/profiled_job.py), and rank 0 copies 256 MiB from pageable memory in each step.

Of the traces, operators and the arguments that no figure needs were removed. `tracelens/` has what the class `NcclAnalyser` of TraceLens
(https://github.com/AMD-AGI/TraceLens, MIT, commit 171dd747) writes about them.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.job import Request, import_job, profiles
from warpladder.collectors.trace.notes import Notes
from warpladder.data import store
from warpladder.data.communication import collective_of

FIXTURE = Path(__file__).parents[2] / "fixtures" / "kineto" / "fsdp"
TRACELENS = FIXTURE.parent / "tracelens"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "run_all", lambda function, tasks, *_: map(function, tasks))
        return store.open_run(folder / import_job(Request(profiles(str(FIXTURE)), ""), folder, Notes()))


@pytest.mark.slow
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


def test_collectives_by_rank_and_size_are_those_of_tracelens(run: store.Run) -> None:
    collectives = run.table("collectives").dropna(subset="group_size")
    collectives["us"] = (collectives["end_ns"] - collectives["start_ns"]) / 1000
    ours = collectives.groupby(["rank", "group", "collective", "element_type", "in_elements", "out_elements", "stream"])["us"]
    theirs = pd.read_csv(TRACELENS / "nccl_summary_long.csv")
    assert len(theirs) == ours.ngroups
    for row in theirs.to_dict("records"):
        kind = collective_of("", row["Collective name"])
        elements = row["In msg nelems"], row["Out msg nelems"]
        group = ours.get_group((row["rank"], str(row["Process Group Name"]), kind, row["dtype"], *elements, row["stream"]))
        assert len(group) == row["operation_count"]
        found = group.agg(["sum", "mean", "std", "min", "max"]).to_numpy()
        assert found == pytest.approx(
            [row[f"dur_{name}"] for name in ("sum", "mean", "std", "min", "max")], abs=1e-3, nan_ok=True
        )


def test_latency_skew_and_bandwidth_are_those_of_tracelens(run: store.Run) -> None:
    """Its starts and ends are not aligned, and are floats of microseconds since 1970, exact to a quarter. Its GB is 2^30."""
    matched = run.table("collectives").dropna(subset="match")
    matched["us"] = (matched["end_ns"] - matched["start_ns"]) / 1000
    of_match = matched.groupby("match")
    each = of_match[["collective", "element_type", "in_elements", "bytes", "group_size"]].first()
    each["comm_latency"] = of_match["us"].min()
    for name, column in (("skew in start time", "start_ns"), ("skew in end time", "end_ns")):
        each[name] = (of_match[column].max() - of_match[column].min()) / 1000
    each["algo bw (GB/s)"] = each["bytes"] / 2**30 / (each["comm_latency"] / 1e6)
    share = (each["group_size"] - 1) / each["group_size"]
    each["bus bw (GB/s)"] = each["algo bw (GB/s)"] * share * np.where(each["collective"] == "all_reduce", 2, 1)
    ours = each.groupby(["collective", "element_type", "in_elements"])
    theirs = pd.read_csv(TRACELENS / "nccl_summary_implicit_sync.csv")
    assert len(theirs) == ours.ngroups
    for row in theirs.to_dict("records"):
        group = ours.get_group((collective_of("", row["Collective name"]), row["dtype"], row["In msg nelems"]))
        assert len(group) == row["count"]
        for name in ("comm_latency", "skew in start time", "skew in end time", "algo bw (GB/s)", "bus bw (GB/s)"):
            found = group[name].agg(["mean", "median", "min", "max"]).to_numpy(float)
            wanted = [row[f"{name}_{each}"] for each in ("mean", "median", "min", "max")]
            assert found == pytest.approx(wanted, rel=1e-6, abs=0.5 if name.startswith("skew") else 1e-3), name
