"""`record --energy` on a GPU: identical code takes the same energy, and 3 % more work takes more."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.collectors.cuda import energy_kernels
from warpladder.dashboard.compare.within_run import energies_of_case
from warpladder.dashboard.core.run_data import load
from warpladder.data import store


@pytest.mark.gpu
def test_identical_code_differs_by_at_most_1_percent_and_3_percent_more_work_is_seen(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "warpladder", "record", energy_kernels.__file__, "--energy", "--seconds", "0.3"]
    command += ["--processes", "1", "--max-rounds", "12", "--data-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    ((run,), _) = store.list_runs([tmp_path])
    data = load(store.open_run(run.path))
    by_variant = energies_of_case(data, "known_work", f"n={energy_kernels.N}").set_index("variant")
    figures = by_variant[["energy_mj", "energy_mj_low", "energy_mj_high", "energy_ratio", "energy_noise", "loop_w", "idle_w"]]
    seen = f"\n{figures.to_string()}\n{done.stderr[-1000:]}"
    assert by_variant.loc["v03_more_work", "energy_verdict"] == "more", seen
    assert by_variant.loc["v02_same_code", "energy_ratio"] == pytest.approx(1, abs=0.01), seen
    assert by_variant["energy_noise"].iloc[0] < 1.01, seen
    assert by_variant.loc["v03_more_work", "energy_ratio"] == pytest.approx(1.03, abs=0.01), seen
    assert (by_variant["loop_w"] > by_variant["idle_w"]).all(), seen
    clocks = data.energy["held_clock_mhz"]
    assert clocks.between(100, 5000).all() and clocks.max() < 1.1 * clocks.min(), f"{clocks.tolist()}{seen}"


def test_the_kernels_of_known_work_compile() -> None:
    from warpladder.collectors.cuda.compiler import compile_variant

    (case,) = energy_kernels.WORKLOAD.cases
    for variant in energy_kernels.WORKLOAD.variants:
        (launch,) = variant.launches(case, {})
        (kernel,) = compile_variant(variant, [launch.kernel], "sm_90").kernels.values()
        assert kernel.spill_bytes == 0
