"""The emulator itself, on kernels of a few lines: what it computes, and what it refuses."""

import numpy as np
import pytest

from tests.emulator.emulator import EmulationError, build, needs_compiler
from tests.emulator.tiny import emulate
from warpladder.workloads.api import CudaVariant, Launch

pytestmark = needs_compiler


def test_indices_cover_a_three_dimensional_grid_of_three_dimensional_blocks():
    source = """
    __global__ void k(const float* x, int* y) {
      int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      y[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 100 + thread;
    }"""
    y = emulate(source, grid=(2, 1, 3), block=(2, 2, 3), y=np.full(72, -1, np.int32))
    assert y.tolist() == [block * 100 + thread for block in range(6) for thread in range(12)]


@pytest.mark.parametrize("order", ["forward", "backward"])
def test_a_reversal_through_shared_memory_needs_and_has_its_barrier(order):
    source = """
    template <int N> __global__ void __launch_bounds__(N) k(const float* __restrict__ x, float* __restrict__ y) {
      __shared__ float tile[N];
      tile[threadIdx.x] = __ldcs(x + threadIdx.x);
      __syncthreads();
      __stcs(y + threadIdx.x, tile[N - 1 - threadIdx.x]);
    }"""
    y = emulate(source, "k<64>", block=(64, 1, 1), x=np.arange(64, dtype=np.float32), y=np.zeros(64, np.float32), order=order)
    assert y.tolist() == list(range(63, -1, -1))


@pytest.mark.parametrize(("order", "unwritten"), [("forward", 16), ("backward", 16)])
def test_shared_memory_read_before_it_is_written_is_nan(order, unwritten):
    source = """
    __global__ void k(const float* x, float* y) {
      __shared__ float tile[32];
      tile[threadIdx.x] = x[threadIdx.x];
      y[threadIdx.x] = tile[31 - threadIdx.x];
    }"""
    assert np.isnan(emulate(source, order=order)).sum() == unwritten


def test_dynamic_shared_memory_and_its_vector_type():
    source = """
    extern __shared__ float4 tile[];
    __global__ void k(const float4* x, float4* y) {
      tile[threadIdx.x] = x[threadIdx.x];
      __syncthreads();
      y[threadIdx.x] = tile[7 - threadIdx.x];
    }"""
    y = emulate(source, block=(8, 1, 1), dynamic=128)
    assert y[:8].tolist() == [28, 29, 30, 31, 24, 25, 26, 27]


def test_dynamic_shared_memory_declared_in_the_kernel_is_not_written_past_its_end():
    source = """
    __global__ void k(const float* x, float* y) {
      extern __shared__ __align__(16) float tile[];
      tile[threadIdx.x] = x[threadIdx.x];
    }"""
    with pytest.raises(EmulationError, match=r"k, block \(0, 0, 0\): write 0 bytes past the end of dynamic shared memory"):
        emulate(source, dynamic=124)


def test_shuffles_exchange_within_the_warp_and_within_their_width():
    source = """
    __global__ void k(const float* x, float* y) {
      int t = threadIdx.x;
      y[t] = __shfl_xor_sync(0xffffffffu, x[t], 1);
      y[32 + t] = __shfl_up_sync(0xffffffffu, x[t], 2);
      y[64 + t] = __shfl_down_sync(0xffffffffu, x[t], 3, 8);
      y[96 + t] = __shfl_sync(0xffffffffu, x[t], 5, 16);
    }"""
    y = emulate(source, y=np.full(128, np.nan, np.float32))
    assert y[:32].tolist() == [t ^ 1 for t in range(32)]
    assert y[32:64].tolist() == [0, 1, *range(30)]
    assert y[64:72].tolist() == [3, 4, 5, 6, 7, 5, 6, 7]
    assert y[96:].tolist() == [5] * 16 + [21] * 16


def test_a_shuffle_sum_over_two_warps_and_a_ballot():
    source = """
    __global__ void k(const float* x, float* y) {
      float sum = x[threadIdx.x % 32];
      for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
      unsigned odd = __ballot_sync(0xffffffffu, threadIdx.x & 1);
      if (threadIdx.x % 32 == 0) y[threadIdx.x / 32] = sum + (odd == 0xaaaaaaaau);
    }"""
    assert emulate(source, block=(64, 1, 1))[:2].tolist() == [497, 497]


