"""`warpladder extract TRACE --check RUN`: the baselines of a recording beside the times and kernels of the trace."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.commands.test_extract import Made, tensor
from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.__main__ import command

CELL = {"workload": "aten_relu", "variant": "as_called", "config": "", "case": "call=4x4"}


def recording(
    folder: Path, cold_ns: int, warm_ns: int, kernel: str = "relu", grid: int = 4, gpu: str = "GPU of the test"
) -> None:
    """A recording of the baseline with a trace: its median times, and the kernel that it launches."""
    samples = [
        row("samples", **CELL, gpus=1, rank=0, cache=cache, scope="device", twin=0, process=0, round=number, position=0)
        | {"duration_ns": duration}
        for cache, duration in (("cold", cold_ns), ("hot", warm_ns))
        for number in range(8)
    ]
    about = {"process": 1, "start_ns": 0, "end_ns": 10}
    tables: dict[str, Any] = {
        "variants": [row("variants", workload="aten_relu", variant="as_called", kind="library", role="rung", precision="fp32")],
        "cases": [
            row("cases", workload="aten_relu", case=CELL["case"], size_rank=0, params='{"call":"4x4"}', flops=0, min_bytes=128)
        ],
        "results": [row("results", **CELL, status="ok")],
        "samples": samples,
        "ranges": [row("ranges", **CELL, **about, range_id=0, depth=0, thread=1, style="push_pop", text="device.cold#0")],
        "kernels": [
            row("kernels", **about, correlation=1, device=0, name=kernel, full_name=kernel, range_id=0)
            | ({"grid_x": grid, "grid_y": 1, "grid_z": 1} if grid else {})
        ],
    }
    info = {"kind": "recording", "collector": "cuda_events", "device_name": gpu, "source": ""}
    write_tables(folder, run_row("recorded", "recorded") | info, tables)


def checked(folder: Path) -> str:
    made = Made()
    made.operator("aten::relu", 0, 100, tensor(4, 4))
    made.kernel("relu", 30, 200, 10)  # us
    done = CliRunner().invoke(command(), ["extract", str(made.write(folder)), "--check", "recorded", "--data-dir", str(folder)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.slow
def test_a_time_within_a_tenth_and_the_same_kernels_agree(tmp_path: Path) -> None:
    recording(tmp_path, 10_500, 6_000)
    text = checked(tmp_path)
    assert "+5.0 %" in text and "the same" in text and "none: they agree" in text
    assert "1 of 1 baselines agree with the trace within 10%" in text


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "cause"),
    [
        ({"cold_ns": 14_000, "warm_ns": 7_000}, "an L2 that is neither cold nor warm"),
        ({"cold_ns": 10_000, "warm_ns": 7_000, "kernel": "other"}, "other kernels"),
        ({"cold_ns": 20_000, "warm_ns": 15_000, "gpu": "another"}, "another GPU, another"),
        ({"cold_ns": 7_000, "warm_ns": 5_000}, "work at the same time on another stream"),
        ({"cold_ns": 30_000, "warm_ns": 15_000}, "other clocks"),
    ],
)
def test_a_difference_has_its_likely_cause(made: dict[str, Any], cause: str, tmp_path: Path) -> None:
    recording(tmp_path, **made)
    text = checked(tmp_path)
    assert cause in text
    assert "0 of 1 baselines agree" in text


@pytest.mark.slow
def test_a_kernel_with_another_grid_is_named_with_both(tmp_path: Path) -> None:
    recording(tmp_path, 10_500, 6_000, grid=8)
    text = checked(tmp_path)
    assert "relu has (8, 1, 1) blocks, (4, 1, 1) in the trace" in text
    assert "other grids: another version of PyTorch, or shapes that were edited" in text
    assert "0 of 1 baselines agree" in text


def test_a_missing_kernel_is_named(tmp_path: Path) -> None:
    recording(tmp_path, 10_500, 6_000, kernel="other")
    assert "relu is missing" in checked(tmp_path)


@pytest.mark.slow
def test_a_grid_that_the_recording_lacks_is_not_compared(tmp_path: Path) -> None:
    recording(tmp_path, 10_500, 6_000, grid=0)
    assert "1 of 1 baselines agree" in checked(tmp_path)


def test_a_recording_of_something_else_is_one_line(tmp_path: Path) -> None:
    recording(tmp_path, 10_000, 6_000)
    made = Made()
    made.operator("aten::tanh", 0, 100, tensor(4, 4))
    made.kernel("tanh", 30, 200, 10)
    done = CliRunner().invoke(
        command(), ["extract", str(made.write(tmp_path)), "--check", "recorded", "--data-dir", str(tmp_path)]
    )
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "has no baseline of an operation" in done.stderr
