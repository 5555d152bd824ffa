"""How often each of 256 values occurs among n bytes: kernels of Numba CUDA, where the values are uniform and where most are the same."""

import numpy as np
from numba import cuda, int32

import warpladder

bench = warpladder.Benchmark("histogram", arrays="numba", values=["uniform", "skewed"], n=[1 << 20, 1 << 24, 1 << 26])


@bench.inputs
def inputs(values, n, rng):
    x = rng.integers(0, 256, n, np.uint8)
    if values == "skewed":
        x[rng.random(n, np.float32) < 0.9] = 7
    return x


@bench.reference
def reference(x):
    return np.bincount(x, minlength=256).astype(np.int32)


@cuda.jit
def set_to_zero(bins):
    bins[cuda.grid(1)] = 0


@cuda.jit
def count_in_memory(x, bins):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, x[i], 1)


@cuda.jit
def count_by_block(x, bins):
    mine = cuda.shared.array(256, int32)
    thread = cuda.threadIdx.x
    mine[thread] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, x[i], 1)
    cuda.syncthreads()
    cuda.atomic.add(bins, thread, mine[thread])


@cuda.jit
def count_by_warp(words, bins):
    mine = cuda.shared.array((8, 256), int32)
    thread = cuda.threadIdx.x
    for warp in range(8):
        mine[warp, thread] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), words.size, cuda.gridsize(1)):
        for shift in range(0, 32, 8):
            cuda.atomic.add(mine, (thread // 32, (words[i] >> shift) & 255), 1)
    cuda.syncthreads()
    total = 0
    for warp in range(8):
        total += mine[warp, thread]
    cuda.atomic.add(bins, thread, total)


BLOCKS = [{"blocks": 256}, {"blocks": 1024}]


@bench.variant(baseline=True, requires=["numba_cuda"], configs=BLOCKS)
def memory_atomics(x, out, blocks, stream):
    """Idea: Every thread counts in global memory.

    Bottleneck: Atomic additions to the same address follow one another, and 256 addresses are few.
    """
    set_to_zero[128, 2, stream](out)
    count_in_memory[blocks, 256, stream](x, out)


@bench.variant(requires=["numba_cuda"], configs=BLOCKS)
def block_bins(x, out, blocks, stream):
    """Idea: Every block counts in shared memory, and adds its 256 sums to those in global memory.

    Bottleneck: The threads of a block still wait for each other where values are the same; and a load is one byte.
    """
    set_to_zero[128, 2, stream](out)
    count_by_block[blocks, 256, stream](x, out)


@bench.variant(requires=["numba_cuda"], configs=BLOCKS)
def warp_bins(x, out, blocks, stream):
    """Idea: Every warp has bins of its own, and a load brings four values."""
    set_to_zero[128, 2, stream](out)
    count_by_warp[blocks, 256, stream](x.view(np.uint32), out)


@bench.variant(arrays="cupy", role="peer", requires=["cupy"])
def cupy_bincount(x):
    """Idea: CuPy's own function. It waits for the GPU twice, to learn the least and the largest value."""
    import cupy

    return cupy.bincount(x, minlength=256).astype(np.int32)


@bench.variant(arrays="numpy")
def numpy_bincount(x):
    return np.bincount(x, minlength=256).astype(np.int32)
