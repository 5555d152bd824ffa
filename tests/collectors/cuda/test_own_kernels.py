"""The collectors' own kernels compile without a GPU, without spills."""

from pathlib import Path

import numpy as np
import pytest

import collectors
from tests.emulator.emulator import needs_compiler, run
from warpladder.collectors.cuda.compiler import compilation_of, compile_uncached, compile_variant
from warpladder.installation import ROOT
from warpladder.workloads.api import CudaVariant, Launch, read_source

KERNELS = Path(collectors.__file__).parent / "cuda" / "kernels"


@pytest.mark.parametrize(
    ("source", "kernels", "arch"),
    [
        ("timing.cu", ("write_lines", "read_lines", "hold_stream", "empty", "read_clocks", "wait_ns"), "sm_75"),
        ("fingerprint.cu", ("fingerprint",), "sm_75"),
        (
            "errors.cu",
            ("errors<float, double, 1, 1024>", "errors<double, double, 2, 1024>", "errors<int, int, 1, 1024>"),
            "sm_75",
        ),
        (
            "bandwidths.cu",
            (
                "move_bytes<1, 1, 8, 256, 0>",
                "move_bytes<8, 1, 2, 256, 0>",
                "move_bytes<1, 8, 2, 256, 0>",
                "move_bytes<0, 1, 4, 256, 0>",
            ),
            "sm_75",
        ),
        (
            "bandwidths.cu",
            (
                "move_bytes<1, 0, 8, 256, 0>",
                "move_bytes<2, 1, 8, 256, 1>",
                "move_bytes<1, 2, 8, 256, 2>",
                "move_bytes<1, 1, 1, 64, 3>",
            ),
            "sm_90",
        ),
        ("ceilings.cu", ("ceiling_fma_uniform",), "sm_75"),
        ("ceilings.cu", ("ceiling_fma_registers", "ceiling_fma_fp64"), "sm_90"),
        ("mma_ceilings.cu", ("ceiling_mma<Tf32>", "ceiling_mma<Fp16>", "ceiling_mma<Bf16>", "ceiling_mma<Int8>"), "sm_80"),
        *(
            ("mma_ceilings.cu", ("ceiling_mma<Fp8>", "ceiling_mma_fp64"), arch)
            for arch in ("sm_89", "sm_90", "sm_100", "sm_120")
        ),
        ("wgmma_ceilings.cu", tuple(f"ceiling_wgmma<{kind}>" for kind in ("Tf32", "Fp16", "Bf16", "Fp8", "Int8")), "sm_90a"),
    ],
)
def test_a_kernel_of_the_collectors_compiles(source: str, kernels: tuple[str, ...], arch: str) -> None:
    variant = CudaVariant("own", "own", "ceiling", source=KERNELS / source)
    compiled = compile_variant(variant, kernels, arch)
    assert {name: kernel.spill_bytes for name, kernel in compiled.kernels.items()} == dict.fromkeys(kernels, 0)
    assert not any(kernel.serialized for kernel in compiled.kernels.values())


def fingerprint(array: np.ndarray, blocks: int = 2) -> int:
    variant = CudaVariant("own", "own", "ceiling", source=KERNELS / "fingerprint.cu")
    total = np.zeros(1, np.uint64)
    words, rest = divmod(array.nbytes, 8)
    launch = Launch("fingerprint", (blocks, 1, 1), (64, 1, 1), ("words", np.uint64(words), np.int32(rest), "sum"))
    padded = np.zeros(words + 1, np.uint64)
    padded.view(np.uint8)[: array.nbytes] = array.view(np.uint8)
    run(variant, [launch], {"words": padded}, {"sum": total})
    return int(total[0])


@needs_compiler
def test_a_fingerprint_tells_any_changed_byte_and_any_two_that_changed_places() -> None:
    array = np.arange(1003, dtype=np.uint8)
    seen = {fingerprint(array), fingerprint(array[:-1])}
    for place in (0, 500, 999, 1000, 1002):
        other = array.copy()
        other[place] ^= 1
        seen.add(fingerprint(other))
    swapped = array.copy()
    swapped[[0, 8]] = swapped[[8, 0]]
    seen.add(fingerprint(swapped))
    assert len(seen) == 8
    assert fingerprint(array, blocks=5) == fingerprint(array)


@pytest.mark.parametrize("leaves", [False, True])
def test_the_compiler_says_whether_products_of_a_warpgroup_are_serialized(leaves: bool) -> None:
    source = """
__global__ void product(float* out, int steps) {
  extern __shared__ __align__(1024) char memory[];
  const float* b = (const float*)memory;
  float sums[32];
  unsigned a[2][4];
#pragma unroll 1
  for (int i = 0; i < steps; i += 2)
#pragma unroll
    for (int turn = 0; turn < 2; ++turn) {
      if (LEAVES && turn == 1 && i + 1 == steps) break;  // then ptxas does not see which fragments a product under way has
      for (int k = 0; k < 4; ++k) a[turn][k] = __float_as_uint(b[(i + turn) * 512 + 4 * threadIdx.x + k]);
      wgmma_fence();
      wgmma_tf32(sums, a[turn], wgmma_operand(b), i + turn > 0);
      wgmma_commit();
      wgmma_wait<1>();
    }
  wgmma_wait<0>();
  wgmma_keep(sums);
  out[threadIdx.x] = sums[0];
}""".replace("LEAVES", str(int(leaves)))
    whole = read_source(ROOT / "workloads" / "hopper.cuh") + source
    variant = CudaVariant("product", "", "rung", source=whole, only_architecture="sm_90a")
    assert compile_uncached(compilation_of(variant, ["product"], "sm_90")).kernels["product"].serialized == leaves
