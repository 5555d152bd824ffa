"""The sum of each row of a matrix: by one thread, by one warp, and by NumPy. Explained in docs/own-workload.md."""

import numpy as np

from warpladder.workloads.api import Buffer, Case, CudaVariant, HostVariant, Launch, Workload, ceil_div

KERNEL = """
template <int kLanes, int kColumns> __global__ void row_sum(const float* x, float* sums, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / kLanes, lane = threadIdx.x % kLanes;
  float sum = 0.0f;
  for (int k = lane; k < kColumns && row < rows; k += kLanes) sum += x[(size_t)row * kColumns + k];
  for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0 && row < rows) sums[row] = sum;
}"""


def rung(name, idea, lanes):
    def launches(case, config):
        rows, block = case.params["rows"], config["block"]
        grid = (ceil_div(rows * lanes, block), 1, 1)
        return [Launch(f"row_sum<{lanes}, 1000>", grid, (block, 1, 1), ("x", "sums", np.int32(rows)))]

    return CudaVariant(name, name, "rung", source=idea + KERNEL, launches=launches, configs=({"block": 128}, {"block": 256}))


WORKLOAD = Workload(
    name="row_sum",
    title="Sum of each row",
    cases=tuple(Case({"rows": n}, 999 * n, 4004 * n, ("quick", "full"), rank) for rank, n in enumerate((1000, 8000, 64000))),
    variants=(
        rung("v01_thread", "// Idea: A thread a row. Simple, but the threads of a warp read addresses a whole row apart.", 1),
        rung("v02_warp", "// Idea: A warp a row. Its lanes read neighbouring addresses, then add by shuffles.", 32),
        HostVariant("numpy", "NumPy", "host", run=lambda case, inputs, outputs: {"sums": inputs["x"].sum(axis=1)}),
    ),
    buffers=lambda case: ({"x": Buffer((case.params["rows"], 1000))}, {"sums": Buffer((case.params["rows"],))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal((case.params["rows"], 1000), np.float32)},
    reference=lambda case, inputs: {"sums": inputs["x"].sum(axis=1, dtype=np.float64)},
    baseline="v01_thread",
    host_baseline="numpy",
)
