"""Trends over runs in time: steps with what changed at them, the noise between the runs, and the page."""

import math
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs
from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.dashboard.compare.levels import Levels, Medians, TimedCell, medians
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.ui import runs as runs_of_pages
from warpladder.dashboard.ui.template import Look
from warpladder.dashboard.views.compare.trends import chart
from warpladder.dashboard.views.compare.trends.query import (
    RecordedRun,
    Series,
    Trends,
    cause,
    change_words,
    sentence,
    trends,
)
from warpladder.data import store

__all__ = ["open_app"]


COLD = Timing("device", "cold")
START = datetime(2026, 3, 1, tzinfo=UTC)
OTHERS = [f"v{number:02}_same" for number in range(1, 11)]
MINE = "v11_mine"
#: Sources that every run has in common.
SAME = {name: name for name in (*OTHERS, MINE)}


def cell(variant: str, case: str = "n=1") -> TimedCell:
    return TimedCell(case, COLD.scope, COLD.cache, variant, "", 1)


def recorded(
    number: int,
    times: Mapping[str, float],
    sources: Mapping[str, str] = SAME,
    failed: Mapping[str, str] | None = None,
    **info: Any,
) -> RecordedRun:
    """A run of these medians in nanoseconds, by variant, each with an interval of ±0.1 %.

    Args:
        failed: variant -> status, of those that are not right or not trusted.
    """
    about = {
        **run_row(f"r{number}", f"night {number}"),
        "kind": "recording",
        "started_at": START + timedelta(days=number),
        **info,
    }
    figures = np.array([[ns, 0.999 * ns, 1.001 * ns] for ns in times.values()]).reshape(-1, 3)
    error, freedom = np.full(len(times), 0.001 / 1.96), np.zeros(len(times))
    levels = Levels(np.log(figures[:, :1]), error, freedom, np.full(len(times), 20))
    measured = Medians(
        f"r{number}",
        tuple(map(cell, times)),
        levels,
        figures,
        dict(sources),
        {"n=1": (0, '{"n":1}')},
        about.pop("clock", 1980.0),
        {("n=1", name, ""): status for name, status in (failed or {}).items()},
    )
    return RecordedRun(f"r{number}", about, measured)


def nights(
    count: int = 20, *, sigma: float = 0.004, planted: int = 12, factor: float = 1.04, driver: int = 99
) -> list[RecordedRun]:
    """Runs that scatter by sigma; MINE has a new source and `factor` from `planted` on, and all times 3 % more from `driver` on."""
    random = np.random.default_rng(1)
    found = []
    for night in range(count):
        times = {name: 1e4 * np.exp(random.normal(0, sigma)) * (1.03 if night >= driver else 1.0) for name in SAME}
        times[MINE] *= factor if night >= planted else 1.0
        sources = {**SAME, MINE: "new" if night >= planted else "old"}
        versions = {"driver_version": "590" if night >= driver else "580", "git_commit": f"{night:07x}{0:033}"}
        found.append(recorded(night, times, sources, **versions))
    return found


def of(found: Trends, name: str = MINE) -> Series:
    return next(series for series in found.series if series.variant == name)


def asked(every: list[RecordedRun]) -> Trends:
    return trends(every, "w", "n=1", COLD)


def test_a_planted_step_is_found_with_its_size_and_the_new_source() -> None:
    found = asked(nights()[::-1])  # in any order
    (step,) = of(found).steps
    assert (step.place, step.new_source, step.runs) == (12, True, 8)
    assert step.ratio.low < 1.04 < step.ratio.high and step.ratio.high - step.ratio.low < 0.02
    assert cause(of(found), step).startswith("new source old → new; commit 000000b → 000000c")
    assert found.series[0].variant == MINE and not any(series.steps for series in found.series[1:])
    # 1.6 times Student's 2.1, and the square root of 2 standard deviations of 0.4 %
    assert of(found).noise == pytest.approx(1.019, abs=0.002)
    assert step.verdict == "slower"
    assert sentence(found).startswith(f"{MINE} became 4.0 % slower on 2026-03-13: new source old → new;")


def test_a_large_change_is_told_in_three_digits() -> None:
    ratios = (1.041, 0.961, 2.1, 1 / 1990.96)
    assert [*map(change_words, ratios)] == ["4.1 % slower", "3.9 % faster", "2.10× as slow", "1,990× as fast"]


