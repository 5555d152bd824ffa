"""Two builds of a CUDA program under Nsight Systems."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.collectors.programs.recording import compared, statuses
from warpladder.collectors.nsight_systems.entry import NSYS
from warpladder.collectors.programs.profiled import NsightSystems

SOURCE = Path(__file__).with_name("copy_and_scale.cu")


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("nvcc") is None or NSYS.path is None, reason="needs nvcc and nsys")
def test_kernels_and_copies_of_two_builds_are_told_apart(tmp_path: Path) -> None:
    for rounds in (10, 40):
        subprocess.run(["nvcc", "-O2", f"-DROUNDS={rounds}", "-o", tmp_path / f"scale_{rounds}", SOURCE], check=True)
    commands = [f"'{tmp_path / f'scale_{rounds}'}'" for rounds in (10, 40)]
    run = compared(tmp_path, *commands, runs=5, same_output=True, profiler=NsightSystems(), timeout_s=120.0)
    assert {status for status, _ in statuses(run).values()} == {"ok"}
    assert (run.info["collector"], bool(run.info["device_name"])) == ("nsight_systems", True)
    ranges = run.table("ranges").set_index("range_id")
    kernels = ranges.loc[run.table("kernels")["range_id"], "variant"].value_counts().to_dict()
    assert kernels == {"scale_10": 3 * 10, "scale_40": 3 * 40}
    copies = run.table("memory_ops").query("kind in ('h2d', 'd2h')")
    assert copies["bytes"].unique().tolist() == [4 << 20]
    assert ranges.loc[copies["range_id"], "variant"].value_counts().to_dict() == {"scale_10": 6, "scale_40": 6}
    samples = run.table("samples")
    medians = samples.groupby(["scope", "variant"])["duration_ns"].median()
    assert 3 < medians["phase:compute", "scale_40"] / medians["phase:compute", "scale_10"] < 5
    assert set(samples["scope"]) == {"operation", "phase:compute", "phase:h2d", "phase:d2h"}
