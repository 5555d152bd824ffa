"""Layer normalisation: the kernels of kernels.cu, PyTorch's and NumPy's."""

import numpy as np

import warpladder

bench = warpladder.Benchmark(
    "layer_norm", title="Layer normalisation", rows=[8192], n=[1024, 4096, 8192], flops=lambda rows, n: 8 * rows * n
)


@bench.inputs
def inputs(rows, n, rng):
    return [rng.standard_normal(shape, np.float32) for shape in ((rows, n), n, n)]


@bench.variant(name="numpy")
@bench.reference
def layer_norm(x, weight, bias):
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5) * weight + bias


@bench.variant(role="peer", arrays="torch")
def pytorch(x, weight, bias):
    from torch.nn.functional import layer_norm

    return layer_norm(x, weight.shape, weight, bias)


def whole_vectors(n, block):
    return None if n % (4 * block) == 0 else f"n must be a multiple of {4 * block}: a thread takes whole vectors of 16 bytes"


BLOCKS = [{"block": 128}, {"block": 256}]
bench.cuda(
    "kernels.cu",
    kernel="thread_a_row",
    grid=lambda rows: -(-rows // 64),
    block=64,
    args=("x", "weight", "bias", "out", "rows", "n"),
    baseline=True,
)
bench.cuda(
    "kernels.cu",
    kernel="block_a_row<{block}>",
    grid="rows",
    block="block",
    args=("x", "weight", "bias", "out", "n"),
    configs=BLOCKS,
)
bench.cuda(
    "kernels.cu",
    kernel="row_in_registers<{block}, {n}>",
    grid="rows",
    block="block",
    configs=BLOCKS,
    skip=whole_vectors,
)