def test_a_step_with_the_same_source_names_the_driver_and_outranks_older_ones() -> None:
    found = asked(nights(driver=17, sigma=0.002))
    stepped = [series for series in found.series if series.steps]
    assert len(stepped) == len(SAME)
    assert {series.steps[-1].new_source for series in stepped} == {False}
    assert [step.new_source for step in of(found).steps] == [True, False]
    told = sentence(found)
    assert told.startswith("11 of 11 variants became ") and "on 2026-03-18: same source; driver 580 → 590, commit" in told


def test_a_step_without_any_recorded_difference_says_so() -> None:
    every = [recorded(night, {MINE: 1e4 * (1.1 if night > 4 else 1.0)}) for night in range(10)]
    series = of(asked(every))
    assert cause(series, series.steps[0]) == "same source; no recorded fact changed"


def test_noise_alone_is_no_change_and_the_noise_is_as_large_as_the_runs_scatter() -> None:
    found = asked(nights(planted=99, sigma=0.03))
    assert not any(series.steps for series in found.series)
    assert of(found).noise == pytest.approx(1.153, abs=0.015)  # as above, of 3 %
    assert sentence(found) == "No variant of w changed by more than the noise over 20 runs."


def test_where_nothing_tells_the_noise_nothing_is_told() -> None:
    found = asked([recorded(night, {MINE: by * 1e4}) for night, by in enumerate((1, 1, 2))])
    (series,) = found.series
    assert math.isnan(series.noise) and not series.steps and {each.verdict for each in series.judged} == {"unknown"}
    assert sentence(found).startswith("Too little is known to tell changes of w over 3 runs: ")
    drawn = chart.trend(found, series, Look("light", {}, "GPU", True))
    assert "How far two runs without a change differ is not known" in drawn.note
    assert drawn.title.endswith("too little is known to tell a change over 3 runs")
    assert chart.frame_of(found)["cause"].tolist() == ["unknown"]


def test_a_variant_that_scatters_more_than_the_others_has_its_own_noise() -> None:
    random = np.random.default_rng(2)
    every = [
        recorded(night, {**{name: 1e4 + random.normal(0, 10) for name in OTHERS}, MINE: 1e4 * np.exp(random.normal(0, 0.05))})
        for night in range(30)
    ]
    found = asked(every)
    assert not of(found).steps and of(found).noise > 1.1 > 1.05 > of(found, OTHERS[0]).noise


def test_runs_without_the_cell_are_skipped_and_the_newest_run_alone_is_told_with_a_doubt() -> None:
    every = nights(planted=99)
    every[5] = recorded(5, dict.fromkeys(OTHERS, 10000.0))
    every[19].medians.levels.logs[-1] += np.log(1.2)
    found = asked([*every, recorded(25, {})])
    series = of(found)
    assert len(found.runs) == 20 and [point.run for point in series.points] == [*range(5), *range(6, 20)]
    assert (series.steps[0].place, series.steps[0].runs) == (18, 1)
    told = sentence(found)
    assert told.startswith(f"{MINE} became ") and " % slower on 2026-03-20, by one run so far: same source; commit" in told


@pytest.mark.slow
def test_a_wrong_result_is_no_improvement_and_comes_first() -> None:
    """MINE becomes 40 % faster at run 6; the two newest runs say that it is wrong, or that its work was not done."""
    every = []
    for night in range(10):
        times = {name: 1e4 * (0.6 if name == MINE and night >= 6 else 1.0) for name in SAME}
        failed = {}
        if night == 8:
            failed, times = {MINE: "wrong_result"}, {name: ns for name, ns in times.items() if name != MINE}
        elif night == 9:
            failed = {MINE: "distrusted"}
        every.append(recorded(night, times, failed=failed))
    assert sentence(asked(every[:8])).startswith(f"{MINE} became 40.0 % faster")
    found = asked(every)
    assert found.series[0].variant == MINE and [point.run for point in of(found).points] == list(range(8))
    ended = f"{MINE} ended with wrong_result or distrusted in the 2 newest runs"
    assert sentence(found) == f"{ended}. No variant of w changed by more than the noise over 10 runs."
    (row,) = chart.frame_of(found).query("variant == @MINE").to_dict("records")
    assert (
        math.isnan(row["step"]) and row["cause"] == ended.removeprefix(f"{MINE} ") and row["when"] == found.runs[8].started_at
    )
    drawn = chart.trend(found, of(found), Look("light", {}, "GPU", True))
    assert drawn.title == ended and [each.x for each in drawn.figure.layout.annotations if each.text == "✗"] == [8, 9]
    right = recorded(10, dict.fromkeys(SAME, 10000.0))
    assert not sentence(asked([*every, right])).startswith(ended) and of(asked([*every, right])).failed


