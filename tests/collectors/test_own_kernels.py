"""The collectors' own kernels compile without a GPU, without spills."""

from pathlib import Path

import pytest

import collectors
from collectors.compiler import compile_variant
from workloads.api import CudaVariant

KERNELS = Path(collectors.__file__).parent / "kernels"


@pytest.mark.parametrize(
    ("source", "kernels", "arch"),
    [
        ("timing.cu", ("write_lines", "read_lines", "hold_stream", "empty"), "sm_75"),
        ("ceilings.cu", ("ceiling_copy<4>", "ceiling_read<4>", "ceiling_write<4>", "ceiling_fma_uniform"), "sm_75"),
        ("ceilings.cu", ("ceiling_fma_registers", "ceiling_mma_tf32"), "sm_90"),
        ("wgmma_ceiling.cu", ("ceiling_wgmma_tf32",), "sm_90a"),
    ],
)
def test_a_kernel_of_the_collectors_compiles(source: str, kernels: tuple[str, ...], arch: str) -> None:
    variant = CudaVariant("own", "own", "ceiling", source=KERNELS / source)
    compiled = compile_variant(variant, kernels, arch)
    assert {name: kernel.spill_bytes for name, kernel in compiled.kernels.items()} == dict.fromkeys(kernels, 0)
