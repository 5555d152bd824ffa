"""Operators of PyTorch: sums counted by hand, those of `key_averages()`, and the kernels of a row."""

import json
from pathlib import Path

import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_operators
from warpladder.collectors.kineto.parse import import_report
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.time.operators import chart, query
from warpladder.data import store

__all__ = ["open_app"]

KINETO = Path(__file__).parents[4] / "fixtures" / "kineto"
US = 1_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_operators.write(tmp_path_factory.mktemp("runs")).parent


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "operators"))


def test_times_of_an_operator_inside_another_of_its_name_count_once(data: RunData) -> None:
    rows = query.operators(data).set_index("operator")
    assert rows.loc["conv", list(query.FIGURES)].tolist() == [
        2, 60 * US, pytest.approx(100 * 60 / 210), 60 * US, (100 - 60 - 1 + 40 - 2) * US, 100 * US, 3,
    ]  # fmt: skip
    assert rows.loc["pad", ["self_device_ns", "device_ns", "self_host_ns", "host_ns"]].tolist() == [
        0,
        50 * US,
        20 * US,
        60 * US,
    ]
    assert query.totals(data) == query.Totals(210 * US, 150 * US)


def test_an_operator_that_is_alone_in_another_of_its_name_counts_as_that_one(data: RunData) -> None:
    row = query.operators(data).set_index("operator").loc["to"]
    assert row[list(query.FIGURES)].drop("percent").tolist() == [1, 40 * US, 40 * US, 19 * US, 20 * US, 1]


def test_rows_of_one_name_differ_in_shapes_and_strides_that_are_not_contiguous(data: RunData) -> None:
    rows = query.operators(data, "shape")
    conv = rows[rows["operator"] == "conv"]
    assert conv["strides"].tolist() == ["[[1, 8]]", ""] and set(conv["shapes"]) == {"[[8, 4]]"}
    assert conv["self_device_ns"].tolist() == [50 * US, 10 * US]
    assert conv["device_ns"].tolist() == [50 * US, 60 * US], "in a row of its own, the inner one counts"
    assert query.keys(rows)[:2] == ["backward", "conv"] and query.keys(conv) == ["conv", "conv#2"]


def test_the_backward_pass_has_the_module_and_range_of_its_forward_pass(data: RunData) -> None:
    assert query.groupings(data) == ("name", "shape", "module", "range", "stack")
    modules = query.operators(data, "module").set_index("operator")["module"]
    ranges = query.operators(data, "range").set_index("operator")["range"]
    assert modules[["conv", "backward", "to"]].tolist() == ["Conv_0", "Conv_0", ""]
    assert ranges[["conv", "backward", "to"]].tolist() == ["forward", "forward", ""]
    stack = query.operators(data, "stack").set_index("operator").loc["conv", "stack"]
    assert stack == "<built-in method conv>\nnn.Module: Conv_0" and chart.place_of(stack) == "Conv_0"


def test_the_kernels_of_a_row_are_those_of_the_operators_inside_too(data: RunData) -> None:
    rows = query.operators(data).set_index("operator")
    of_pad = query.launched(data, "name", int(rows.loc["pad", "number"]))
    assert of_pad[["kernel", "operator", "count", "total_ns"]].to_numpy().tolist() == [
        ["relu", "conv", 1, 30 * US],
        ["gemm", "conv", 1, 20 * US],
    ]
    of_conv = query.launched(data, "name", int(rows.loc["conv", "number"]))
    assert of_conv["total_ns"].sum() == 60 * US and of_conv["mean_ns"].tolist() == [15 * US, 30 * US], "of equal sums, by name"
    assert query.launched(data, "name", int(rows.loc[made_operators.HOSTILE, "number"])).empty


@pytest.mark.parametrize(
    ("dims", "strides", "contiguous"),
    [
        ("[[64, 3, 2], []]", "[[6, 2, 1], []]", True),
        ("[[64, 1, 2]]", "[[2, 999, 1]]", True),
        ("[[64, 3, 2]]", "[[6, 1, 3]]", False),
        ("[[[2, 2], [3]], []]", "[[[2, 1], [1]], []]", True),
        ("[[[2, 2], [3]], []]", "[[[1, 2], [1]], []]", False),
        ("[[0, 3]]", "[[7, 7]]", True),
        ("[[2, 3", "[[3, 1]]", False),
        ('[["a", "b"]]', '[["c", "d"]]', False),
        ("", "", True),
    ],
)
def test_strides_that_the_shape_gives_are_contiguous(dims: str, strides: str, contiguous: bool) -> None:
    assert query._contiguous(dims, strides) == contiguous


#: Around a request for a buffer, PyTorch counts a copy twice, and takes the time of the request off the operator.
ASIDE = {"resnet18_train_h2d": {"aten::to", "aten::_to_copy", "aten::copy_"}, "graph_and_two_streams": set[str]()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ASIDE)
def test_the_sums_are_those_of_key_averages(name: str, tmp_path: Path) -> None:
    run_id = import_report(KINETO / f"{name}.json.gz", tmp_path, "", None, [])
    frame = query.operators(load(store.open_run(tmp_path / run_id)))
    averages = {
        row["key"]: row for row in json.loads((KINETO / f"{name}.sums.json").read_text()) if row["device"] == "DeviceType.CPU"
    }
    pairs = {
        "self_device_ns": "self_device_us", "device_ns": "device_us", "self_host_ns": "self_cpu_us", "host_ns": "cpu_us",
    }  # fmt: skip
    for row in frame.to_dict("records"):
        oracle = averages[row["operator"]]
        assert row["calls"] == oracle["count"]
        for ours, theirs in pairs.items():
            if row["operator"] not in ASIDE[name] or ours in ("self_device_ns", "host_ns"):
                # The oracle has float64 of microseconds.
                assert row[ours] == pytest.approx(1000 * oracle[theirs], abs=0.51 * row["calls"] + 1e-3), row["operator"]


def test_the_title_has_the_share_that_no_operator_launched(data: RunData) -> None:
    drawn = chart.leading(query.operators(data), query.totals(data), look(data, "light"), "name")
    assert drawn.title == "conv takes 28.6 % of the device time; no operator launched 28.6 %"
    assert list(drawn.figure.data[0].x) == [60 * US, 50 * US, 40 * US]
    assert "number" not in drawn.data


def test_without_device_work_operators_are_ranked_by_their_time_on_the_host(data: RunData) -> None:
    frame = query.operators(data).assign(self_device_ns=0)
    drawn = chart.leading(frame, query.Totals(0, 0), look(data, "light"), "name")
    assert drawn.title.endswith("of the host time of all operators; operators launched no device work")


@pytest.mark.thorough
def test_the_page_lists_the_kernels_of_the_operator_of_the_link(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "operators", run="operators")
    assert not app.exception and "conv and the operators inside it launched 60.0 µs of device work" in words(app)
    app = open_app(folder, "operators", run="operators", by="shape", operator="conv#2")
    assert "strides" not in words(app) and "shapes: [[8, 4]]" in words(app)
    app = open_app(folder, "operators", run="operators", operator=made_operators.HOSTILE)
    assert not app.exception and "launched nothing" in words(app)
    app = open_app(folder, "operators", run="operators", operator="aten::none")
    assert "The link asks for operator aten::none, which is not here; showing conv." in words(app)


def test_a_run_without_operators_leads_to_the_import(open_app: Open, tmp_path: Path) -> None:
    from tests.synthetic import made_traces

    made_traces.write(tmp_path)
    app = open_app(tmp_path, "operators", run="trace")
    assert "This run has no operators of PyTorch" in words(app) and app.main.code
