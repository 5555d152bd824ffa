"""Collectives of a job: times and bandwidths counted by hand, kinds and groups, and what the page says where they are not known."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.dashboard.pages import plotted
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_jobs, made_traces
from tests.synthetic.made_jobs import BYTES, ITERATIONS, LATE, RANKS, TRANSFER_NS, wait_ns
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ranks.collectives import chart, query
from warpladder.data import job_tables, store

__all__ = ["open_app"]


def table(*rows: dict[str, Any]) -> pa.Table:
    """Rows of table `collectives`: an all_reduce of 1 MB over ranks 0 and 1, which lasts 100 us, but for what is given."""
    usual = {
        "rank": 0, "collective": "all_reduce", "group": "0", "group_ranks": "[0, 1]", "group_size": 2, "bytes": 1_000_000, "kernels": 1,
        "start_ns": 0, "end_ns": 100_000, "match": 0, "wait_ns": 0, "transfer_ns": 100_000,
    }  # fmt: skip
    fields = [job_tables.COLLECTIVES.arrow.field(name) for name in query.COLUMNS]
    read = pa.Table.from_pylist(
        [{**usual, **row} for row in rows], schema=pa.schema([field.with_nullable(True) for field in fields])
    )
    texts = [name for name in query.COLUMNS if pa.types.is_string(read.schema.field(name).type)]
    for name in texts:
        read = read.set_column(read.schema.get_field_index(name), name, read.column(name).dictionary_encode())
    return read


def only(frame: pd.DataFrame) -> "pd.Series[Any]":
    assert len(frame) == 1
    return frame.iloc[0]


@pytest.mark.parametrize(
    ("collective", "factor"),
    [
        ("all_reduce", 1.75),
        ("all_gather", 0.875),
        ("reduce_scatter", 0.875),
        ("alltoall", 0.875),
        ("broadcast", 1),
        ("reduce", 1),
        ("sendrecv", 1),
        ("barrier", np.nan),
    ],
)
def test_the_bus_bandwidth_of_eight_ranks_is_that_of_the_tests_of_nccl(collective: str, factor: float) -> None:
    assert query.bus_factor(collective, np.array([8.0]))[0] == pytest.approx(factor, nan_ok=True)


def test_times_and_bandwidths_of_a_job(tmp_path: Path) -> None:
    data = load(store.open_run(made_jobs.write(tmp_path, broken=())))
    frame = query.collectives(data, together=False)
    waits = [[wait_ns(rank, iteration) // 2 for iteration in range(ITERATIONS)] for rank in range(RANKS)]
    assert sorted(frame["bytes"]) == sorted(BYTES)
    for _, row in frame.iterrows():
        assert (row["ranks"], row["count"], row["kernels"]) == (RANKS, ITERATIONS, RANKS * ITERATIONS)
        assert row["wait_ns"] == np.sum(waits)
        assert row["wait_median_ns"] == np.median(waits)
        assert row["transfer_ns"] == RANKS * ITERATIONS * TRANSFER_NS
        assert row["kernel_ns"] == row["wait_ns"] + row["transfer_ns"], "the time of a kernel holds the wait"
        assert (row["least_wait_rank"], row["least_wait_ns"], row["most_wait_ns"]) == (LATE, 0, np.sum(waits, axis=1).max())
        assert row["algorithm_gb_per_s"] == pytest.approx(row["bytes"] / TRANSFER_NS)
        assert row["bus_gb_per_s"] == pytest.approx(1.75 * row["bytes"] / TRANSFER_NS)
        assert row["percent_of_best"] == pytest.approx(100 * row["bytes"] / max(BYTES))


def test_the_size_of_a_collective_is_the_largest_of_its_ranks() -> None:
    sizes = ({"bytes": 1_000_000}, {"rank": 1, "bytes": 4_000_000})
    row = only(query.by_size(table(*sizes), 0.0))
    assert row["bytes"] == 4_000_000
    assert row["algorithm_gb_per_s"] == 40


def test_a_transfer_that_is_no_longer_than_the_uncertainty_has_no_bandwidth() -> None:
    for uncertainty, told in ((99_999.0, True), (100_000.0, False)):
        row = only(query.by_size(table({}, {"rank": 1}), uncertainty))
        assert pd.notna(row["bus_gb_per_s"]) == pd.notna(row["algorithm_gb_per_s"]) == told
        assert row["transfer_median_ns"] == 100_000


def test_without_a_match_only_the_time_of_kernels_is_known() -> None:
    unmatched = {"match": None, "wait_ns": None, "transfer_ns": None, "bytes": 0, "group_size": None}
    row = only(query.by_size(table(unmatched, {**unmatched, "rank": 7}), np.nan))
    assert (row["kernel_ns"], row["unmatched_ns"], row["kernels"], row["ranks"]) == (200_000, 200_000, 2, 2)
    assert row[["count", "wait_ns", "transfer_ns", "bytes", "bus_gb_per_s", "least_wait_rank"]].isna().all()


def test_many_sizes_are_joined_by_powers_of_two() -> None:
    sizes = [1_000 + 100 * number for number in range(13)]
    frame = query.by_size(table(*({"bytes": size, "match": place} for place, size in enumerate(sizes))), 0.0).sort_values(
        "bytes"
    )
    assert list(frame["least_bytes"]) == [1_000, 1_100, 2_100]
    assert list(frame["most_bytes"]) == [1_000, 2_000, 2_200]
    assert list(frame["count"]) == [1, 10, 2]
    few = query.by_size(table(*({"bytes": size, "match": place} for place, size in enumerate(sizes[1:]))), 0.0)
    assert len(few) == 12


def test_groups_of_one_name_are_apart_and_those_of_one_size_can_be_together() -> None:
    others = (
        {"rank": 2, "group_ranks": "[2, 3]", "match": 1},
        {"rank": 4, "group": "x", "group_ranks": "[4, 5, 6]", "group_size": 3, "match": 2},
    )
    each = query.by_size(table({}, *others), 0.0)
    assert set(each["group"]) == {"0 [0, 1]", "0 [2, 3]", "x"}
    together = query.by_size(table({}, *others), 0.0, together=True)
    assert set(zip(together["group"], together["ranks"], together["count"], strict=True)) == {
        ("2 groups", 2, 2),
        ("1 group", 3, 1),
    }


@pytest.mark.slow
def test_charts_name_what_takes_the_time_and_the_best_bandwidth(tmp_path: Path) -> None:
    data = load(store.open_run(made_jobs.write(tmp_path)))
    times, bandwidth = chart.charts(data, look(data))
    assert re.match(r"Ranks wait \d\d\.\d % of the \d+ ms in collectives$", times.title)
    assert bandwidth.title == "all_reduce (group 0, 8 ranks): 1.40 GB/s on the bus at 4.00 MB; 25.0 % of that at 1.00 MB"


@pytest.mark.thorough
def test_many_groups_are_drawn_up_to_a_number() -> None:
    rows = ({"group": f"<b>{number}", "match": number, "transfer_ns": 100_000 + number} for number in range(20))
    frame = query.by_size(table(*rows), 0.0)
    shown = look(load_nothing())
    assert len(chart.bandwidth(frame, shown).figure.data) == 12
    times = chart.times(query.by_kind(frame), shown)
    assert "The first 12 of 20" in times.note
    assert "<b>" not in str(times.figure.layout.yaxis.ticktext)


def load_nothing() -> Any:
    """A run without variants, for the look of charts."""
    return SimpleNamespace(variants=pd.DataFrame(columns=["workload", "variant", "role", "precision"]), device="", on_gpu=True)


@pytest.mark.slow
def test_the_page_shows_both_charts_and_a_table(open_app: Open, tmp_path: Path) -> None:
    made_jobs.write(tmp_path)
    app = open_app(tmp_path, "collectives", run="job")
    assert len(plotted(app)) == 2
    assert len(app.main.dataframe[-1].value) == len(BYTES)


@pytest.mark.slow
def test_the_page_says_why_nothing_was_matched(open_app: Open, tmp_path: Path) -> None:
    made_jobs.write(tmp_path, told=False)
    app = open_app(tmp_path, "collectives", run="job")
    assert len(plotted(app)) == 1
    assert "Clocks cannot be aligned" in words(app)
    assert "waits and transfers are not known" in words(app)


@pytest.mark.slow
def test_a_run_of_one_process_leads_to_the_import_of_a_job(open_app: Open, tmp_path: Path) -> None:
    made_traces.write(tmp_path)
    app = open_app(tmp_path, "collectives", run="trace")
    assert [block.value for block in app.main.code] == ["warpladder import --job FOLDER"]