@pytest.mark.parametrize(("doubted", "words"), [(False, f"{MINE} became 40.0 % slower"), (True, "No variant of w changed")])
def test_a_throttled_run_is_no_step(doubted: bool, words: str) -> None:
    every = [recorded(night, {**dict.fromkeys(SAME, 10000.0), MINE: 1.4e4 if night == 9 else 1e4}) for night in range(10)]
    if doubted:
        throttled = replace(every[9].medians, doubts={("n=1", MINE, ""): frozenset({"throttling"})})
        every[9] = replace(every[9], medians=throttled)
    assert sentence(asked(every)).startswith(words)


def test_the_findings_about_a_cell_are_its_doubts_in_a_trend(tmp_path: Path) -> None:
    measured = medians(store.open_run(made_runs.write(tmp_path, "r", rounds=6, workloads=("conv2d",))), "conv2d")
    assert measured.doubts == {("n=8192", "v04_sliding", "rows=16"): frozenset({"throttling"})}
    assert "distrusted" not in measured.failed.values()


def test_a_variant_that_no_run_has_right_has_no_line() -> None:
    every = [recorded(night, dict.fromkeys(SAME, 10000.0), failed={MINE: "distrusted"}) for night in range(3)]
    assert {series.variant for series in asked(every).series} == set(OTHERS)


@pytest.mark.slow
def test_the_chart_marks_the_steps() -> None:
    found = asked(nights(driver=17, sigma=0.002))
    drawn = chart.trend(found, of(found), Look("light", {}, "GPU", True))
    assert [annotation.text for annotation in drawn.figure.layout.annotations] == [
        f"<b>{100 * (step.ratio.value - 1):+.1f} %</b>" for step in of(found).steps
    ]
    assert [shape.line.dash for shape in drawn.figure.layout.shapes] == ["solid", "dot"]
    assert len(drawn.data) == 20 and drawn.data["step"].notna().sum() == 2


def write(folder: Path, number: int, mine_ns: int, **info: Any) -> Path:
    """A run of two variants in one case, read as the pages read it."""
    of_w = {"workload": "w", "case": "n=1"}
    timed = [
        row(
            "samples",
            **of_w,
            variant=name,
            gpus=1,
            cache="cold",
            scope="device",
            twin=twin,
            round=place,
            duration_ns=ns + place,
        )
        for name, ns in (("v01_base", 9_000), (MINE, mine_ns), ("v02_wrong", 5))
        for twin in ((0, 1) if name == "v01_base" else (0,))
        for place in range(9)
    ]
    names = ("v01_base", MINE, "v02_wrong")
    tables = {
        "variants": [row("variants", workload="w", variant=name, role="rung", kind="cuda", precision="fp32") for name in names],
        "cases": [row("cases", **of_w, size_rank=0, params='{"n":1}')],
        "results": [
            row("results", **of_w, variant=name, status="wrong_result" if name == "v02_wrong" else "ok") for name in names
        ],
        "samples": timed,
    }
    about = {**run_row(f"r{number:02}", f"night {number}"), "kind": "recording", "started_at": START + timedelta(days=number)}
    return write_tables(folder, {**about, **info}, tables)


def test_the_medians_of_a_run_leave_out_the_twin_and_what_failed(tmp_path: Path) -> None:
    found = medians(store.open_run(write(tmp_path, 0, 8_000)), "w")
    assert {each.variant: place for place, each in enumerate(found.cells)}.keys() == {"v01_base", MINE}
    assert found.figures[found.cells.index(cell(MINE))].tolist() == [8_004, 8_001, 8_007]
    assert found.levels.n.tolist() == [9, 9] and np.exp(found.levels.log).tolist() == pytest.approx(
        found.figures[:, 0].tolist()
    )
    assert found.failed == {("n=1", "v02_wrong", ""): "wrong_result"}
    assert medians(store.open_run(tmp_path / "r00"), "another").cells == ()


