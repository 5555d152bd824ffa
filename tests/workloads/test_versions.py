"""Two versions of a user's file in one process: each has its own kernels, and both have the inputs of one."""

from pathlib import Path

import numpy as np
import pytest

from warpladder.workloads import registry
from warpladder.workloads.api import CudaVariant, WorkloadError
from warpladder.workloads.registry import Version

KERNEL = 'extern "C" __global__ void twice(const float* x, float* y) { y[threadIdx.x] = FACTOR * x[threadIdx.x]; }\n'
BENCH = """
import numpy as np
import warpladder

bench = warpladder.Benchmark("twice", n=[64])
SCALE = FACTOR

@bench.inputs
def inputs(n, rng):
    return SCALE * rng.random(n, dtype=np.float32)

@bench.reference
@bench.variant
def host(x):
    return 2 * x

bench.cuda("twice.cu", kernel="twice", grid=1, block="n")
"""
WORKLOAD = """
import numpy as np
from warpladder.workloads.api import Buffer, Case, HostVariant, Workload

def run(case, inputs, outputs):
    return {"y": FACTOR * inputs["x"]}

WORKLOAD = Workload(
    "twice", "twice", (Case({"n": 4}, 4, 32),), (HostVariant("host", "host", "host", run=run),),
    lambda case: ({"x": Buffer((4,))}, {"y": Buffer((4,))}), lambda case, rng: {"x": rng.random(4)}, lambda case, inputs: {"y": 2 * inputs["x"]},
)
"""


def version(folder: Path, name: str, text: str, factor: int) -> Version:
    place = folder / (name or "own")
    place.mkdir()
    (place / "bench.py").write_text(text.replace("FACTOR", str(factor)))
    (place / "twice.cu").write_text(KERNEL.replace("FACTOR", str(factor)))
    return Version(place / "bench.py", (place,), name)


def test_kernels_are_of_their_version_and_inputs_of_the_own_one(tmp_path: Path) -> None:
    (workload,) = registry.load_versions(version(tmp_path, "", BENCH, 2), version(tmp_path, "main", BENCH, 3))
    assert [each.name for each in workload.variants] == ["host", "twice", "host@main", "twice@main"]
    kernels = [each.source_text for each in workload.variants if isinstance(each, CudaVariant)]
    assert ["2 * x" in text for text in kernels] == [True, False]
    inputs = workload.make_inputs(workload.cases[0], np.random.default_rng(1))
    assert inputs["x"].max() > 1.5 and inputs["x"].max() <= 2
    assert workload.variant("host").source_sha256 == workload.variant("host@main").source_sha256
    assert workload.variant("twice").source_sha256 != workload.variant("twice@main").source_sha256


def test_a_workload_has_the_variants_of_its_other_version_too(tmp_path: Path) -> None:
    own = version(tmp_path, "", WORKLOAD, 2)
    (workload,) = registry.load_versions(own, version(tmp_path, "main", WORKLOAD, 3))
    inputs = {"x": np.ones(4)}
    runs = [each.run(workload.cases[0], inputs, {})["y"][0] for each in workload.variants]
    assert runs == [2, 3]
    with pytest.raises(WorkloadError, match="twice is a Benchmark in one version, and a Workload in the other"):
        registry.load_versions(own, version(tmp_path, "other", BENCH, 2))
