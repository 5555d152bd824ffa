"""Every kernel file of every workload: declared, explained, and compiled by NVRTC for the devices that it claims to run on."""

import pytest

from collectors.compiler import CompiledModule, compile_variant
from tests.workloads.declared import CUDA, WORKLOADS, emulation_cases, kernels, name_of
from workloads.api import CudaVariant, Workload

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
MOST_STATIC_SHARED_BYTES = 48 * 1024
MOST_REGISTERS = 255


def compute_capability(arch: str) -> tuple[int, int]:
    return divmod(int(arch.removeprefix("sm_")), 10)


def compiled(workload: Workload, variant: CudaVariant, arch: str) -> CompiledModule:
    return compile_variant(variant, kernels(variant, (*workload.cases, *emulation_cases(workload))), arch)


@pytest.mark.parametrize("workload", WORKLOADS, ids=name_of)
def test_the_declared_kernel_files_are_those_on_disk(workload):
    declared = {
        variant.source_path for variant in workload.variants if isinstance(variant, CudaVariant) and variant.source_file
    }
    on_disk = {f"workloads/{workload.name}/kernels/{file.name}" for file in _kernel_folder(workload).glob("*.cu")}
    assert declared == on_disk


@pytest.mark.parametrize(("workload", "variant"), CUDA, ids=name_of)
def test_a_kernel_file_is_named_after_its_variant_and_opens_with_all_four_header_fields(workload, variant):
    assert variant.source_file is None or variant.source_file.stem == variant.name
    assert [label for label, text in variant.header.items() if not text] == []


@pytest.mark.parametrize("workload", WORKLOADS, ids=name_of)
def test_rungs_are_numbered_in_the_order_of_the_ladder(workload):
    numbers = [variant.rung for variant in workload.variants if variant.role in {"ceiling", "rung"} and variant.kind == "cuda"]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("workload", "variant"), CUDA, ids=name_of)
def test_every_specialisation_compiles_without_spills_and_within_the_limits_of_a_block(workload, variant, arch):
    if compute_capability(arch) < variant.min_compute_capability:
        pytest.skip(f"{variant.name} needs compute capability {variant.min_compute_capability}")
    if variant.only_architecture not in ("", f"{arch}a"):
        pytest.skip(f"{variant.name} is written for {variant.only_architecture}")
    module = compiled(workload, variant, arch)
    assert module.cubin
    assert module.kernels
    for expression, kernel in module.kernels.items():
        assert kernel.spill_bytes == 0, expression
        assert 0 < kernel.registers <= MOST_REGISTERS, expression
        assert kernel.static_shared_bytes <= MOST_STATIC_SHARED_BYTES, expression


@pytest.mark.parametrize(("workload", "variant"), CUDA, ids=name_of)
def test_the_registers_of_a_kernel_leave_room_for_the_blocks_that_are_launched(workload, variant):
    """A block whose threads want more than the 65,536 registers of a multiprocessor does not start."""
    module = compiled(workload, variant, "sm_90")
    for case in (*workload.cases, *emulation_cases(workload)):
        for config in variant.configs:
            if variant.skip(case, config) is not None:
                continue
            for launch in variant.launches(case, config):
                x, y, z = launch.block
                assert module.kernels[launch.kernel].registers * x * y * z <= 65_536, launch.kernel


def _kernel_folder(workload: Workload):
    folders = {
        variant.source_file.parent for variant in workload.variants if isinstance(variant, CudaVariant) and variant.source_file
    }
    assert len(folders) == 1, "a workload keeps its kernels in one folder"
    return folders.pop()
