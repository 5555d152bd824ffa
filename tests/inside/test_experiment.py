"""Which of several kernels is looked into, and the arguments of altered ones."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.collectors.cuda import fake_cuda
from tests.inside.test_ptx import assembled
from warpladder.collectors import inside
from warpladder.collectors.cuda import compiler, parameters
from warpladder.collectors.inside import ablation, ptx
from warpladder.data.names import Work
from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, Workload, WorkloadError

#: Kernel and blocks of each launch, and the time that it takes.
LAUNCHES = [("move", 400, 5.0), ("product", 8, 90.0), ("move", 800, 7.0), ("product", 8, 80.0), ("last", 100, 20.0)]


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    fake_cuda.install_events(monkeypatch, [])
    name = f"{inside.__name__}.experiment"
    monkeypatch.delitem(sys.modules, name, raising=False)
    found = fake_cuda.imported(name)
    sys.modules.pop(name)
    vars(inside).pop("experiment", None)
    return found


class Bench:
    """Its operations are the launches themselves, and take the time of all of them."""

    def prepare_altered(self, variant: CudaVariant, config: Any, module: object) -> tuple[Any, dict[str, object]]:
        return variant.launches(CASE, config), {}

    def run(self, operation: object) -> None: ...

    def sample(self, operation: list[Launch], how: object, seed: int) -> SimpleNamespace:
        return SimpleNamespace(duration_ns=sum(ns for *_, ns in LAUNCHES[: len(operation)]) + seed - 1)


CASE = Case({"n": 1}, flops=1, min_bytes=8, size_rank=0)


def looked_into(experiment: ModuleType, **options: Any) -> Any:
    launches = [Launch(kernel, (blocks, 1, 1), (64, 1, 1), ("x",)) for kernel, blocks, _ in LAUNCHES]
    variant = CudaVariant("several", "several", "rung", source="", launches=lambda case, config: launches)
    workload = Workload(
        name="mine",
        title="Mine",
        cases=(CASE,),
        variants=(variant,),
        buffers=lambda case: ({"x": Buffer((1,))}, {}),
        make_inputs=lambda case, rng: {"x": np.zeros(1, np.float32)},
        reference=lambda case, inputs: {},
    )
    found = experiment.Inside(workload, variant, {}, CASE, **options)
    vars(found).update(_bench=Bench(), _original=None)
    return found


def test_the_kernel_that_takes_the_most_time_is_looked_into(experiment: ModuleType) -> None:
    found = looked_into(experiment)
    assert found._launch_ns == (5.0, 90.0, 7.0, 80.0, 20.0)
    assert found._kernel_ns == {"move": 12.0, "product": 170.0, "last": 20.0}
    assert found.longest is found.launches[1]
    assert found._alike == 2


def test_where_launches_break_the_process_their_threads_stand_for_the_time(experiment: ModuleType) -> None:
    steps = list[str]()
    assert looked_into(experiment, tell=steps.append).longest.kernel == "product"
    assert steps == [inside.LAUNCHES]
    found = looked_into(experiment, skip=steps)
    assert found.longest is found.launches[2] and found._alike == 0


@assembled
def test_an_altered_kernel_gets_the_argument_that_switches_its_work_off(experiment: ModuleType) -> None:
    source = 'extern "C" __global__ void k(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }'
    launch = Launch("k", (1, 1, 1), (32, 1, 1), ("x", "y"))
    variant = CudaVariant("v", "v", "rung", source=source, launches=lambda case, config: [launch])
    found = looked_into(experiment)
    compilation = compiler.compilation_of(variant, ["k"], "sm_90")
    vars(found).update(variant=variant, _original=compiler.compiled(compilation))
    kernels = ptx.parse(compiler.ptx_with_lines(compilation))
    altered = found._assembled(experiment._Altered(ablation.without(kernels, Work.GLOBAL_LOADS), numbers=(1, 0)))
    parameters.check(experiment._with_number(variant, 1).launches(CASE, {}), altered)
    with pytest.raises(WorkloadError, match="has 3 parameters"):
        parameters.check([launch], altered)
