"""What loops tell that short samples do not, by times and clocks written by hand."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.synthetic import made_energy
from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.dashboard.compare.sustained import remarks
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.text import further
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ladder import chart, query
from warpladder.data import store

CASE = "n=1"
CELL = {"workload": "w", "case": CASE, "config": ""}
#: v02 is 2 % faster than v01 in short samples with a hot L2, and slower with a cold one.
SHORT_US = {"v01": {"hot": 1020, "cold": 1100}, "v02": {"hot": 1000, "cold": 1200}}
#: In a loop, v02 draws more power for each operation, holds a lower clock and is 3 % slower.
LOOPS = {("v01", ""): (690.0, 1.10e6), ("v02", ""): (698.0, 1.13e6)}
SAMPLES_MHZ = {"v01": 1800.0, "v02": 1620.0}
CLOCKS_MHZ = {"v01": 1500.0, "v02": 1440.0}
WINNER = "v01 (1.10 ms at 690 W and 1,500 MHz) is faster in the loop than v02 (1.13 ms at 698 W and 1,440 MHz), the fastest in short samples"
CLOCKS = "Clocks held in the loops: 1,440 MHz (v02) to 1,500 MHz (v01); ratios of times there include the ratio of the clocks"


def write(
    folder: Path,
    loops: Mapping[tuple[str, str], tuple[float, float]] = LOOPS,
    clocks_mhz: Mapping[str, float | None] = CLOCKS_MHZ,
    caches: tuple[str, ...] = ("cold", "hot"),
    **variants: str,
) -> Path:
    """A run of one case with short samples and loops. `variants`: precisions, fp32 for others."""
    samples = [
        row(
            "samples",
            **CELL,
            variant=name,
            gpus=1,
            scope="device",
            cache=cache,
            round=number,
            duration_ns=1000 * us[cache],
            held_clock_mhz=SAMPLES_MHZ[name] if cache == "hot" else None,
        )
        for name, us in SHORT_US.items()
        for cache in caches
        for number in range(8)
    ]
    precisions = {name: variants.get(name, "fp32") for name in SHORT_US}
    tables = {
        "variants": [
            row("variants", workload="w", variant=name, precision=precision, kind="cuda", role="rung")
            for name, precision in precisions.items()
        ],
        "cases": [row("cases", workload="w", case=CASE, params="{}")],
        "results": [row("results", **CELL, variant=name, status="ok") for name in SHORT_US],
        "samples": samples,
        "energy": made_energy.rows("w", CASE, loops, "v01", noise=0, clocks_mhz=clocks_mhz),
    }
    return write_tables(folder, run_row("loops", "loops"), tables)


def told(path: Path) -> tuple[str, ...]:
    return remarks(load(store.open_run(path)), "w", CASE)


def test_another_winner_in_the_loop_and_clocks_that_differ_are_told(tmp_path: Path) -> None:
    assert told(write(tmp_path)) == (WINNER, CLOCKS)


def test_without_hot_samples_the_loop_is_compared_with_cold_ones(tmp_path: Path) -> None:
    """There, v01 is the fastest of both."""
    assert told(write(tmp_path, caches=("cold",))) == (CLOCKS,)


def test_the_same_winner_at_clocks_within_2_percent_is_not_told(tmp_path: Path) -> None:
    loops = {**LOOPS, ("v02", ""): (698.0, 1.09e6)}
    assert told(write(tmp_path, loops, {"v01": 1500.0, "v02": 1471.0})) == ()


def test_a_winner_within_the_noise_of_the_loops_is_not_told(tmp_path: Path) -> None:
    """The second copy of the baseline takes 4 % longer."""
    path = write(tmp_path)
    rows = pq.read_table(path / "energy.parquet").to_pylist()
    rows = [{**each, "execution_ns": each["execution_ns"] * (1.04 if each["twin"] else 1)} for each in rows]
    pq.write_table(store.conform("energy", rows), path / "energy.parquet")
    assert told(path) == (CLOCKS,)


def test_a_winner_is_chosen_in_each_precision(tmp_path: Path) -> None:
    assert told(write(tmp_path, v02="bf16")) == (CLOCKS,)


def test_a_run_that_does_not_know_the_clocks_tells_its_winner(tmp_path: Path) -> None:
    path = write(tmp_path)
    pq.write_table(pq.read_table(path / "energy.parquet").drop_columns(["held_clock_mhz"]), path / "energy.parquet")
    assert told(path) == (WINNER.replace(" and 1,500 MHz", "").replace(" and 1,440 MHz", ""),)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return load(store.open_run(write(tmp_path_factory.mktemp("loops"))))


def test_the_summary_has_the_remarks_below_the_table(data: RunData) -> None:
    assert further.energy(data)[-2:] == [f"  {WINNER}", f"  {CLOCKS}"]


def test_the_note_of_the_ladder_has_them(data: RunData) -> None:
    drawn = chart.ladder(query.ladder(data, "w", CASE, Timing("device", "cold")), look(data))
    assert f"{WINNER}. {CLOCKS}." in drawn.note
    assert "held_clock_mhz" not in drawn.data.columns and not any("clock held" in each.hovertext for each in drawn.figure.data)


def test_the_ladder_of_hot_samples_has_the_clocks_that_they_held(data: RunData) -> None:
    drawn = chart.ladder(query.ladder(data, "w", CASE, Timing("device", "hot")), look(data))
    samples = (
        "Clocks held in the samples: 1,620 MHz (v02) to 1,800 MHz (v01); ratios of times there include the ratio of the clocks"
    )
    assert f"{samples}. {WINNER}. {CLOCKS}." in drawn.note
    assert drawn.data["held_clock_mhz"].tolist() == [1800, 1620]
    assert ["1,800 MHz" in each.hovertext for each in drawn.figure.data] == [True, False]
