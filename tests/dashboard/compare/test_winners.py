"""What may not be called best is called best nowhere: distrusted cells, ties, and cells of fewer than six samples."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.dashboard.pages import rows
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.dashboard import report
from warpladder.dashboard.compare import overview as overviews
from warpladder.dashboard.compare import winners
from warpladder.dashboard.compare.changes import Comparison
from warpladder.dashboard.compare.within_run import speedups
from warpladder.dashboard.core.cell import Baseline, Timing, records
from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.run_data import RunData, load, select
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.run.run import Run
from warpladder.dashboard.text import compare, summary
from warpladder.dashboard.ui.template import Theme, look
from warpladder.dashboard.views.ladder import chart as ladder_chart
from warpladder.dashboard.views.ladder import query as ladders
from warpladder.dashboard.views.ladder.roofline import chart as roofline_chart
from warpladder.dashboard.views.ladder.roofline import query as rooflines
from warpladder.dashboard.views.sizes import chart as sizes_chart
from warpladder.dashboard.views.sizes import query as sizes
from warpladder.dashboard.views.sizes.ship import chart as ship_chart
from warpladder.dashboard.views.sizes.ship import code, dispatch
from warpladder.dashboard.views.sizes.ship import code as ship_words
from warpladder.dashboard.views.sizes.ship import query as ships
from warpladder.data import store
from warpladder.data.names import Ceiling
from warpladder.data.store import to_json

pytestmark = pytest.mark.slow

__all__ = ["open_app"]
COLD = Timing("device", "cold")
SIZES = (100, 400, 1600)
#: 1 GFLOP takes 20 us at 50 TFLOP/s.
FLOPS = 10**9
HONEST: Mapping[str, Sequence[float]] = {"v01_a": (200.0,), "v02_b": (100.0,), "v03_c": (150.0,)}
#: 1.2 us is 1,667 % of the floor of arithmetic.
CHEAT: Mapping[str, Sequence[float]] = {**HONEST, "v09_x": (1.2,)}
LINE = "v09_x is faster (1.20 µs) but distrusted: above_ceiling"
#: In eight rounds the ratio is 0.9 or 1.3 in turn, so that its interval holds 1.
TIED: Mapping[str, Sequence[float]] = {"eager": (100.0,), "into": (90.0, 90.0, 90.0, 111.0, 77.0, 100.0, 101.0, 85.0)}


def write(
    folder: Path,
    times: Mapping[str, Sequence[float]],
    *,
    rounds: int = 8,
    flops: int = FLOPS,
    flagged: Sequence[str] = (),
    name: str = "run",
) -> Path:
    """A run whose variants take their times in µs in turn, at each size; the first one is the baseline and has a second copy.

    Args:
        times: by variant, or by variant and config as in `v09_x[skip=1]`.
    """
    samples, results = [], []
    for size in SIZES:
        for place, (entry, durations) in enumerate(times.items()):
            variant, _, config = entry.rstrip("]").partition("[")
            cell = {"workload": "sum", "variant": variant, "config": config, "case": f"n={size}"}
            results.append(row("results", **cell, status="ok", tolerance=1e-6, rel_l2_error=1e-7))
            for copy in range(2 if place == 0 else 1):
                samples += [
                    row("samples", **cell, gpus=1, cache="cold", scope="device", twin=copy, round=number,
                        duration_ns=round(1000 * durations[number % len(durations)]))
                    for number in range(rounds)
                ]  # fmt: skip
    tables = {
        "ceilings": [
            {"name": ceiling, "device": "cuda:0", "value": value, "unit": unit, "method": "invented for tests"}
            for ceiling, value, unit in ((Ceiling.DEVICE_COPY, 4000.0, "GB/s"), (Ceiling.FP32_FMA, 50.0, "TFLOP/s"))
        ],
        "variants": [
            row("variants", workload="sum", variant=variant, rung=place, precision="fp32", kind="cuda", role="rung")
            for place, variant in enumerate(dict.fromkeys(entry.partition("[")[0] for entry in times), start=1)
        ],
        "cases": [
            row("cases", workload="sum", case=f"n={size}", size_rank=rank, params=to_json({"n": size}), flops=flops, min_bytes=1000)
            for rank, size in enumerate(SIZES)
        ],
        "results": results,
        "samples": samples,
        "diagnostics": [
            {"severity": "warning", "source": "waits_inside", "text": "waits", "workload": "sum", "variant": each, "config": None,
             "case": None}
            for each in flagged
        ],
    }  # fmt: skip
    return write_tables(folder, run_row(name, name), tables)


def opened(folder: Path, times: Mapping[str, Sequence[float]], **options: Any) -> RunData:
    return load(store.open_run(write(folder, times, **options)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cheat")
    write(folder, CHEAT)
    return folder


@pytest.fixture(scope="module")
def cheat(folder: Path) -> RunData:
    return load(store.open_run(folder / "run"))


# -- a cell beyond its floor ---------------------------------------------------------------------------------------------------


def test_a_cell_beyond_the_floor_of_arithmetic_is_flagged_in_a_run_that_was_recorded_without_the_check(cheat: RunData) -> None:
    flags = cells(cheat).set_index(["variant", "case"])["flags"]
    assert flags["v09_x", "n=400"] == ("above_ceiling",)
    assert flags.drop("v09_x").map(len).sum() == 0


def test_the_terminal_names_the_best_trusted_rung_and_the_faster_one_that_it_passed_over(cheat: RunData) -> None:
    rows = summary.figures(cheat)
    assert (rows["best"].tolist(), rows["speedup"].tolist()) == (["v02_b"], [2.0])
    told = summary.render(rows, "table")
    assert LINE in told and "v09_x" not in told.replace(LINE, "")
    assert json.loads(summary.render(rows, "json"))[0]["distrust"].startswith(LINE)


@pytest.mark.thorough
def test_the_overview_names_the_same(cheat: RunData, open_app: Open, folder: Path) -> None:
    (line,) = overviews.lines(cheat)
    assert line.variant == "v02_b" and max(line.by_size) == pytest.approx(20)
    app = open_app(folder)
    assert LINE in words(app)
    assert rows(app)["Best rung"].tolist() == ["v02_b"]


@pytest.mark.thorough
def test_the_headline_of_the_ladder_names_the_same_and_shows_the_source_of_the_best(
    cheat: RunData, open_app: Open, folder: Path
) -> None:
    chart = ladder_chart.ladder(ladders.ladder(cheat, "sum", "n=400", COLD), look(cheat))
    assert chart.title == "sum, n=400: v02_b reaches 20.0 % of the compute floor, 2.00× v01_a"
    assert f"{LINE}." in chart.note
    assert "v09_x ⚠" in chart.figure.layout.yaxis.ticktext
    app = open_app(folder, "ladder", case="n=400")
    assert app.selectbox(key="choose variant").value == "v02_b"


def test_a_gain_over_or_of_a_distrusted_rung_is_unknown(cheat: RunData) -> None:
    frame = ladders.ladder(cheat, "sum", "n=400", COLD).set_index("variant")
    assert frame["gain_verdict"].to_dict() == {"v01_a": "", "v02_b": "faster", "v03_c": "slower", "v09_x": "unknown"}


def test_no_size_is_won_by_it(cheat: RunData) -> None:
    found = winners.best_per_size(cheat, "sum", COLD)
    assert found[["variant", "runner_up"]].to_numpy().tolist() == [["v02_b", "v03_c"]] * 3
    strip = sizes_chart.best_strip(found, look(cheat), "sum", "device time", winners.undecided(cheat, "sum", COLD))
    assert strip.title == "sum: fastest is v02_b in 3 of 3 cases" and f"n=100: {LINE}." in strip.note
    frame, regions = sizes.sizes(cheat, "sum", COLD), sizes.regions(cheat, "sum")
    for metric in ("median_ns", "speedup", "percent_of_floor"):
        chart = sizes_chart.over_size(frame, regions, look(cheat), metric)  # type: ignore[arg-type]
        assert "first is v02_b" in chart.title and LINE in chart.note


def test_it_is_neither_shipped_nor_in_the_code_that_dispatches(cheat: RunData) -> None:
    found = ships.contest(cheat, "sum", COLD, "fp32")
    assert "v09_x" not in found.variants
    shipped = ships.recommended(ships.shipments(found))
    assert ship_words.answer(found, shipped) == "Ship v02_b: the fastest over 3 cases."
    assert f"n=100: {LINE}" in ship_words.doubts(found)
    assert LINE in ship_chart.losses(found, shipped, look(cheat)).note
    chosen = dispatch.dispatch(cheat, found, ("v02_b", "v09_x"))
    assert set(chosen.chosen.values()) == {("v02_b", "")}
    python = code.write(chosen, found, cheat, "Python")
    scope: dict[str, Any] = {}
    exec(compile(python, "dispatch", "exec"), scope)
    assert {scope["choose_sum"](size) for size in (1, 100, 400, 10_000)} == {"v02_b"}
    assert '"v09_x"' not in code.write(chosen, found, cheat, "C++")
    assert f"// Not chosen: n=100: {LINE.replace('µ', '?')}" in code.write(chosen, found, cheat, "C++")
    assert "v09_x" not in code.write(chosen, found, cheat, "JSON")


def test_the_table_of_a_run_says_that_its_verdict_is_unknown(folder: Path) -> None:
    table = Run(store.open_run(folder / "run")).table().set_index(["variant", "case"])
    assert table.loc[("v09_x", "n=400"), ["verdict", "flags"]].tolist() == ["unknown", "above_ceiling"]
    assert table.loc[("v02_b", "n=400"), "verdict"] == "faster"
    told = Run(store.open_run(folder / "run")).table().words()
    assert told.loc[told["variant"] == "v09_x", "over the baseline"].tolist() == ["unknown"] * 3


@pytest.mark.thorough
def test_the_report_in_one_file_names_it_only_as_passed_over(cheat: RunData) -> None:
    charts = list(charts_of(cheat))
    page = report.report(cheat, summary.figures(cheat), charts)
    assert LINE in page
    titles = [chart.title for chart in charts]
    assert titles and not any("v09_x" in title for title in titles), titles


def test_it_is_not_nearest_to_its_roof(cheat: RunData) -> None:
    frame = rooflines.points(cheat, "sum", COLD)
    chart = roofline_chart.roofline(frame[frame["case"] == "n=400"], rooflines.roofs(cheat), look(cheat))
    assert "v02_b is nearest to its roof" in chart.title
    assert "v09_x at n=400 is nearer (1,670 %) but distrusted: above_ceiling." in chart.note


@pytest.mark.thorough
def test_where_nothing_may_be_called_best_there_is_no_winner_and_a_line_says_why(tmp_path: Path) -> None:
    data = opened(tmp_path, {"v01_a": (2.0,), "v09_x": (1.2,)})
    words = "no winner: v09_x (1.20 µs) is distrusted: above_ceiling; 1 more like it"
    (told,) = summary.texts(summary.figures(data))
    assert told[3:] == ("–", "–", "–", "–", "–", f"{words}; 6 cells flagged: above_ceiling")
    assert ladder_chart.ladder(ladders.ladder(data, "sum", "n=400", COLD), look(data)).title == f"sum, n=400: {words}"
    assert winners.best_per_size(data, "sum", COLD).empty
    assert winners.undecided(data, "sum", COLD)["case"].tolist() == ["n=100", "n=400", "n=1600"]
    frame = sizes.sizes(data, "sum", COLD)
    assert words in sizes_chart.over_size(frame, sizes.regions(data, "sum"), look(data)).title
    found = ships.contest(data, "sum", COLD, "fp32")
    assert ships.shipments(found) == () and found.doubts["n=100"] == words
    assert (
        "no variant may be called nearest"
        in roofline_chart.roofline(rooflines.points(data, "sum", COLD), rooflines.roofs(data), look(data)).title
    )
    told = [chart.title.replace(words, "") for chart in charts_of(data)]
    assert not any("v09_x" in title for title in told if "no size may be called nearest" not in title), told


def test_another_config_of_the_same_variant_may_win(tmp_path: Path) -> None:
    data = opened(tmp_path, {**HONEST, "v09_x[skip=1]": (1.2,), "v09_x[skip=0]": (50.0,)})
    (first, *_) = records(winners.best_per_size(data, "sum", COLD))
    assert (first.variant, first.config) == ("v09_x", "skip=0")
    assert first.passed.startswith("v09_x[skip=1] is faster (")


def test_a_distrusted_baseline_gives_no_headline_ratio(tmp_path: Path) -> None:
    data = opened(tmp_path, HONEST, flagged=["v01_a"])
    (line,) = summary.figures(data).to_dict("records")
    assert (line["best"], line["speedup_verdict"]) == ("v02_b", "unknown") and line["speedup"] != line["speedup"]
    assert line["distrust"].startswith("no speedup: the baseline v01_a is distrusted: waits_inside")
    title = ladder_chart.ladder(ladders.ladder(data, "sum", "n=400", COLD), look(data)).title
    assert title == "sum, n=400: v02_b reaches 20.0 % of the compute floor"
    chart = sizes_chart.over_size(sizes.sizes(data, "sum", COLD), sizes.regions(data, "sum"), look(data), "speedup")
    assert "×" not in chart.title
    told = Run(store.open_run(tmp_path / "run")).table()
    assert set(told["verdict"]) == {"unknown"} and told["speedup"].isna().all()


@pytest.mark.thorough
def test_every_page_names_the_reason_where_the_baseline_is_distrusted_also_where_it_is_not_selected(tmp_path: Path) -> None:
    why = "o speedup: the baseline v01_a is distrusted: waits_inside"
    whole = opened(tmp_path, HONEST, flagged=["v01_a"])
    for data in (whole, select(whole, variants=["v02*", "v03*"])):
        charts = [
            ladder_chart.ladder(ladders.ladder(data, "sum", "n=400", COLD), look(data)),
            sizes_chart.over_size(sizes.sizes(data, "sum", COLD), sizes.regions(data, "sum"), look(data)),
        ]
        assert all(why in chart.note and "×" not in chart.title for chart in charts)


@pytest.mark.thorough
def test_speedups_are_over_the_fastest_config_of_the_baseline_in_every_place(tmp_path: Path) -> None:
    """The config that is sampled twice takes 200 µs, and the fastest 160 µs."""
    times = {"v01_a[block=16]": (200.0,), "v01_a[block=32]": (160.0,), "v02_b": (100.0,)}
    whole = opened(tmp_path, times)
    for data in (whole, select(whole, variants=["v02*"])):
        (line,) = summary.figures(data).to_dict("records")
        assert (line["baseline"], line["baseline_config"], line["speedup"]) == ("v01_a", "block=32", pytest.approx(1.6))
        for frame in (ladders.ladder(data, "sum", "n=400", COLD), sizes.sizes(data, "sum", COLD)):
            assert set(frame["baseline_config"]) == {"block=32"}
            of_b = frame.loc[(frame["variant"] == "v02_b") & (frame["case"] == "n=400"), "speedup"]
            assert of_b.tolist() == [pytest.approx(1.6)]
        assert "1.60× v01_a" in ladder_chart.ladder(ladders.ladder(data, "sum", "n=400", COLD), look(data)).title
    table = Run(store.open_run(tmp_path / "run")).table().set_index(["variant", "config"])
    assert table.loc[[("v02_b", "")], "speedup"].tolist() == [pytest.approx(1.6)] * 3
    assert set(table.loc[[("v01_a", "block=32")], "speedup"]) == {1.0}
    last = replace(whole, variants=whole.variants[whole.variants["variant"] == "v01_a"])
    assert "1.60× v01_a" in compare.brief(Comparison((), (), (), (), ()), last, whole)


def test_where_no_variant_wins_two_sizes_the_title_of_the_strip_tells_how_many_do(cheat: RunData) -> None:
    frame = winners.best_per_size(cheat, "sum", COLD).assign(variant=["v01_a", "v02_b", "v03_c"])
    assert sizes_chart._strip_title(frame, look(cheat), "sum") == "sum: fastest is no variant in more than 1 of 3 cases"
    two = frame.assign(verdict=["faster", "tied", "faster"])
    assert sizes_chart._strip_title(two, look(cheat), "sum") == "sum: fastest is no variant in more than 1 of 3 cases, 1 tied"
    won = two.assign(variant="v01_a")
    assert sizes_chart._strip_title(won, look(cheat), "sum") == "sum: fastest is v01_a in 2 of 3 cases, 1 tied"
    one = frame.head(1).assign(verdict="tied")
    assert sizes_chart._strip_title(one, look(cheat), "sum") == "sum: fastest is v01_a in 1 of 1 case, tied with the next one"


# -- a tie ---------------------------------------------------------------------------------------------------------------------


def test_a_tie_is_no_win_in_the_terminal_on_the_pages_and_in_tables(tmp_path: Path) -> None:
    data = opened(tmp_path, TIED, flops=0)
    (line,) = summary.figures(data).to_dict("records")
    assert (line["best"], line["tied_with"], line["speedup_verdict"]) == ("into", "eager", "tied")
    told = summary.render(summary.figures(data), "table")
    assert "into, tied with eager" in told and "tied with eager (0.9" in told and "1.11× eager" not in told
    title = ladder_chart.ladder(ladders.ladder(data, "sum", "n=400", COLD), look(data)).title
    assert title.endswith("tied with eager") and "×" not in title
    found = winners.best_per_size(data, "sum", COLD)
    assert found["verdict"].tolist() == ["tied"] * 3
    assert (
        sizes_chart.best_strip(found, look(data), "sum", "", found.head(0)).title
        == "sum: fastest is into in 3 of 3 cases, tied with the next one in each"
    )
    chart = sizes_chart.over_size(sizes.sizes(data, "sum", COLD), sizes.regions(data, "sum"), look(data), "speedup")
    assert "first is into, tied with eager" in chart.title and "×" not in chart.title
    table = Run(store.open_run(tmp_path / "run")).table()
    assert set(table.loc[table["variant"] == "into", "verdict"]) == {"tied"}
    standing = ships.standings(ships.contest(data, "sum", COLD, "fp32"))
    assert [(each.wins, each.first - each.wins) for each in standing] == [(0, 3), (0, 3)]


# -- fewer than six samples ----------------------------------------------------------------------------------------------------


def test_below_six_samples_nothing_is_faster_than_anything(tmp_path: Path) -> None:
    data = opened(tmp_path, HONEST, rounds=5)
    assert {each.verdict for each in speedups(data, "sum", "n=400", COLD, Baseline("v01_a", "", 1, "")).values()} == {"unknown"}
    words = "no winner: v02_b (100 µs) is of only 5 samples; 2 more like it"
    (told,) = summary.texts(summary.figures(data))
    assert told[3] == "–" and told[-1] == words
    assert ladder_chart.ladder(ladders.ladder(data, "sum", "n=400", COLD), look(data)).title == f"sum, n=400: {words}"
    assert winners.best_per_size(data, "sum", COLD).empty
    run = Run(store.open_run(tmp_path / "run"))
    assert set(run.table()["verdict"]) == {"unknown"}
    words_of = run.table().words()
    assert set(words_of["over the baseline"]) == {"unknown", "the baseline itself"}
    assert ships.shipments(ships.contest(data, "sum", COLD, "fp32")) == ()


def test_six_samples_decide(tmp_path: Path) -> None:
    data = opened(tmp_path, HONEST, rounds=6)
    assert [each.verdict for each in speedups(data, "sum", "n=400", COLD, Baseline("v01_a", "", 1, "")).values()] == [
        "tied",
        "faster",
        "faster",
    ]
    assert summary.figures(data)["best"].tolist() == ["v02_b"]


@pytest.mark.parametrize("count", [30, 31])
def test_tiles_of_many_sizes_have_a_legend_in_place_of_words(cheat: RunData, count: int) -> None:
    found = winners.best_per_size(cheat, "sum", COLD).head(1)
    many = pd.concat([found.assign(size=f"n={n}", variant=f"v0{n % 2}") for n in range(count)], ignore_index=True)
    strip = sizes_chart.best_strip(many, look(cheat), "sum", "device time", found.head(0))
    figure, is_long = strip.figure, count > 30
    assert len(figure.layout.annotations) == (0 if is_long else count)
    assert [trace.name for trace in figure.data[1:]] == (["v00", "v01"] if is_long else [])
    assert ("Each tile has the colour of the fastest variant" in strip.note) == is_long


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_two_winners_of_the_tiles_share_a_colour(theme: Theme) -> None:
    """The names torch_compile and v12_flat_rows have one colour."""
    data = load(store.open_run(store.RECORDED / "20261127T083255Z-h200-mlp-elementwise-c6cf"))
    found = winners.best_per_size(data, "mlp_elementwise", Timing("device", "cold"))[-2:]
    both = found.assign(variant=["v12_flat_rows", "torch_compile"])
    strip = sizes_chart.best_strip(both, look(data, theme), "mlp_elementwise", "device time", both.head(0))
    colors = {color for _, color in strip.figure.data[0].colorscale}
    assert len(colors) == 2
