"""The softmax of each row: in PyTorch, by torch.compile, and by a kernel in Triton."""

from contextlib import suppress

import torch

import warpladder

bench = warpladder.Benchmark("softmax", rows=[4096], n=[1024, 4096, 16384])


@bench.inputs
def inputs(rows, n):
    return torch.randn(rows, n)


@bench.variant(name="eager", baseline=True)
@bench.reference
def softmax(x):
    return torch.softmax(x, dim=1)


bench.variant(torch.compile(softmax), name="compiled", role="peer")

with suppress(ImportError):  # without Triton, `fused` is skipped
    import triton
    import triton.language as tl

    @triton.jit
    def softmax_rows(x, y, n, width: tl.constexpr):
        row, column = tl.program_id(0).to(tl.int64), tl.arange(0, width)
        values = tl.load(x + row * n + column, mask=column < n, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(y + row * n + column, powers / tl.sum(powers, axis=0), mask=column < n)


@bench.variant(requires=["triton"], configs=[{"warps": 4}, {"warps": 8}, {"warps": 16}])
def fused(x, warps):
    """Idea: A block a row. It reads the row once, keeps it in registers, and writes it once."""
    y = torch.empty_like(x)
    softmax_rows[(x.shape[0],)](x, y, x.shape[1], width=triton.next_power_of_2(x.shape[1]), num_warps=warps)
    return y