def test_half_a_warp_may_shuffle_under_its_own_mask():
    source = """
    __global__ void k(const float* x, float* y) {
      if (threadIdx.x < 16) y[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, x[threadIdx.x], 8);
      else y[threadIdx.x] = -1;
    }"""
    assert emulate(source).tolist() == [t ^ 8 for t in range(16)] + [-1] * 16


def test_constants_are_set_by_name_and_scalars_arrive():
    source = """
    __constant__ float weights[4];
    __global__ void k(float* y, int n, float scale, unsigned long long shift) {
      for (int i = 0; i < n; i++) y[i] = fmaf(weights[i], scale, (float)min(shift, 7ull));
    }"""
    args = ("y", np.int32(3), np.float32(0.5), np.uint64(2**40))
    y = emulate(
        source, block=(1, 1, 1), args=args, x=np.float32([2, 4, 6]), y=np.zeros(4, np.float32), constants={"weights": "x"}
    )
    assert y.tolist() == [8, 9, 10, 0]


def test_atomics_add_up_over_blocks():
    source = "__global__ void k(const float* x, float* y) { atomicAdd(y, 1); atomicMax(y + 1, x[threadIdx.x]); }"
    assert emulate(source, grid=(3, 1, 1), y=np.zeros(2, np.float32)).tolist() == [96, 31]


def test_a_barrier_that_half_the_block_misses_is_an_error_and_no_hang():
    source = """
    __global__ void k(const float* x, float* y) {
      if (threadIdx.x < 24) return;
      __syncthreads();
      y[threadIdx.x] = 1;
    }"""
    with pytest.raises(
        EmulationError,
        match=r"block \(0, 0, 0\): deadlock: of 32 threads, 8 wait at __syncthreads\(\) of line 4, .* 24 have returned",
    ):
        emulate(source)


def test_two_halves_at_different_barriers_are_an_error():
    source = """
    __global__ void k(const float* x, float* y) {
      if (threadIdx.x < 8) __syncthreads();
      else
        __syncthreads();
    }"""
    with pytest.raises(
        EmulationError, match=r"deadlock: of 32 threads, 8 wait at __syncthreads\(\) of line 3, 24 at another one"
    ):
        emulate(source)


def test_a_barrier_that_counts_lets_threads_go_on_when_its_phase_ends_and_else_shows_in_the_deadlock():
    source = """
    __global__ void k(const float* x, float* y) {
      __shared__ Mbarrier barrier;
      __shared__ float sum;
      if (threadIdx.x == 0) mbarrier_init(&barrier, 31), sum = 0;
      __syncthreads();
      mbarrier_wait(&barrier, 1);
      if (threadIdx.x >= ARRIVE) sum += x[threadIdx.x], mbarrier_arrive(&barrier);
      else mbarrier_wait(&barrier, 0);
      y[threadIdx.x] = sum;
    }"""
    assert emulate(source.replace("ARRIVE", "1"))[0] == 496  # of 1 to 31
    with pytest.raises(EmulationError, match=r"deadlock: of 32 threads, .* 2 at a barrier that counts, 30 have returned"):
        emulate(source.replace("ARRIVE", "2"))


def test_a_shuffle_that_a_lane_of_its_mask_misses_is_an_error():
    source = """
    __global__ void k(const float* x, float* y) {
      if (threadIdx.x != 3) y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1);
      __syncthreads();
    }"""
    with pytest.raises(EmulationError, match=r"deadlock: of 32 threads, 1 wait at .* 31 in a warp operation"):
        emulate(source)


def test_a_lane_outside_its_own_mask_is_an_error():
    source = "__global__ void k(const float* x, float* y) { __syncwarp(0x0000ffffu); }"
    with pytest.raises(EmulationError, match="mask 0xffff is called by lane 16"):
        emulate(source)


@pytest.mark.parametrize(
    ("index", "what"),
    [
        ("40", r"write 32 bytes past the end of y"),  # within the canaries
        ("100000", r"tiny.cu:1: .*thread \(0, 0, 0\): write 399872 bytes past the end of y"),  # within the inaccessible pages
        ("-5", r"write 20 bytes before y"),
        ("-90000", r"tiny.cu:1: .*write 360000 bytes before y"),
    ],
)
def test_a_write_outside_a_buffer_is_an_error(index, what):
    source = f"__global__ void k(const float* x, float* y) {{ y[{index}] = 1; }}"
    with pytest.raises(EmulationError, match=what):
        emulate(source)


