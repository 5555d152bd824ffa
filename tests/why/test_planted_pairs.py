"""The planted pairs, recorded on this machine's GPU: the sentence about each step gives the planted cause."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.why import planted_pairs
from warpladder.collectors import choice
from warpladder.dashboard.core import counted
from warpladder.dashboard.core.run_data import load
from warpladder.data import store


@pytest.mark.gpu
def test_each_planted_cause_is_named(tmp_path: Path) -> None:
    if problem := choice.problem_of(choice.COUNTER):
        pytest.skip(problem)
    command = [sys.executable, "-m", "warpladder", "record", planted_pairs.__file__, "--counters", "--seconds", "0.3"]
    command += ["--processes", "1", "--max-rounds", "20", "--no-limit", "--data-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    ((run,), _) = store.list_runs([tmp_path])
    data = load(store.open_run(run.path))
    named = {}
    for cause in planted_pairs.PAIRS:
        case = f"cause={cause}"
        frame = counted.best(data, "planted_pairs", case, counted.times(data, "planted_pairs", case))
        named[cause] = list(counted.steps(data, "planted_pairs", case, frame)["cause"])
    assert named == {cause: [cause] for cause in planted_pairs.PAIRS}


def test_the_kernels_of_each_pair_compile() -> None:
    from warpladder.collectors.cuda.compiler import compile_variant

    for case in planted_pairs.WORKLOAD.cases:
        for variant in planted_pairs.WORKLOAD.variants:
            kernels = [launch.kernel for launch in variant.launches(case, {})]
            spills = [kernel.spill_bytes for kernel in compile_variant(variant, kernels, "sm_90").kernels.values()]
            assert any(spills) == (case.params["cause"] == "spills" and variant.name == "v01_slow")
