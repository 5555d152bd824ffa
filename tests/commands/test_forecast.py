"""`warpladder forecast TRACE RUN`: what a step gains from the variants of a recording."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.commands.test_extract import KINETO, Made, tensor
from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.__main__ import command
from warpladder.collectors.kineto.parse import import_report
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.operations.forecast import Forecast, forecast
from warpladder.dashboard.core.operations.program import Program
from warpladder.data import store

CELL = {"workload": "aten_relu", "config": "", "case": "call=4x4"}


def trace(folder: Path, relu: str = "aten::relu", relu_us: int = 10, tanh_us: int = 10, steps: int = 2) -> Path:
    """Steps of 1 ms, in each a relu of 10 us, and a product and a tanh that wait in the queue behind it. Those from the third on end 1 ms
    and 40 us after the one before.
    """
    folder.mkdir(exist_ok=True)
    made = Made()
    for number in range(steps):
        start = 1000 * number + 40 * max(number - 1, 0)
        made.step(number, start, start + 900)
        made.operator(relu, start, start + 3, tensor(4, 4))
        made.kernel("relu", start + 1, start + 6, relu_us)
        made.operator("aten::mm", start + 3, start + 6, tensor(4, 4), tensor(4, 4))
        made.kernel("gemm", start + 4, start + relu_us + 7, 20)
        made.operator("aten::tanh", start + 6, start + 9, tensor(4, 4))
        made.kernel("tanh", start + 7, start + relu_us + 28, tanh_us)
    return made.write(folder)


def recording(folder: Path, mine_ns: int) -> store.Run:
    """The baseline takes 10 us, and another variant this time."""
    random = np.random.default_rng(0)
    samples = [
        row("samples", **CELL, variant=variant, gpus=1, rank=0, cache="cold", scope="device", twin=twin, process=process)
        | {"round": number, "position": place, "duration_ns": round(duration * random.normal(1, 1e-3))}
        for place, (variant, twin, duration) in enumerate(
            (("as_called", 0, 10_000), ("as_called", 1, 10_000), ("mine", 0, mine_ns))
        )
        for number in range(30)
        for process in (number // 10,)
    ]
    variants = ("as_called", "mine")
    tables: dict[str, Any] = {
        "variants": [
            row("variants", workload="aten_relu", variant=name, kind="library", role="rung", rung=place, precision="fp32")
            for place, name in enumerate(variants, 1)
        ],
        "cases": [
            row("cases", workload="aten_relu", case=CELL["case"], size_rank=0, params='{"call":"4x4"}', flops=0, min_bytes=128)
        ],
        "results": [row("results", **CELL, variant=name, status="ok") for name in variants],
        "samples": samples,
    }
    info = {"kind": "recording", "collector": "cuda_events", "device_name": "GPU of the test", "source": ""}
    return store.open_run(write_tables(folder, run_row("recorded", "recorded") | info, tables))


def made_forecast(folder: Path, mine_ns: int) -> Forecast:
    imported = store.open_run(folder / import_report(trace(folder), folder, "", None, []))
    return forecast(Program.of(imported, {}), run_data.load(recording(folder, mine_ns)))


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command(), ["forecast", *arguments, "--data-dir", str(folder)])


@pytest.mark.slow
def test_a_step_gains_what_its_last_work_ends_earlier(tmp_path: Path) -> None:
    found = made_forecast(tmp_path, 5_000)
    (gain,) = found.gains
    assert (gain.operation.workload, gain.forms[0].variant) == ("aten_relu", "mine")
    assert abs(gain.saved_ns.value - 5_000) < 20
    # The host launches the second step when it launched it before, so that only the second one ends earlier: 5 us in two steps.
    assert abs(gain.gained_ns.value - 2_500) < 10
    assert found.gained_ns == gain.gained_ns
    assert gain.gained_ns.low <= gain.gained_ns.value <= gain.gained_ns.high
    assert abs(gain.hidden_ns - 2_500) < 10


@pytest.mark.slow
def test_the_interval_of_a_forecast_has_the_ends_of_the_ratios_and_of_the_steps(tmp_path: Path) -> None:
    program = Program.of(store.open_run(tmp_path / import_report(trace(tmp_path, steps=4), tmp_path, "", None, [])), {})
    assert program.steps_ns.high == pytest.approx(1_040_000), "ends are 1000, 1040 and 1040 us apart"
    found = forecast(program, run_data.load(recording(tmp_path, 5_000)))
    assert found.after_ns.high == pytest.approx(1_040_000 - found.gained_ns.low)
    hidden = program.with_hidden_host()
    assert hidden.steps_ns.high / hidden.step_ns == pytest.approx(1_040_000 / program.step_ns)


@pytest.mark.slow
def test_a_variant_that_is_not_faster_gains_nothing(tmp_path: Path) -> None:
    assert made_forecast(tmp_path, 12_000).gains == ()


@pytest.mark.thorough
def test_the_command_prints_the_step_with_all_variants(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    done = run(tmp_path, str(trace(tmp_path)), "recorded")
    assert done.exit_code == 0, done.output
    line = next(line for line in done.stdout.splitlines() if line.startswith("aten::relu"))
    assert line.split()[1:3] == ["mine", "2.00"]
    assert "with all, host as profiled: " in done.stdout


@pytest.mark.slow
def test_wrong_requests_are_one_line(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    other = run(tmp_path, str(KINETO / "resnet18_train_h2d.json.gz"), "recorded")
    assert (other.exit_code, other.stderr.count("\n")) == (2, 1)
    assert "has no benchmark of an operation" in other.stderr


@pytest.mark.slow
def test_the_later_profile_stands_beside_the_forecast_of_what_was_replaced(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    before = trace(tmp_path)
    after = trace(tmp_path / "after", relu="mine::relu", relu_us=5, tanh_us=11)
    done = run(tmp_path, str(before), "recorded", "--after", str(after))
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("forecast with aten::relu replaced: ")]
    # The product takes 20 us in both, and tanh 10 and 11 us.
    assert "device time of the operators that were not replaced: +3.33 % in the later profile" in lines
    (line,) = (line for line in lines if line.startswith("after: "))
    assert abs(float(line.split(", ")[1].split(" %")[0])) < 1, line
    changes = {line.split()[0]: line.split()[1:] for line in lines if "::" in line and not line.startswith("forecast")}
    assert changes == {
        "aten::relu": ["10.0", "µs", "5.00", "µs", "0", "ns", "-5.00", "µs"],
        "mine::relu": ["0", "ns", "0", "ns", "5.00", "µs", "5.00", "µs"],
    }


@pytest.mark.thorough
def test_a_later_profile_in_which_nothing_was_replaced_is_told(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    path = trace(tmp_path)
    done = run(tmp_path, str(path), "recorded", "--after", str(path))
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == "no form that has a faster variant is called less often in the later profile"
    missing = run(tmp_path, str(path), "recorded", "--after", "nowhere")
    assert (missing.exit_code, "nowhere" in missing.stderr.splitlines()[0]) == (2, True)


def test_a_trace_in_place_of_a_job_is_told_what_it_lacks(tmp_path: Path) -> None:
    file = trace(tmp_path / "trace")
    done = CliRunner().invoke(command(), ["forecast", str(file), "--data-dir", str(tmp_path / "runs")])
    told = "no job; give the recording of the file that extract wrote as RUN, or import the profiles of all ranks"
    assert (done.exit_code, done.stderr) == (2, f"{file}: {told}\n") and not (tmp_path / "runs").exists()
