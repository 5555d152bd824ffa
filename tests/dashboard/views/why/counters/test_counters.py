"""What limits a variant, by counters counted by hand: queries, words, charts, the page and the export."""

from functools import cache
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.dashboard.pages import run_of
from tests.dashboard.test_app import PAGES, Open, open_app
from tests.dashboard.test_app import words as words_of
from tests.synthetic import made_runs, made_sweeps
from tests.synthetic.made_sweeps import CASE, MIN_BYTES, WORKLOAD, percents, stalls
from warpladder.dashboard.core import counted, counters, limits
from warpladder.dashboard.core.limits import limit_of
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.why.counters import chart as charts
from warpladder.dashboard.views.why.counters import query
from warpladder.dashboard.views.why.counters import query as queries
from warpladder.data import metrics, store

__all__ = ["open_app"]

pytestmark = pytest.mark.slow
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("counted")
    made_sweeps.write_counted(made)
    made_runs.write(made, "uncounted", rounds=8)
    (made_sweeps.write_counted(made, "counters alone") / "samples.parquet").unlink()
    return made


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "counted"))


@cache
def by_config(data: RunData) -> pd.DataFrame:
    return counters.by_config(data, WORKLOAD, CASE)


@cache
def best(data: RunData) -> pd.DataFrame:
    return counted.best(data, WORKLOAD, CASE, counted.times(data, WORKLOAD, CASE))


def of(data: RunData, variant: str, config: str = "") -> dict[str, object]:
    frame = by_config(data)
    return frame[(frame["variant"] == variant) & (frame["config"] == config)].to_dict("records")[0]


def one(tmp_path: Path, values: dict[str, float]) -> dict[str, object]:
    """The row of a variant that has these counters."""
    path = made_sweeps.write_counted(tmp_path, "one", {("v01_simple", ""): [("k", values)]})
    return of(load(store.open_run(path)), "v01_simple")


@pytest.mark.thorough
def test_variants_stand_in_the_order_of_the_ladder_with_every_config(data: RunData) -> None:
    frame = counters.by_config(data, WORKLOAD, CASE)
    assert list(zip(frame["variant"], frame["config"], strict=True)) == [
        ("copy", ""), ("v01_simple", ""), ("v03_shared", ""), ("v04_padded", "tile=16"), ("v04_padded", "tile=32"),
        ("v05_swizzled", ""),
    ]  # fmt: skip
    assert list(best(data)["config"]) == ["", "", "", "tile=32", ""], "310 µs is less than 380 µs"


def test_one_launch_of_each_kind_counts_for_all_that_are_alike(tmp_path: Path) -> None:
    values = [{metrics.TIME: time, metrics.INSTRUCTIONS: 10.0 * time, metrics.DRAM: time} for time in (100.0, 40.0)]
    path = made_sweeps.write_counted(tmp_path, "one", {("v01_simple", ""): [("a", values[0]), ("b", values[1])]})
    cell = {"workload": WORKLOAD, "variant": "v01_simple", "config": "", "case": CASE}
    sizes = {f"{what}_{axis}": 1 for what in ("grid", "block") for axis in "xyz"}
    launch = {**cell, "code": None, **sizes, "dynamic_shared_bytes": 0}
    alike = [{**launch, "launch_index": 0, "kernel": "a", "count": 3}, {**launch, "launch_index": 1, "kernel": "b", "count": 1}]
    made_sweeps.add(path, "cell_launches", alike)
    row = of(load(store.open_run(path)), "v01_simple")
    assert (row["launches"], row["time_ns"], row["instructions"]) == (4, 340.0, 3400.0)
    assert row["dram_percent"] == pytest.approx((300 * 100 + 40 * 40) / 340)


