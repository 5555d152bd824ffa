"""A workload whose GPU variants cheat, or are careless, between honest ones; for the tests of what verification catches on a GPU."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, CudaVariant, HostVariant, Launch, LibraryVariant, Workload

SOURCE = """
__device__ unsigned calls;
extern "C" __global__ void doubled(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
extern "C" __global__ void zeroes_input(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] = 0;
}
extern "C" __global__ void doubles_in_place(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] *= 2;
}
extern "C" __global__ void wrong_from_the_fourth(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && calls < 3) y[i] = 2 * x[i];
}
extern "C" __global__ void changes_input_later(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
  if (i == n - 1 && calls > 20) x[i] = 0;
}
extern "C" __global__ void writes_only_over_nan(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && y[i] != y[i]) y[i] = 2 * x[i];
}
extern "C" __global__ void counted() { ++calls; }
"""


def kernel(name: str, called: str = "", **options: Any) -> CudaVariant:
    def launches(case: Case, config: Any) -> tuple[Launch, ...]:
        n = case.params["n"]
        count = (Launch("counted", (1, 1, 1), (1, 1, 1), ()),)
        return (Launch(name, (-(-n // 256), 1, 1), (256, 1, 1), ("x", "y", np.int32(n))), *count)

    return CudaVariant(called or name, called or name, "rung", source=SOURCE, launches=launches, **options)


def doubles(case: Case, inputs: Any, outputs: Any) -> Callable[[], None]:
    import cupy

    return lambda: cupy.copyto(outputs["y"], inputs["x"] * 2)


def library_zeroes_input(case: Case, inputs: Any, outputs: Any) -> Callable[[], None]:
    def run() -> None:
        inputs["x"].fill(0)
        outputs["y"].fill(0)

    return run


def library_keeps_a_copy(case: Case, inputs: Any, outputs: Any) -> Callable[[], None]:
    import cupy

    copy = inputs["x"] * 2
    return lambda: cupy.copyto(outputs["y"], copy)


def library_returns_the_same_again(case: Case, inputs: Any, outputs: Any) -> Callable[[], Any]:
    kept = {"y": inputs["x"] * 2}
    return lambda: kept


def library_does_less_in_a_graph(case: Case, inputs: Any, outputs: Any) -> Callable[[], None]:
    import cupy

    def run() -> None:
        if not cupy.cuda.get_current_stream().is_capturing():
            cupy.multiply(inputs["x"], 2, out=outputs["y"])

    return run


def library_launches_once_in_a_graph(case: Case, inputs: Any, outputs: Any) -> Callable[[], None]:
    """The first execution of each capture computes."""
    import cupy

    state = {"captured": False}

    def run() -> None:
        capturing = cupy.cuda.get_current_stream().is_capturing()
        if not (capturing and state["captured"]):
            cupy.multiply(inputs["x"], 2, out=outputs["y"])
        state["captured"] = capturing

    return run


def library_never_writes(case: Case, inputs: Any, outputs: Any) -> Callable[[], Any]:
    import cupy

    return lambda: {"y": cupy.empty_like(inputs["x"])}


def library_returns_a_view(case: Case, inputs: Any, outputs: Any) -> Callable[[], Any]:
    return lambda: {"y": inputs["x"][:]}


def program_writes_its_input(case: Case, inputs: Any, outputs: Any) -> Callable[[], None]:
    def run() -> None:
        inputs["x"].flags.writeable = True
        np.multiply(inputs["x"], 2, out=inputs["x"])
        np.copyto(outputs["y"], inputs["x"])

    return run


def copied(case: Case, inputs: Any) -> dict[str, Any]:
    return {"y": inputs["x"].astype(np.float64)}


def library(prepare: Callable[..., Any], **options: Any) -> LibraryVariant:
    return LibraryVariant(prepare.__name__, prepare.__name__, "peer", prepare=prepare, **options)


N = 100_003
CHANGES_X = "changes its input x, which the other variants read"
IN_A_SAMPLE = "right at first, and wrong in a timed sample: "
STATUSES: Final = {
    "zeroes_input": CHANGES_X,
    "doubles_in_place": CHANGES_X,
    "doubles_in_place_graph": CHANGES_X,
    "wrong_from_the_fourth": IN_A_SAMPLE + "relative L2 error",
    "wrong_from_the_fourth_graph": IN_A_SAMPLE + "relative L2 error",
    "changes_input_later": CHANGES_X,
    "writes_only_over_nan": "with other inputs: relative L2 error",
    "library_zeroes_input": CHANGES_X,
    "library_keeps_a_copy": "with other inputs: relative L2 error",
    "library_returns_the_same_again": f"with other inputs: {N} of {N} elements of y are not finite",
    "library_does_less_in_a_graph": "in the batch that is timed hot: ",
    "library_launches_once_in_a_graph": "in a batch whose inputs change: ",
    "library_never_writes": f"{N} of {N} elements of y are not finite: never written",
    "library_returns_a_view": "output y is a view of input x: nothing was computed",
    "program_writes_its_input": CHANGES_X,
}

WORKLOAD = Workload(
    name="cheating_kernels",
    title="Doubling on a GPU, not done",
    cases=(Case({"n": N}, flops=N, min_bytes=8 * N, sets=("quick",)),),
    variants=(
        kernel("zeroes_input"),  # before all others: what is right is known already
        kernel("doubled", "first"),
        kernel("doubles_in_place"),
        kernel("doubles_in_place", "doubles_in_place_graph", graph=True),
        kernel("wrong_from_the_fourth"),
        kernel("wrong_from_the_fourth", "wrong_from_the_fourth_graph", graph=True),
        kernel("changes_input_later"),
        kernel("writes_only_over_nan"),
        library(library_zeroes_input),
        library(library_keeps_a_copy),
        library(library_returns_the_same_again),
        library(library_does_less_in_a_graph),
        library(library_launches_once_in_a_graph),
        library(library_never_writes),
        library(library_returns_a_view, reference=copied),
        library(program_writes_its_input, device_only=False),
        LibraryVariant("last", "CuPy", "peer", prepare=doubles),
        HostVariant("numpy", "NumPy", "host", run=lambda case, inputs, outputs: {"y": 2 * inputs["x"]}),
    ),
    buffers=lambda case: ({"x": Buffer((N,))}, {"y": Buffer((N,))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(N, dtype=np.float32)},
    reference=lambda case, inputs: {"y": 2.0 * inputs["x"].astype(np.float64)},
    baseline="first",
)
