"""A traced step by its phases, on two samples of a program and one of kernels, counted by hand."""

from pathlib import Path

import pandas as pd
import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic.made_runs import row, run_row
from tests.synthetic.made_traces import write
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.reports.details import phases
from warpladder.dashboard.views.reports.details import phases as charts
from warpladder.data import store
from warpladder.data.store import RunWriter

__all__ = ["open_app"]


CASES = ("batch=100", "batch=800")
VARIANTS = ("v01_program", "v02_kernels")
ALL = (*VARIANTS, "numpy")
#: range_id, parent, domain, text, variant, config, scope, round, start, end.
RANGES = (
    (0, None, "warpladder", "v01_program", "v01_program", "", None, None, 0, 30_000),
    (1, 0, "warpladder", "operation.hot#0", "v01_program", "", "operation", 0, 0, 10_000),
    (2, 1, "mlp_training", "forward", None, None, None, None, 0, 5_000),
    (3, 0, "warpladder", "operation.hot#1", "v01_program", "", "operation", 1, 10_000, 24_000),
    (4, 0, "warpladder", "operation.hot.warm_up#0", "v01_program", "", "operation", None, 24_000, 30_000),
    (5, None, "warpladder", "operation.hot#0", "v02_kernels", "block=8", "operation", 0, 40_000, 44_000),
    (6, None, "warpladder", "operation.hot#0", "v02_kernels", "block=16", "operation", 0, 50_000, 58_000),
    (7, None, "warpladder", "device.cold#0", "v02_kernels", "block=8", "device", 0, 60_000, 61_000),
    (8, None, "warpladder", "operation.hot#0", "numpy", "", "operation", 0, 70_000, 90_000),
)
#: How many ranges are around those that have a parent.
DEPTHS = {1: 1, 2: 2, 3: 1, 4: 1}
#: name, range_id, duration.
KERNELS = (
    ("forward_gemm", 2, 1_000),
    ("forward_gemm", 3, 1_400),
    ("backward_gemm", 1, 2_000),
    ("backward_gemm", 3, 2_000),
    ("forward_gemm", 4, 9_999),
    ("forward_hidden", 5, 1_000),
    ("update", 5, 500),
    ("updater", 5, 300),
    ("forward_hidden", 6, 1_000),
    ("forward_hidden", 7, 800),
)
#: kind, range_id, duration.
COPIES = (("h2d", 2, 3_000), ("d2h", 3, 3_000), ("memset", 5, 200))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with RunWriter(tmp_path_factory.mktemp("data"), "steps") as writer:
        writer.append("run", [run_row("steps", "steps") | {"kind": "recording"}])
        writer.append(
            "variants",
            [
                row("variants", workload="mlp", variant=name, role="rung", kind="cuda", precision="fp32", title=name.upper())
                for name in ALL
            ],
        )
        writer.append(
            "cases", [row("cases", workload="mlp", case=name, size_rank=rank, params="{}") for rank, name in enumerate(CASES)]
        )
        writer.append(
            "ranges",
            [
                row("ranges", range_id=number, parent_id=parent, depth=DEPTHS.get(number, 0), domain=domain, text=text, variant=variant, config=config, scope=scope,
                    round=turn, start_ns=start, end_ns=end, style="push_pop", workload="mlp" if variant else None, case=CASES[1] if variant else None)
                for number, parent, domain, text, variant, config, scope, turn, start, end in RANGES
            ],
        )  # fmt: skip
        writer.append(
            "kernels",
            [row("kernels", name=name, full_name=name, range_id=owner, end_ns=duration) for name, owner, duration in KERNELS],
        )
        writer.append(
            "memory_ops", [row("memory_ops", kind=kind, range_id=owner, end_ns=duration) for kind, owner, duration in COPIES]
        )
        return writer.commit()


@pytest.fixture(scope="module")
def data(path: Path) -> RunData:
    return run_data.load(store.open_run(path))


def parts(frame: pd.DataFrame, variant: str) -> dict[str, float]:
    rows = frame[frame["variant"] == variant]
    return dict(zip(rows["part"], rows["mean_ns"], strict=True))


def test_parts_are_means_over_the_samples_and_add_up_to_the_operation(data: RunData) -> None:
    frame = phases.phases(data, "mlp")
    # 10,000 and 14,000 ns: 1000 and 1400 forward, 2000 each backward, copies of 3000 each, and 4000 and 7600 of the host.
    assert parts(frame, "v01_program") == {
        "forward": 1_200, "backward": 2_000, "update": 0, "other kernels": 0, "copies": 3_000, "host and idle": 5_800,
    }  # fmt: skip
    rows = frame[frame["variant"] == "v01_program"]
    assert set(rows["total_ns"]) == {12_000}
    assert rows["fraction"].sum() == pytest.approx(1)
    assert set(rows["n"]) == {2}


def test_a_variant_is_shown_with_its_fastest_config_and_a_name_must_end_with_the_phase(data: RunData) -> None:
    frame = phases.phases(data, "mlp")
    assert set(frame.loc[frame["variant"] == "v02_kernels", "config"]) == {"block=8"}
    # `updater` is no update; a memset is work of the device, not a copy.
    assert parts(frame, "v02_kernels") == {
        "forward": 1_000, "backward": 0, "update": 500, "other kernels": 500, "copies": 0, "host and idle": 2_000,
    }  # fmt: skip


def test_a_variant_of_the_host_has_no_phases(data: RunData) -> None:
    assert "numpy" not in set(phases.phases(data, "mlp")["variant"])


def test_rows_stand_in_the_order_of_the_ladder_and_of_the_parts(data: RunData) -> None:
    frame = phases.phases(data, "mlp")
    assert list(frame["variant"]) == [name for name in VARIANTS for _ in phases.PARTS]
    assert list(frame["part"]) == [*phases.PARTS, *phases.PARTS]


def test_a_trace_whose_kernels_are_named_otherwise_has_no_phases(tmp_path: Path) -> None:
    other = run_data.load(store.open_run(write(tmp_path)))
    assert phases.workloads(other) == ()
    assert phases.phases(other, "mlp").empty


def test_only_workloads_with_phases_are_offered(data: RunData) -> None:
    assert phases.workloads(data) == ("mlp",)


def test_the_chart_says_what_copies_and_host_take(data: RunData) -> None:
    frame = phases.phases(data, "mlp")
    chart = charts.chart(frame, look(data, "light"), "mlp")
    assert chart.title == "At batch=800, copies and the host take 73.3 % of v01_program, 50.0 % of v02_kernels"
    assert [bar.name for bar in chart.figure.data] == [
        "forward",
        "backward",
        "update",
        "other kernels",
        "copies",
        "host and idle",
    ]
    assert list(chart.figure.data[2].x) == [12.5]
    assert "n = 1" in chart.figure.data[2].hovertext[0]


@pytest.mark.slow
def test_details_open_at_the_phases_of_a_run_that_traced_them(path: Path, open_app: Open) -> None:
    app = open_app(path.parent, "details", run="steps")
    assert app.segmented_control(key="choose topic").value == "phases"
    assert "copies and the host take 73.3 % of v01_program" in words(app)