def test_of_many_variants_those_of_most_time_are_drawn_and_that_is_said(data: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MOST_VARIANTS", 2)
    assert list(queries.most_time(best(data))["variant"]) == ["v01_simple", "v03_shared"], "900 and 400 µs"
    assert query.how_counted(data, 2, 5).endswith("The 2 variants with the most time are drawn, out of 5.")
    assert "drawn" not in query.how_counted(data, 5, 5)


def test_launches_of_one_execution_are_weighted_by_their_time_and_their_bytes_added_up(data: RunData) -> None:
    row = of(data, "v05_swizzled")
    assert row["time_ns"] == 280_000
    assert row["dram_percent"] == pytest.approx((100 * 210 + 60 * 70) / 280) == pytest.approx(90)
    assert row["dram_bytes"] == 1.25 * MIN_BYTES
    assert row["dram_over_min"] == 1.25
    assert (row["launches"], row["kernels"]) == (2, ("split", "join"))


def test_launches_without_a_time_count_alike(tmp_path: Path) -> None:
    cells = {("v01_simple", ""): [("a", {metrics.DRAM: 10.0}), ("b", {metrics.DRAM: 30.0, metrics.TIME: 5.0})]}
    row = of(load(store.open_run(made_sweeps.write_counted(tmp_path, "untimed", cells))), "v01_simple")
    assert row["dram_percent"] == 20


def test_what_is_shared_by_requests_and_wavefronts(data: RunData) -> None:
    simple, shared = of(data, "v01_simple"), of(data, "v03_shared")
    assert simple["load_sectors_per_request"] == 32
    assert simple["store_sectors_per_request"] == 4
    assert shared["store_conflict_share"] == 500 / 2000
    assert shared["load_conflict_share"] == 0


def test_the_limiter_is_the_resource_that_allows_the_fewest_blocks(data: RunData) -> None:
    assert of(data, "v03_shared")["limiter"] == "registers"
    assert of(data, "v01_simple")["limiter"] == "", "its theoretical occupancy is 100 %"


def test_operations_count_a_multiply_add_as_two(tmp_path: Path) -> None:
    counts = {"fadd": 10.0, "fmul": 20.0, "ffma": 100.0, "dadd": 0.0, "dmul": 0.0, "dfma": 5.0}
    values = {metrics.operation_metric(name): count for name, count in counts.items()}
    row = one(tmp_path, {**values, metrics.TIME: 120.0, metrics.DRAM_READ: 100.0, metrics.DRAM_WRITE: 20.0})
    assert (row["fp32_flop"], row["fp64_flop"]) == (230, 10)
    assert row["gflop_per_s"] == 2
    assert row["flop_per_byte"] == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("compute", "l2", "kind", "name"),
    [
        (79.9, 80, "unit", "L2"), (80, 79.9, "unit", "multiprocessors"), (60, 20, "short", "multiprocessors"), (20, 79.9, "short", "L2"),
        (59.9, 58, "latency", "multiprocessors"),
    ],
)  # fmt: skip
def test_what_binds_follows_the_named_limits(tmp_path: Path, compute: float, l2: float, kind: str, name: str) -> None:
    found = limit_of(one(tmp_path, percents(compute, 99, 10, l2, 10)))
    assert (found.kind, found.name) == (kind, name)


def units(**shares: float) -> dict[str, float]:
    """The shares of single units, those not named 1 %."""
    return {unit.metric: shares.get(unit.name.replace(" ", "_"), 1.0) for unit in limits.UNITS}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("shares", "name", "percent"),
    [
        ({"DRAM": 72.1, "L2": 87.8}, "L2", 87.8),
        ({"DRAM": 79.0, "L2": 79.9}, "DRAM", 79.0),
        ({"DRAM": 79.0, "L2": 85.0}, "L2", 85.0),
        ({"L1": 97.0, "shared_memory": 96.0}, "shared memory", 96.0),
        ({"L1": 97.0, "shared_memory": 40.0}, "L1", 97.0),
        ({"issue_slots": 96.6, "FMA": 93.9}, "FMA", 93.9),
        ({"issue_slots": 92.4, "ALU": 75.5}, "issue slots", 92.4),
        ({"tensor_cores": 88.0, "issue_slots": 30.0}, "tensor cores", 88.0),
    ],
)
def test_the_unit_that_is_named_has_its_own_figure(tmp_path: Path, shares: dict[str, float], name: str, percent: float) -> None:
    found = limit_of(one(tmp_path, {**percents(20, 95, 5, 5, 5), **units(**shares)}))
    assert (found.name, found.percent) == (name, percent)


