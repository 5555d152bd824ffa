"""Energies counted by hand, and where pages, text and files show them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dashboard.pages import plotted
from tests.dashboard.test_app import Open, open_app
from tests.dashboard.views.sizes.ship.test_ship import COLD
from tests.synthetic import made_energy, made_runs
from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.dashboard.compare import within_run
from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.numbers import format_energy, format_loop, format_rate
from warpladder.dashboard.core.run_data import RunData, load, select
from warpladder.dashboard.text import summary
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ladder import chart as ladder_chart
from warpladder.dashboard.views.ladder import query as ladder_query
from warpladder.data import store

__all__ = ["open_app"]

CASE = "n=1"
CELL = {"workload": "w", "case": CASE, "config": ""}


def run_of(folder: Path, rows: list[dict[str, object]], *, flops: int = 10**9, min_bytes: int = 4 * 10**9) -> RunData:
    """A run of one case with these rows of `energy`."""
    names = dict.fromkeys(str(each["variant"]) for each in rows)
    tables = {
        "variants": [row("variants", workload="w", variant=name, precision="fp32", kind="cuda", role="rung") for name in names],
        "cases": [row("cases", workload="w", case=CASE, params="{}", flops=flops, min_bytes=min_bytes)],
        "results": [row("results", **CELL, variant=name, status="ok") for name in names],
        "energy": rows,
    }
    return load(store.open_run(write_tables(folder, run_row("energy", "energy"), tables)))


def loops(**watts: float) -> list[dict[str, object]]:
    """Six loops of each variant without noise, an execution of which takes 1 ms; v01 is the baseline."""
    return made_energy.rows("w", CASE, {(name, ""): (power, 1e6) for name, power in watts.items()}, "v01", noise=0)


def test_an_execution_takes_the_energy_above_idle_of_its_time(tmp_path: Path) -> None:
    """624 W less 124 W idle, for 1 ms: 500 mJ. 1e9 operations for 0.5 J are 2 GFLOP/s/W."""
    (found,) = within_run.energies(run_of(tmp_path, loops(v01=624))).to_dict("records")
    assert [found[name] for name in Estimate.names("energy_mj")] == [pytest.approx(500, rel=1e-5)] * 3
    assert (found["per_watt"], found["per_watt_unit"]) == (pytest.approx(2, rel=1e-5), "GFLOP/s/W")
    assert (found["energy_n"], found["loop_ns"], found["idle_w"]) == (6, 1e6, 124)
    assert (found["loop_w"], found["loop_mhz"]) == (pytest.approx(624, rel=1e-5), made_energy.CLOCK_MHZ)


def test_a_case_without_operations_has_its_bytes_a_watt(tmp_path: Path) -> None:
    """4e9 bytes for 0.5 J are 8 GB/s/W."""
    (found,) = within_run.energies(run_of(tmp_path, loops(v01=624), flops=0)).to_dict("records")
    assert (found["per_watt"], found["per_watt_unit"]) == (pytest.approx(8, rel=1e-5), "GB/s/W")


def test_a_ceiling_computes_nothing_and_has_its_bytes_a_watt(tmp_path: Path) -> None:
    data = run_of(tmp_path, loops(v01=624))
    (found,) = within_run.energies(replace(data, variants=data.variants.assign(role="ceiling"))).to_dict("records")
    assert (found["per_watt"], found["per_watt_unit"]) == (pytest.approx(8, rel=1e-5), "GB/s/W")


def test_an_energy_that_is_not_above_idle_has_no_rate_and_no_verdict(tmp_path: Path) -> None:
    frame = within_run.energies_of_case(run_of(tmp_path, loops(v01=624, v02=123)), "w", CASE).set_index("variant")
    assert frame.loc["v02", "energy_mj"] < 0
    assert frame.loc["v02", ["per_watt", "energy_ratio"]].isna().all() and frame.loc["v02", "energy_verdict"] == ""


def test_a_ratio_within_the_difference_of_the_baselines_copies_is_a_tie(tmp_path: Path) -> None:
    """The second copy takes 2 % more than the first."""
    rows = loops(v01=624, v02=632, v03=639)
    rows = [{**each, "energy_mj": round(634 * 1.05e3)} if each["twin"] else each for each in rows]
    frame = within_run.energies_of_case(run_of(tmp_path, rows), "w", CASE).set_index("variant")
    assert frame["energy_noise"].tolist() == [pytest.approx(1.02)] * 3
    assert frame.loc["v02", "energy_ratio"] == pytest.approx(508 / 500, rel=1e-4)
    assert frame["energy_verdict"].to_dict() == {"v01": "", "v02": "tied", "v03": "more"}


def test_fewer_than_six_loops_decide_nothing(tmp_path: Path) -> None:
    rows = [each for each in loops(v01=624, v02=900) if each["round"] != 5]
    assert set(within_run.energies_of_case(run_of(tmp_path, rows), "w", CASE)["energy_verdict"]) == {"", "unknown"}


@pytest.mark.parametrize(("mj", "text"), [(273.2, "273 mJ"), (0.0123, "12.3 µJ"), (5e-6, "5.00 nJ"), (1234, "1.23 J")])
def test_energies_have_three_digits_and_a_unit(mj: float, text: str) -> None:
    assert format_energy(mj) == text


def test_an_execution_in_a_loop_has_its_power_and_the_clock_where_it_is_known() -> None:
    assert format_loop(372_000, 698.7, 1410.3) == "372 µs at 699 W and 1,410 MHz"
    assert format_loop(372_000, 698.7, float("nan")) == "372 µs at 699 W"


def test_rates_a_watt_have_the_prefixes_of_rates() -> None:
    assert (format_rate(642.1, "GFLOP/s/W"), format_rate(0.0421, "GB/s/W")) == ("642 GFLOP/s/W", "42.1 MB/s/W")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("energy")
    made_energy.add_to(made_runs.write(made, rounds=8))
    made_runs.write(made, "without", rounds=8)
    return made


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "synthetic"))


@pytest.mark.thorough
def test_the_ladder_has_a_column_of_energy_where_the_run_has_it(data: RunData) -> None:
    frame = ladder_query.ladder(data, "conv2d", "n=8192", COLD)
    drawn = ladder_chart.ladder(frame, look(data))
    shown = [note.text for note in drawn.figure.layout.annotations]
    values = within_run.energies_of_case(data, "conv2d", "n=8192").set_index("variant")
    assert "energy" in shown and format_energy(values.loc["v03_register_tile", "energy_mj"]) in shown
    assert "Energy: of an execution, repeated with a hot L2, above 124 W idle; median of 6 loops; two copies" in drawn.note
    assert {"energy_mj", "energy_mj_low", "per_watt", "energy_verdict"} <= set(drawn.data.columns)
    hovers = [trace.hovertext for trace in drawn.figure.data]
    assert any("energy over v01_naive" in each and "GFLOP/s/W" in each and " W and 1,755 MHz" in each for each in hovers)
    assert "clocks" not in drawn.data.columns


@pytest.mark.thorough
def test_the_ladder_of_a_run_without_energy_has_none(folder: Path, data: RunData) -> None:
    for run, workload in ((load(store.open_run(folder / "without")), "conv2d"), (data, "tensor_transpose")):
        case = "n=8192" if workload == "conv2d" else "n=512,perm=210"
        drawn = ladder_chart.ladder(ladder_query.ladder(run, workload, case, COLD), look(run))
        assert "energy" not in [note.text for note in drawn.figure.layout.annotations]
        assert not [name for name in drawn.data.columns if "energy" in name or "watt" in name] and "Energy" not in drawn.note


@pytest.mark.slow
def test_the_ladder_of_some_variants_keeps_their_energy(data: RunData) -> None:
    frame = ladder_query.ladder(select(data, ["conv2d"], ["v03*"]), "conv2d", "n=8192", COLD)
    assert frame.set_index("variant").loc["v03_register_tile", "energy_verdict"] == "less"


@pytest.mark.slow
def test_the_summary_prints_energies_and_its_files_have_those_of_the_best(data: RunData, folder: Path) -> None:
    text = summary.terminal(data, 0, sizes=False, every=False)
    assert "conv2d n=8192: energy above 124 W idle; two copies of the baseline differ by" in text
    assert "the baseline itself" in text and text.count("energy above") == 1 and " W and 1,755 MHz" in text
    assert summary.terminal(data, 0, sizes=False, every=True).count("energy above") == 5
    rows = json.loads(summary.render(summary.figures(data), "json"))
    of_best = {each["workload"]: each["energy_mj"] for each in rows}
    values = within_run.energies_of_case(data, "conv2d", "n=8192").set_index("variant")
    assert of_best == {"tensor_transpose": None, "conv2d": pytest.approx(values.loc["v04_sliding", "energy_mj"])}
    assert {each["workload"]: each["loop_mhz"] for each in rows} == {"tensor_transpose": None, "conv2d": 1755}
    without = load(store.open_run(folder / "without"))
    assert "energy" not in summary.terminal(without, 0, sizes=False, every=True)
    assert not [name for name in summary.figures(without).columns if "energy" in name]


def test_where_no_case_has_a_best_variant_no_energy_is_that_of_the_best(data: RunData) -> None:
    few = data.samples.groupby(["workload", "variant", "config", "case", "scope", "cache"], observed=True).head(3)
    found = summary.figures(replace(data, samples=few))
    assert len(found) and found[["best", "energy_mj"]].isna().all(axis=None)


@pytest.mark.thorough
def test_the_page_ladder_shows_energies(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ladder", run="synthetic", workload="conv2d", case="n=8192")
    assert not app.exception
    (figure,) = plotted(app)
    assert '"text":"energy"' in figure.replace(" ", "")