def test_one_new_run_costs_one_read(tmp_path: Path) -> None:
    read: list[str] = []

    def reading(run: store.Run, workload: str) -> Medians:
        read.append(run.run_id)
        return medians(run, workload)

    every = [store.open_run(write(tmp_path, number, 8_000)) for number in range(3)]
    first = runs_of_pages.glance(every, reading, "w")
    every.append(store.open_run(write(tmp_path, 3, 8_000)))
    again = runs_of_pages.glance(every, reading, "w")
    assert sorted(read) == ["r00", "r01", "r02", "r03"] and again[:3] == first
    (tmp_path / "r01" / "samples.parquet").write_bytes(b"")
    broken = runs_of_pages.glance(every, reading, "w")
    assert [isinstance(each, store.StoreError) for each in broken] == [False, True, False, False] and len(read) == 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("trends")
    for number in range(8):
        write(made, number, 8_000 if number < 5 else 8_800, driver_version="580" if number < 5 else "590")
    write(made, 20, 8_000, device_name="another GPU", command="warpladder record w --seed 1")
    return made


@pytest.mark.slow
def test_the_page_names_the_last_step_and_leads_to_the_runs_beside_it(open_app: Open, folder: Path) -> None:
    page = open_app(folder, "trends", run="r07")
    said = words(page)
    assert f"{MINE} became 10.0 % slower on 2026-03-06: same source; driver 580 → 590." in said
    assert f"{MINE}: 10.0 % slower since 2026-03-06" in said
    links = [link.proto.query_string for link in page.main.get("page_link")]
    assert links == ["run=r05&with=r04&of=w"]
    assert page.main.dataframe[0].value["variant"].tolist() == [MINE, "v01_base"]
    assert "v01_base: no change beyond the noise over 8 runs" in words(open_app(folder, "trends", run="r07", series="v01_base"))
    assert "The link asks for gone" in words(open_app(folder, "trends", run="r07", series="gone"))


@pytest.mark.thorough
def test_the_case_of_the_address_stays_and_of_many_runs_the_newest_are_read(
    open_app: Open, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copied = shutil.copytree(folder, tmp_path / "copied")
    for name in ("samples", "results", "cases"):
        path = copied / "r07" / f"{name}.parquet"
        table = pq.read_table(path)
        place, renamed = table.column_names.index("case"), pa.array(["n=2"] * len(table), table.schema.field("case").type)
        table = table.set_column(place, table.schema.field("case"), renamed)
        if "params" in table.column_names:
            place = table.column_names.index("params")
            params = pa.array(['{"n":2}'] * len(table), table.schema.field("params").type)
            table = table.set_column(place, table.schema.field("params"), params)
        pq.write_table(table, path)
    monkeypatch.setattr("warpladder.dashboard.views.compare.trends.page._NEWEST", 4)
    alone = open_app(copied, "trends", **{"run": "r07", "workload": "w", "case.n": "2"})
    assert "by nsight_systems has w, n=2." in words(alone)
    page = open_app(copied, "trends", run="r06")
    assert "The newest 4 of 8 runs" in words(page)
    assert page.main.dataframe[0].value["runs"].tolist() == [3, 3], "r07 has another case"


def test_fewer_than_two_runs_say_what_to_do(open_app: Open, folder: Path) -> None:
    page = open_app(folder, "trends", run="r20")
    assert "Only one run on another GPU by nsight_systems has w, n=1. Record it again after your next change" in words(page)
    assert [block.value for block in page.main.code] == ["warpladder record w"]


@pytest.mark.slow
def test_a_damaged_run_is_left_out_and_named(open_app: Open, folder: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(folder, tmp_path / "copied")
    samples = copied / "r02" / "samples.parquet"
    content = bytearray(samples.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    samples.write_bytes(content)
    said = words(open_app(copied, "trends", run="r07"))
    assert f"{MINE} became 10.0 % slower" in said and "Runs that cannot be read are left out: r02." in said