def test_a_variant_at_its_floor_is_so_whatever_its_counters_are(tmp_path: Path) -> None:
    row = {**one(tmp_path, units(L2=87.8)), "percent_of_floor": 101.0}
    assert counted.limit_clause(row) == "is at its floor: at 101 % of it, as timed"
    assert counted.limit_words(row) == "at its floor"
    assert counted.limit({**row, "percent_of_floor": 94.9}).kind == "unit"


def test_bank_conflicts_stand_beside_shared_memory(tmp_path: Path) -> None:
    conflicts = {metrics.SHARED_WAVEFRONTS: 4000.0, metrics.LOAD_CONFLICTS: 0.0, metrics.STORE_CONFLICTS: 3800.0}
    row = one(tmp_path, {**units(shared_memory=96.0, L1=96.0), **conflicts})
    assert counted.limit_clause(row) == (
        "runs at 96.0 % of the peak of shared memory: bound by shared memory; bank conflicts make 95.0 % of its passes"
    )


def test_the_reason_named_is_the_longest_wait_and_never_that_it_issues(tmp_path: Path) -> None:
    row = one(tmp_path, {**percents(10, 20, 5, 5, 5), **stalls(selected=1, not_selected=9, barrier=4, wait=6)})
    assert (row["top_stall"], row["top_stall_percent"]) == ("wait", 30)


def test_limits_in_words(data: RunData, tmp_path: Path) -> None:
    frame = best(data)
    said = {row["variant"]: counted.limit_clause(row) for row in frame.to_dict("records")}
    assert said["v05_swizzled"] == "is at its floor: at 96.3 % of it, as timed"
    assert said["v04_padded"] == "runs at 86.0 % of the peak of multiprocessors: bound by multiprocessors"
    assert said["v01_simple"] == (
        "keeps no unit busy, DRAM the most with 40.0 % of its peak: latency-bound; 80.0 % of its time a warp waits for global, local or "
        "texture memory"
    )
    assert said["v03_shared"].startswith(
        "runs at 71.0 % of the peak of L1 and shared memory, short of a limit; 45.0 % of its time"
    )
    few = one(tmp_path, {**percents(1, 2, 2, 2, 1), metrics.WAVES: 0.24})
    assert "its 0.240 waves do not fill the device" in counted.limit_clause(few)
    assert (
        counted.limit_clause(one(tmp_path / "other", {metrics.TIME: 1.0})) == "was not measured against the peaks of the device"
    )


def test_the_answer_leaves_ceilings_out(data: RunData) -> None:
    frame = best(data)
    assert counted.answer(frame) == (
        "v05_swizzled, the fastest, is at its floor: at 96.3 % of it, as timed. "
        "The others: 1 bound by a unit, 1 latency-bound, 1 short of a limit."
    )


def test_the_fastest_is_that_of_the_samples_and_not_of_one_profiled_execution(data: RunData, folder: Path) -> None:
    """Profiled, v05_swizzled takes 280 µs and v04_padded 310 and 380 µs; v03_shared has another source than where it was timed."""
    sources = dict(data.variants[["variant", "source_sha256"]].itertuples(index=False, name=None))
    times = {("v05_swizzled", ""): 300.0, ("v04_padded", "tile=16"): 200.0, ("v04_padded", "tile=32"): 250.0}
    rows = [(*cell, sources[cell[0]], ns, 50.0) for cell, ns in times.items()] + [("v03_shared", "", "another", 1.0, 50.0)]
    columns = ["variant", "config", "source_sha256", "timed_ns", "percent_of_floor"]
    frame = counted.best(data, WORKLOAD, CASE, pd.DataFrame(rows, columns=columns))
    assert frame.set_index("variant")["config"]["v04_padded"] == "tile=16"
    assert counted.answer(frame).startswith("v04_padded, the fastest, ")
    faster = pd.DataFrame([*rows, ("v09_uncounted", "", "its own", 100.0, 50.0)], columns=columns)
    assert counted.answer(counted.best(data, WORKLOAD, CASE, faster)).startswith("v04_padded, the fastest with counters, ")
    assert query.where_timed(frame, "“X”") == " The fastest and its config by the samples of “X”."
    assert query.where_timed(best(data), "").endswith("by the samples of this run.")
    untimed = best(load(store.open_run(folder / "counters alone")))
    assert counted.answer(untimed).startswith("v05_swizzled, with the least time under the profiler, ")
    assert query.where_timed(untimed, "") == ""


