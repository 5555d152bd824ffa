"""The page Devices on runs of made devices with known times."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic.made_devices import COPY, NAMES, TIMES, TIMING, loaded, write, write_both
from warpladder.dashboard.compare import side_by_side
from warpladder.dashboard.ui import runs
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.devices import chart as charts
from warpladder.dashboard.views.devices import page
from warpladder.dashboard.views.devices import query as queries

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("devices")
    write_both(made)
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> side_by_side.SideBySide:
    return side_by_side.side_by_side(loaded(folder, "h100"), loaded(folder, "h200"), "w", TIMING)


def of_case(found: side_by_side.SideBySide, case: str) -> tuple[list[side_by_side.Contest], dict[str, side_by_side.Pair]]:
    pairs = {pair.a.variant: pair for pair in found.pairs if pair.a.case == case}
    return [each for each in found.contests if each.case == case], pairs


def test_rungs_stand_before_peers_with_the_ratio_of_their_times(found: side_by_side.SideBySide) -> None:
    assert [(pair.a.case, pair.a.variant) for pair in found.pairs] == [(case, name) for case in TIMES for name in TIMES[case]]
    for pair in found.pairs:
        a, b = TIMES[pair.a.case][pair.a.variant]
        assert pair.ratio.low < pair.ratio.value < pair.ratio.high and pair.ratio.value == pytest.approx(b / a, rel=2e-3)
        assert pair.of_floors == pytest.approx(COPY[0] / COPY[1])
        assert pair.b.percent_of_floor.value == pytest.approx(100 * 50 / b, rel=2e-3)


def test_the_headline_names_the_winner_of_both_or_the_two_winners(found: side_by_side.SideBySide) -> None:
    assert (
        queries.headline(*of_case(found, "n=2"), NAMES)
        == "v03 is the fastest rung on both and takes 0.830 times as long on the H200 as on the H100"
    )
    differ = queries.headline(*of_case(found, "n=1"), NAMES)
    assert differ.startswith("v03 is the fastest rung on the H100 and ") and differ.endswith(" slower on the H100")
    percents = [float(part.split(" %")[0].split()[-1]) for part in differ.split(" slower")[:2]]
    assert percents == pytest.approx([10, 100], rel=0.02)
    assert (
        queries.reached(*of_case(found, "n=2"), NAMES)
        == "v03 reaches 37.5 % of the memory floor on the H100 and 30.1 % on the H200"
    )


def test_a_rung_within_the_noise_of_the_fastest_wins_too(found: side_by_side.SideBySide) -> None:
    (contest,) = of_case(found, "n=3")[0]
    assert set(contest.b.winners) == {"v02", "v03"} and contest.a.winners == ("v03",)
    assert queries.headline(*of_case(found, "n=3"), NAMES).startswith(
        "v03 is the fastest rung, or tied with it, on both and takes"
    )
    assert contest.both == "v03", "it wins on both, whichever of the two has the lesser median on B"
    assert {pair.a.variant: pair.wins for pair in found.pairs if pair.a.case == "n=3"} == {
        "v01": "",
        "v02": "B",
        "v03": "both",
        "lib": "",
    }


def test_each_variant_that_wins_on_one_and_loses_on_the_other_is_named_with_its_loss(found: side_by_side.SideBySide) -> None:
    sided = side_by_side.one_sided(found)
    assert [(each.case, each.variant, each.wins, each.to) for each in sided] == [
        ("n=1", "v02", "B", "v03"),
        ("n=1", "v03", "A", "v02"),
        ("n=3", "v02", "B", "v03"),
    ]
    for each, truth in zip(sided, (2.0, 1.1, 1.025), strict=True):
        assert each.behind.low < each.behind.value < each.behind.high
        assert each.behind.value == pytest.approx(truth, rel=3e-3)
    assert side_by_side.losers(sided[2:], NAMES).startswith("v02 is first or tied on the H200 and 2.")
    assert side_by_side.losers(sided, NAMES).startswith(
        "3 that are first or tied on one device are slower on the other; the most: v02"
    )
    assert (
        side_by_side.losers([], NAMES) == "No variant is first or tied on one of the H100 and the H200 and slower on the other"
    )
    frame = queries.winners(found.contests)
    assert frame["result"].tolist()[:2] == ["differ", "same"]
    assert frame["a_on_b"].tolist()[0].startswith("10.") or frame["a_on_b"].tolist()[0].startswith("9.9")
    assert frame["a_on_b"].tolist()[1] == ""


def test_a_distrusted_time_of_one_device_wins_on_neither(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, "hot", 1, doubt="n=2")
    found = side_by_side.side_by_side(loaded(folder, "h100"), loaded(tmp_path, "hot"), "w", TIMING)
    (contest,) = of_case(found, "n=2")[0]
    assert contest.both == "v02" and found.doubted == {("n=2", "v03")}


def test_what_one_run_has_alone_or_of_another_source_is_named(folder: Path, tmp_path: Path) -> None:
    times = {
        case: {"v04" if name == "lib" else name: us for name, us in of.items()} | {"v04": (5, 5)} for case, of in TIMES.items()
    }
    write(tmp_path, "other", 1, times=times, source="changed")
    found = side_by_side.side_by_side(loaded(folder, "h100"), loaded(tmp_path, "other"), "w", TIMING)
    assert found.changed_sources == ("v02",) and found.alone == (("lib",), ("v04",))
    assert {each.variant: each.same_source for each in side_by_side.one_sided(found)} == {"v02": False, "v03": True}
    assert side_by_side.losers(side_by_side.one_sided(found), NAMES).endswith("n=1, with another source")
    assert "v04" not in {name for each in found.contests for name in each.b.winners}, "faster, but not timed on both"


def test_ceilings_are_ratios_of_times(folder: Path, found: side_by_side.SideBySide) -> None:
    rates = queries.rates(loaded(folder, "h100"), loaded(folder, "h200"), found)
    assert [(rate.what, round(rate.ratio, 3), rate.a, rate.b) for rate in rates] == [
        ("copies in memory", 0.667, "4.00 TB/s", "6.00 TB/s"),
        ("fp32", 1.0, "60.0 TFLOP/s", "60.0 TFLOP/s"),
    ]


@pytest.mark.parametrize(
    ("a", "b", "short"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA H200", ("H100", "H200")),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", ("A100-SXM4-40GB", "A100-SXM4-80GB")),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 64GB HBM2", ("NVIDIA H100 80GB HBM3", "NVIDIA H100 64GB HBM2")),
        ("AMD EPYC 9654 96-Core Processor", "Intel(R) Xeon(R) CPU @ 2.60GHz", ("AMD EPYC 9654", "Intel Xeon")),
    ],
)  # fmt: skip
def test_names_of_devices_are_short_unless_they_would_be_equal(a: str, b: str, short: tuple[str, str]) -> None:
    assert side_by_side.short_names(a, b) == short
    assert side_by_side.labels(short) == (short if short == NAMES else ("A", "B"))


@pytest.mark.parametrize(("show", "value"), [("time", 166_000.0), ("floor", 100 * 50 / 166)])
def test_the_two_devices_differ_in_symbol_and_filling(
    folder: Path, found: side_by_side.SideBySide, show: charts.Show, value: float
) -> None:
    a, b = loaded(folder, "h100"), loaded(folder, "h200")
    shown = charts.Shown(found.of_case("n=2"), NAMES, "about", queries.rates(a, b, found))
    chart = charts.variants(shown, look(a), show)
    first, second = (trace for trace in chart.figure.data if trace.mode == "markers")
    assert (first.name, second.name) == NAMES
    assert (first.marker.symbol, second.marker.symbol) == ("circle", "diamond-open")
    assert second.x[2] == pytest.approx(value, rel=2e-3) and len(chart.data) == 4
    assert all(up > 0 for up in second.error_x.array)


def test_the_chart_of_ratios_has_a_line_for_each_ceiling(folder: Path, found: side_by_side.SideBySide) -> None:
    a, b = loaded(folder, "h100"), loaded(folder, "h200")
    shown = charts.Shown(found.of_case("n=2"), NAMES, "about", queries.rates(a, b, found))
    marks, copies, fma = charts.variants(shown, look(a), "ratio").figure.data
    assert marks.x[2] == pytest.approx(0.83, rel=2e-3)
    assert copies.x[0] == pytest.approx(2 / 3) and fma.x[0] == 1 and copies.line.dash != fma.line.dash


def test_the_page_takes_the_run_of_the_other_device(folder: Path, open_app: Open) -> None:
    app = open_app(folder, "devices", run="h100", **{"case.n": "2"})
    assert "v03 is the fastest rung on both and takes 0.830 times as long on the H200 as on the H100" in words(app)
    assert app.selectbox(key="choose other").value == "NVIDIA H200"
    assert len(app.main.dataframe) >= 3
    app = open_app(folder, "devices", run="h200", show="floor")
    assert "reaches 50.0 % of the memory floor on the H200" in words(app)


@pytest.mark.thorough
def test_processors_are_compared_too(tmp_path: Path, open_app: Open) -> None:
    write(tmp_path, "one", 0, cpu="AMD EPYC 9654 96-Core Processor")
    write(tmp_path, "two", 1, cpu="Intel Xeon")
    app = open_app(tmp_path, "devices", run="one", **{"case.n": "2"})
    assert "v03 is the fastest on both and takes 0.830 times as long on the Intel Xeon as on the AMD EPYC 9654" in words(app)


@pytest.mark.thorough
def test_variants_of_the_host_ran_on_the_processors_of_runs_with_gpus(tmp_path: Path) -> None:
    write(tmp_path, "one", 0, cpu="AMD EPYC 9654")
    write(tmp_path, "two", 1, cpu="Intel Xeon")
    one, two = loaded(tmp_path, "one"), loaded(tmp_path, "two")
    two = replace(two, info={**two.info, "device_name": "NVIDIA H200"})
    found = side_by_side.side_by_side(one, two, "w", TIMING)
    assert side_by_side.devices_of(one, two, found) == ("AMD EPYC 9654", "Intel Xeon")
    two = replace(two, info={**two.info, "cpu_name": "AMD EPYC 9654"})
    assert side_by_side.devices_of(one, two, found) == ("AMD EPYC 9654", "AMD EPYC 9654, beside NVIDIA H200")


@pytest.mark.parametrize(("own", "called"), [("NVIDIA H100", "NVIDIA H200"), (None, "Intel Xeon, beside NVIDIA H200")])
def test_beside_a_run_of_a_host_other_devices_are_called_by_their_processors(own: str | None, called: str) -> None:
    run, other = (
        SimpleNamespace(info={"device_name": gpu, "cpu_name": cpu})
        for gpu, cpu in ((own, "AMD"), ("NVIDIA H200", "Intel Xeon"))
    )
    listed: Any = {"NVIDIA H200": [SimpleNamespace(run=other)]}
    assert page._names(cast("Any", run), listed) == {"NVIDIA H200": called}


def test_with_one_device_alone_the_page_has_the_command_that_records_on_another(tmp_path: Path, open_app: Open) -> None:
    write(tmp_path, "a", 0)
    app = open_app(tmp_path, "devices", run="a", section="devices")
    assert "Only NVIDIA H100 80GB HBM3 has times of w." in words(app)
    assert app.main.info[0] in app.main.children.values(), "below the choices, and not beside them"
    assert app.main.code[0].value == "warpladder record w"


def test_runs_without_a_common_case_have_the_command_for_one(tmp_path: Path, open_app: Open) -> None:
    write(tmp_path, "a", 0)
    write(tmp_path, "b", 1, times={"n=9": TIMES["n=1"]})
    app = open_app(tmp_path, "devices", run="a")
    assert "timed no variant of w at the same case" in words(app)
    assert app.main.code[0].value == "warpladder record w --case n=3"


def test_a_damaged_run_of_the_other_device_is_said(tmp_path: Path, open_app: Open) -> None:
    write(tmp_path, "a", 0)
    (write(tmp_path, "b", 1) / "samples.parquet").write_bytes(b"PAR1 damaged PAR1")
    assert "The run of B cannot be read" in words(open_app(tmp_path, "devices", run="a"))


@pytest.mark.parametrize(
    ("kind", "command", "workload", "how"),
    [
        ("recording", "warpladder record my_kernel.py --set quick", "my_kernel", "warpladder record my_kernel.py --case n=3"),
        ("recording", "warpladder record a.py 'my b.py' conv2d", "b", "warpladder record a.py 'my b.py' --case n=3"),
        ("recording", "warpladder record a.py conv2d", "conv2d", "warpladder record conv2d --case n=3"),
        ("recording", "python -m warpladder record conv2d gemm", "gemm", "warpladder record gemm --case n=3"),
        ("recording", "warpladder record conv2d --label old.py", "conv2d", "warpladder record conv2d --case n=3"),
        ("import", "warpladder import report.ncu-rep", "report", "warpladder record report --case n=3"),
    ],
)
def test_a_workload_of_a_file_is_recorded_by_the_name_of_the_file(
    monkeypatch: pytest.MonkeyPatch, kind: str, command: str, workload: str, how: str
) -> None:
    monkeypatch.setattr(runs, "context", lambda: SimpleNamespace(every=()))
    run: Any = SimpleNamespace(info={"command": command, "kind": kind})
    assert runs.how_to_record(run, workload, "--case n=3") == how
    assert runs.recorded_as(run, workload) == ("" if kind == "import" else how[len("warpladder record ") : -len(" --case n=3")])