def test_a_read_just_past_a_buffer_is_nan_and_one_far_past_it_an_error():
    assert np.isnan(emulate("__global__ void k(const float* x, float* y) { y[threadIdx.x] = x[32 + threadIdx.x]; }")).all()
    with pytest.raises(EmulationError, match="read 3872 bytes past the end of x"):
        emulate("__global__ void k(const float* x, float* y) { y[threadIdx.x] = x[1000 + threadIdx.x]; }")


def test_a_loop_that_goes_one_element_too_far_on_both_sides_is_an_error():
    """What it writes past the output is the NaN beside the input."""
    with pytest.raises(EmulationError, match="write 0 bytes past the end of y"):
        emulate("__global__ void k(const float* x, float* y) { for (int i = 0; i <= 32; ++i) y[i] = x[i] * x[i]; }")


def test_a_write_to_an_input_is_an_error():
    with pytest.raises(EmulationError, match=r"tiny.cu:1: .*write of input x, byte 8"):
        emulate("__global__ void k(float* x, float* y) { x[2] = 1; }")


def test_an_index_outside_a_shared_array_is_an_error():
    source = """
    __global__ void k(const float* x, float* y) {
      __shared__ float tile[8][9];
      tile[threadIdx.x][0] = x[threadIdx.x];
    }"""
    with pytest.raises(EmulationError, match=r"tiny.cu:4: k, .*thread \(8, 0, 0\): index outside an array"):
        emulate(source)


def test_a_misaligned_vector_is_an_error():
    source = "__global__ void k(const float* x, float* y) { *(float4*)y = *(const float4*)(x + threadIdx.x); }"
    with pytest.raises(EmulationError, match=r"tiny.cu:1: .*thread \(1, 0, 0\): .*misaligned"):
        emulate(source)


@pytest.mark.parametrize(
    ("scalar", "what"),
    [
        (np.int64(3), "argument 1 is 'i' of 8 bytes; the parameter is 'i' of 4"),
        (np.float32(3), "argument 1 is 'f' of 4 bytes; the parameter is 'i' of 4"),
        ("x", "argument 1 is 'p' of 8 bytes; the parameter is 'i' of 4"),
        (3, "argument 3 is not a NumPy scalar"),
        ("z", "argument z is no buffer; known: x, y"),
    ],
)
def test_an_argument_of_another_type_than_the_parameters_is_an_error(scalar, what):
    with pytest.raises(EmulationError, match=what):
        emulate("__global__ void k(float* y, int n) { y[0] = n; }", args=("y", scalar))


def test_a_missing_argument_is_an_error():
    with pytest.raises(EmulationError, match="k takes 2 arguments; the launch has 1"):
        emulate("__global__ void k(float* y, int n) { y[0] = n; }", args=("y",))


@pytest.mark.parametrize(
    ("launch", "what"),
    [
        (Launch("k", (1, 65536, 1), (32, 1, 1), ("x", "y")), "grid"),
        (Launch("k", (1, 1, 0), (32, 1, 1), ("x", "y")), "grid"),
        (Launch("k", (1, 1, 1), (64, 32, 1), ("x", "y")), "1024 threads"),
        (Launch("k", (1, 1, 1), (1, 1, 128), ("x", "y")), "block"),
        (Launch("k", (1, 1, 1), (32, 1, 1), ("x", "y"), 250_000), "dynamic shared memory"),
        (Launch("j", (1, 1, 1), (32, 1, 1), ("x", "y")), "not among the kernels"),
    ],
)
def test_a_launch_that_every_device_refuses_is_an_error(launch, what):
    source = "__global__ void k(const float* x, float* y) {}"
    program = build(CudaVariant(name="tiny", title="", role="rung", source=source), ["k"])
    with pytest.raises(EmulationError, match=what):
        program.run([launch], {"x": np.zeros(4, np.float32)}, {"y": np.zeros(4, np.float32)})


def test_a_source_that_does_not_compile_is_an_error_that_names_the_line():
    with pytest.raises(EmulationError, match=r"tiny.cu:2:.*error.*nonsense"):
        emulate("__global__ void k(const float* x, float* y) {\n  nonsense;\n}")


def test_outputs_keep_what_a_kernel_does_not_write():
    y = np.arange(4, dtype=np.float32)
    assert emulate("__global__ void k(const float* x, float* y) { y[1] = -1; }", y=y).tolist() == [0, -1, 2, 3]