def test_stalls_are_shares_of_a_warps_time(data: RunData) -> None:
    frame = queries.stalls(best(data))
    simple = frame[frame["variant"] == "v01_simple"].set_index("reason")
    assert simple["cycles"].sum() == 50
    assert simple.loc["lg_throttle", "percent"] == 12
    assert list(simple.index[-2:]) == ["selected", "not_selected"]
    assert "v05_swizzled" not in set(frame["variant"]), "its stalls were not counted"


def test_a_run_without_counters_has_none(folder: Path) -> None:
    uncounted = load(store.open_run(folder / "uncounted"))
    assert counters.counted_workloads(uncounted) == ()
    assert counters.counted_cases(uncounted, WORKLOAD) == ()


def test_charts_show_each_variant_and_the_limits(data: RunData) -> None:
    frame = best(data)
    chart = charts.speed_of_light(frame, look(data), WORKLOAD, CASE, query.how_counted(data))
    assert [list(bars.x) for bars in chart.figure.data] == [
        [20, 12, 30, 86, 20], [93, 45, 72, 41, 90], [93, 40, 55, 31, 90],
    ]  # fmt: skip
    assert sorted({line.x0 for line in chart.figure.layout.shapes}) == [60, 80]
    assert "at its floor" in [note.text for note in chart.figure.layout.annotations]
    assert "n=512,perm=210" in chart.note and "flushes the caches" in chart.note and "weighted by time" in chart.note
    traffic = charts.traffic(frame, look(data), WORKLOAD, CASE, "")
    assert traffic.title == "v01_simple moves the most DRAM bytes: 2.50× the least bytes of the case"
    occupancy = charts.occupancy(frame, look(data), WORKLOAD, CASE, "")
    assert any(
        "of 37.5 %, limited by registers (80 a thread); 41.0 waves" in note.text for note in occupancy.figure.layout.annotations
    )
    assert occupancy.title.startswith("v01_simple has the largest gap: 60.0 % achieved of 100 % theoretical occupancy")


def test_stall_bars_add_up_to_the_cycles_of_a_warp(data: RunData) -> None:
    stalled = queries.stalls(best(data))
    figure = charts.stall_reasons(stalled, look(data), WORKLOAD, CASE, "").figure
    totals = [sum(bars.x[place] or 0 for bars in figure.data) for place in range(4)]
    assert totals == [34, 50, 20, 4]


def test_without_a_least_number_of_bytes_the_bytes_themselves_are_drawn(data: RunData) -> None:
    frame = best(data).assign(dram_over_min=float("nan"))
    chart = charts.traffic(frame, look(data), WORKLOAD, CASE, "")
    assert chart.figure.data[0].x[0] == MIN_BYTES
    assert not chart.figure.layout.shapes


@pytest.mark.thorough
def test_the_export_has_the_counters(data: RunData) -> None:
    names = [chart.name for chart in charts_of(data, topics=["counters"])]
    assert [name for name in names if name.endswith("-tensor-transpose-n-512-perm-210")][-5:] == [
        f"{name}-tensor-transpose-n-512-perm-210"
        for name in ("steps-explained", "speed-of-light", "occupancy", "dram-bytes", "warp-stalls")
    ]


