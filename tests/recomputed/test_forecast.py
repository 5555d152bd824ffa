"""Every figure of the page Forecast, of a made trace and recording. No such trace ships."""

from pathlib import Path

import pytest

from tests.commands.test_forecast import recording, trace
from tests.recomputed import definitions, forecast
from warpladder.collectors.kineto.parse import import_report
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.operations.program import Program
from warpladder.dashboard.views.time.forecast import query
from warpladder.data import store

#: GB/s of the copy kernel.
RATE = 0.032
STEPS = 2
#: Bytes that each operation reads and writes: its tensors have 16 numbers in float32.
BYTES = {"aten::relu": 128, "aten::mm": 192, "aten::tanh": 128}


@pytest.mark.slow
def test_forecast(tmp_path: Path) -> None:
    run = store.open_run(tmp_path / import_report(trace(tmp_path), tmp_path, "", None, []))
    recorded = definitions.Shipped(recording(tmp_path, 5_000).path)
    found = query.found(
        Program.of(run, {"device_copy": RATE, "tf32_mma": 1000.0}), run_data.load(store.open_run(recorded.folder))
    )
    tables = {name: run.table(name) for name in ("kernels", "api_calls")}
    kernels = tables["kernels"]
    took = (kernels["end_ns"] - kernels["start_ns"]).groupby(kernels["name"]).sum() / STEPS
    samples = {
        name: recorded.rounds(("aten_relu", name, "", "call=4x4"), 1, "device", "cold") for name in ("as_called", "mine")
    }
    ratio = definitions.ratio(samples["as_called"], samples["mine"])
    saved = {"relu": 1 - 1 / ratio.value}
    at_floor = {}
    for (operation, nbytes), kernel in zip(BYTES.items(), ("relu", "gemm", "tanh"), strict=True):
        row, floor = found.operations.set_index("operation").loc[operation], nbytes / RATE
        assert row["device_ns"] == took[kernel] and row["percent"] == pytest.approx(100 * took[kernel] / took.sum())
        assert (row["floor_ns"], row["worth_ns"]) == pytest.approx((floor, took[kernel] - floor))
        at_floor[kernel] = max(1 - floor / took[kernel], saved.get(kernel, 0.0))
    row, gained = found.operations.iloc[0], forecast.gain_ns(tables, saved, STEPS)
    assert (row["operation"], row["variants"], float(row["times_faster"])) == (
        "aten::relu",
        "mine",
        pytest.approx(ratio.value, rel=5e-3),
    )
    assert row["saved_ns"] == pytest.approx(saved["relu"] * took["relu"])
    assert (row["gained_ns"], row["hidden_ns"]) == pytest.approx((gained, row["saved_ns"] - gained))
    for end, between in (("low", ratio.low), ("high", ratio.high)):
        least, most = (forecast.gain_ns(tables, {"relu": 1 - 1 / each}, STEPS) for each in between)
        assert least - 1e-6 <= row[f"gained_{end}_ns"] <= most + 1e-6
    step = (kernels["end_ns"].max() - kernels["start_ns"].min()) / STEPS
    stages = found.stages.set_index("stage")["after_ns"]
    expected = {query.TODAY: step, query.FORECAST: step - gained, query.BOUND: step - forecast.gain_ns(tables, at_floor, STEPS)}
    assert stages[list(expected)].to_dict() == pytest.approx(expected)