def test_a_tensor_core_product_of_fragments_is_the_product_of_the_matrices():
    source = """
    __global__ void k(const float* x, float* y) {  // x: a 16x8 by rows, then b 8x8 by columns; y: 16x8
      const int group = threadIdx.x / 4, member = threadIdx.x % 4;
      unsigned a[4], b[2];
      for (int i = 0; i < 4; i++) a[i] = to_tf32(x[(group + 8 * (i % 2)) * 8 + member + 4 * (i / 2)]);
      for (int i = 0; i < 2; i++) b[i] = to_tf32(x[128 + group * 8 + member + 4 * i]);
      float sums[4] = {1, 1, 1, 1};
      mma_m16n8k8_tf32(sums, a, b);
      for (int i = 0; i < 4; i++) y[(group + 8 * (i / 2)) * 8 + 2 * member + i % 2] = sums[i];
    }"""
    x = np.random.default_rng(1).integers(-8, 9, 192).astype(np.float32)  # whole numbers, which TF32 holds exactly
    y = emulate(source, x=x, y=np.zeros(128, np.float32))
    assert np.array_equal(y.reshape(16, 8), 1 + x[:128].reshape(16, 8) @ x[128:].reshape(8, 8).T)


def test_tf32_is_rounded_to_ten_bits_of_fraction_and_ties_go_away_from_zero():
    source = "__global__ void k(const float* x, float* y) { y[threadIdx.x] = __uint_as_float(to_tf32(x[threadIdx.x])); }"
    x = np.zeros(32, np.float32)
    x[:4] = [1 + 2.0**-10, 1 + 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-12]
    assert emulate(source, x=x)[:4].tolist() == [1 + 2.0**-10, 1 + 2.0**-10, -1 - 2.0**-10, 1]


def test_a_tensor_core_product_of_bf16_fragments_is_the_product_of_the_matrices():
    source = """
    __global__ void k(const float* x, float* y) {  // x: a 16x16 by rows, then b 16x8 by columns; y: 16x8
      const int group = threadIdx.x / 4, member = threadIdx.x % 4;
      unsigned a[4], b[2];
      for (int i = 0; i < 4; i++) {
        const float* pair = x + (group + 8 * (i % 2)) * 16 + 2 * member + 8 * (i / 2);
        a[i] = to_bf16_pair(pair[0], pair[1]);
      }
      for (int i = 0; i < 2; i++) {
        const float* pair = x + 256 + group * 16 + 2 * member + 8 * i;
        b[i] = to_bf16_pair(pair[0], pair[1]);
      }
      float sums[4] = {1, 1, 1, 1};
      mma_m16n8k16_bf16(sums, a, b);
      for (int i = 0; i < 4; i++) y[(group + 8 * (i / 2)) * 8 + 2 * member + i % 2] = sums[i];
    }"""
    x = np.random.default_rng(1).integers(-8, 9, 384).astype(np.float32)  # whole numbers, which BF16 holds exactly
    y = emulate(source, x=x, y=np.zeros(128, np.float32))
    assert np.array_equal(y.reshape(16, 8), 1 + x[:256].reshape(16, 16) @ x[256:].reshape(8, 16).T)


def test_bf16_is_rounded_to_seven_bits_of_fraction_and_ties_go_to_even():
    source = """
    __global__ void k(const float* x, float* y) {
      const unsigned pair = to_bf16_pair(x[2 * threadIdx.x], x[2 * threadIdx.x + 1]);
      y[2 * threadIdx.x] = __uint_as_float(pair << 16), y[2 * threadIdx.x + 1] = __uint_as_float(pair & 0xffff0000u);
    }"""
    x = np.zeros(64, np.float32)
    x[:4] = [1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-7, 1 + 2.0**-8 + 2.0**-20]
    assert emulate(source, x=x, y=np.zeros(64, np.float32))[:4].tolist() == [1, 1 + 2.0**-6, -1 - 2.0**-7, 1 + 2.0**-7]


def test_asynchronous_copies_arrive_and_those_that_are_not_valid_are_zeros():
    source = """
    __global__ void k(const float* x, float* y) {
      __shared__ float4 tile[8];
      if (threadIdx.x < 8) cp_async<16>(&tile[threadIdx.x], x + 4 * threadIdx.x, threadIdx.x < 6);
      cp_async_commit();
      cp_async_wait<0>();
      __syncthreads();
      y[threadIdx.x] = reinterpret_cast<float*>(tile)[threadIdx.x];
    }"""
    assert emulate(source).tolist() == [*range(24), *[0] * 8]