@pytest.mark.thorough
def test_a_hostile_kernel_name_is_text(tmp_path: Path) -> None:
    cells = {("v01_simple", HOSTILE): [(HOSTILE, {metrics.TIME: 9.0, **percents(1, 2, 2, 1, 1), **stalls(wait=2)})]}
    hostile = load(store.open_run(made_sweeps.write_counted(tmp_path, "hostile", cells)))
    frame = best(hostile)
    drawn = [
        draw(frame, look(hostile), WORKLOAD, CASE, "").figure.to_json()
        for draw in (charts.speed_of_light, charts.occupancy, charts.traffic)
    ]
    drawn.append(charts.stall_reasons(queries.stalls(frame), look(hostile), WORKLOAD, CASE, "").figure.to_json())
    assert all("<img" not in figure for figure in drawn)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_on_a_run_that_has_counters_and_no_samples(open_app: Open, folder: Path, page: str) -> None:
    app = open_app(folder, page, run="counters alone")
    assert not app.error
    assert run_of(app) == "counters alone"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("topic", ["roofs", "occupancy", "memory", "stalls", "metrics"])
def test_each_topic_opens_and_lives_in_the_url(open_app: Open, folder: Path, topic: str) -> None:
    app = open_app(folder, "counters", run="counted", counters=topic)
    assert not app.error
    assert app.query_params.get("counters", "roofs") == topic


def test_the_page_says_first_what_limits_the_fastest(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "counters", run="counted")
    assert "v05_swizzled, the fastest, is at its floor: at 96.3 % of it" in words_of(app)


def test_every_reading_is_in_the_table(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "counters", run="counted", counters="metrics", counters_of="v05_swizzled")
    table = next(frame.value for frame in app.main.dataframe if "metric" in frame.value)
    assert len(table) == 2 * 8
    assert set(table["kernel"]) == {"split", "join"}


def test_a_run_without_counters_leads_to_one_of_the_same_device(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "counters", run="uncounted")
    assert "This run has no hardware counters." in words_of(app)
    assert "Runs with hardware counters:" in words_of(app)
    links = [link.proto.query_string for link in app.main.get("page_link") if link.proto.page == "why"]
    assert "section=counters&run=counted" in links


def test_where_there_are_none_at_all_the_command_is_shown(open_app: Open, tmp_path: Path) -> None:
    made_runs.write(tmp_path, "alone", rounds=8)
    app = open_app(tmp_path, "counters", run="alone")
    assert [block.value for block in app.main.code] == ["warpladder record tensor_transpose --counters"]


@pytest.mark.parametrize("section", ["why", "counters", "machine_code", "occupancy"])
def test_a_workload_of_your_own_file_is_recorded_by_its_name(open_app: Open, tmp_path: Path, section: str) -> None:
    file = made_runs.write(tmp_path, "own", rounds=8, workloads=("conv2d",)) / "run.parquet"
    table = pq.read_table(file)
    told = pa.array(["warpladder record my_kernel.py --set quick"])
    pq.write_table(table.set_column(table.column_names.index("command"), "command", told), file)
    (block,) = open_app(tmp_path, section, run="own").main.code
    assert block.value.removesuffix(" --counters") == "warpladder record my_kernel.py"


def test_a_workload_of_the_processor_has_no_counters_to_record(open_app: Open, tmp_path: Path) -> None:
    host = tuple(made for made in made_runs.VARIANTS if made.kind == "host")
    made_runs.write_variants(tmp_path, "host", "host", host, 8, 7, on_gpu=False)
    app = open_app(tmp_path, "why", run="host")
    assert "runs on the processor, and hardware counters are read on a GPU" in words_of(app) and not app.main.code


def test_denied_counters_are_told_with_the_cure(open_app: Open, tmp_path: Path) -> None:
    path = made_runs.write(tmp_path, "denied", rounds=8)
    cell = dict.fromkeys(("workload", "variant", "config", "case"))
    text = "the driver denies counters (ERR_NVGPUCTRPERM); run as root"
    made_sweeps.add(path, "diagnostics", [{"severity": "warning", "source": "counters", "text": text, **cell}])
    app = open_app(tmp_path, "counters", run="denied")
    assert [block.value.replace("\\", "") for block in app.main.warning] == [text]
