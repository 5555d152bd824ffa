"""Every kernel file of every workload: declared, explained, and compiled by NVRTC for the devices that it claims to run on."""

import math
import os
from collections.abc import Iterator, Sequence

import pytest

from tests.workloads.declared import CUDA, HOST, WORKLOADS, cells, emulation_cases, kernels, name_of, same_as
from warpladder.collectors.cuda import parameters
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.data import store
from warpladder.workloads.api import CudaVariant, Workload

pytestmark = pytest.mark.slow

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
#: Compile every specialisation for every architecture, which takes five minutes of a processor. By default those that are measured are
#: compiled for the one of the shipped runs, and each for one of the others in turn; of kernels for one architecture only, which take half
#: a minute each, those that a quick recording launches. `make test` compiles for the one of the shipped runs what a quick recording
#: launches and the first specialisation of each other function: of drafts, and of the first rung of each workload. Shipped runs tell of
#: the other rungs what NVRTC made of them, and `tests/test_recorded.py` that the sources are the same.
EVERY = bool(os.environ.get("WARPLADDER_EVERY_SPECIALISATION"))
RECORDED = "sm_90"
MOST_STATIC_SHARED_BYTES = 48 * 1024
MOST_REGISTERS = 255
REGISTERS = 65_536  # of a multiprocessor: a block whose threads want more does not start


def compute_capability(arch: str) -> tuple[int, int]:
    return divmod(int(arch.removeprefix("sm_")), 10)


@pytest.mark.parametrize("workload", WORKLOADS, ids=name_of)
def test_the_declared_kernel_files_are_those_on_disk(workload):
    declared = {
        variant.source_path for variant in workload.variants if isinstance(variant, CudaVariant) and variant.source_file
    }
    on_disk = {f"workloads/{workload.name}/kernels/{file.name}" for file in _kernel_folder(workload).glob("*.cu")}
    assert declared == on_disk


@pytest.mark.parametrize(("workload", "variant"), [*CUDA, *HOST], ids=name_of)
def test_a_kernel_file_is_named_after_its_variant_and_a_source_begins_with_the_four_fields(workload, variant):
    if isinstance(variant, CudaVariant) and (file := variant.source_file):
        assert file.stem == variant.name
        assert file.is_file(), f"{variant.name} is declared, and its source {file} is not there"
    lacking = [f"{field.title()}:" for field, words in variant.header.items() if not words]
    assert not lacking, f"the comment or docstring at the top of {variant.name} lacks {lacking}"


@pytest.mark.parametrize("workload", WORKLOADS, ids=name_of)
def test_rungs_are_numbered_in_the_order_of_the_ladder(workload):
    numbers = [variant.rung for variant in workload.variants if variant.role in {"ceiling", "rung"} and variant.kind == "cuda"]
    assert numbers == sorted(set(numbers))


def test_no_rung_of_a_shipped_run_spills() -> None:
    compiled = dict[tuple[str, str], set[float]]()
    for run in store.list_runs([store.RECORDED])[0]:
        rows = run.table("variants").dropna(subset="spill_bytes")
        for workload, variant, registers, spilled in zip(
            rows["workload"], rows["variant"], rows["registers"], rows["spill_bytes"], strict=True
        ):
            assert 0 < registers <= MOST_REGISTERS, (run.run_id, workload, variant)
            compiled.setdefault((workload, variant), set()).add(spilled)
    assert set().union(*compiled.values()) == {0}
    shipped = {(workload.name, variant.name) for workload, variant in CUDA if not (workload.draft or variant.draft)}
    assert shipped <= set(compiled)


def _compilations() -> Iterator[object]:
    first = {workload.name: variant for workload, variant in reversed(CUDA)}
    for workload, variant in CUDA:
        told = not (workload.draft or variant.draft or variant is first[workload.name])
        for arch, part in ((RECORDED, "quick"), *((arch, "others") for arch in ARCHITECTURES)):
            thorough = part == "others" or told
            name = f"{workload.name}-{variant.name}-{arch}-{part}"
            yield pytest.param(workload, variant, arch, part, id=name, marks=[pytest.mark.thorough] if thorough else [])


@pytest.mark.parametrize(("workload", "variant", "arch", "part"), [*_compilations()])
def test_every_specialisation_compiles_without_spills_and_within_the_limits_of_a_block(workload, variant, arch, part):
    if compute_capability(arch) < variant.min_compute_capability:
        pytest.skip(f"{variant.name} needs compute capability {variant.min_compute_capability}")
    if variant.only_architecture not in ("", f"{arch}a"):
        pytest.skip(f"{variant.name} is written for {variant.only_architecture}")
    if original := same_as(variant, lambda of, each: (kernels(each, _cases(of, each)), each.min_compute_capability)):
        pytest.skip(f"{workload.name} {variant.name} is the code of {original}")
    cases = _cases(workload, variant)
    chosen = _chosen(workload, variant, arch, part)
    if not chosen:
        pytest.skip(f"{arch} has its turn at other specialisations; WARPLADDER_EVERY_SPECIALISATION=1 compiles all")
    module = compile_variant(variant, chosen, arch)
    assert module.cubin
    assert module.kernels
    for expression, kernel in module.kernels.items():
        assert kernel.spill_bytes == 0, expression
        assert not kernel.serialized, (
            f"{expression}: products of a warpgroup wait for one another; ptxas names the cause, C7510 to C7514"
        )
        assert 0 < kernel.registers <= MOST_REGISTERS, expression
        assert kernel.static_shared_bytes <= MOST_STATIC_SHARED_BYTES, expression
    for _, _, launches in cells(variant, cases):
        for launch in launches:
            if launch.kernel in module.kernels:
                parameters.check([launch], module)
                registers, threads = module.kernels[launch.kernel].registers, math.prod(launch.block)
                assert registers * threads <= REGISTERS, (
                    f"{launch.kernel}: a block of {threads} threads cannot have {registers} registers a thread"
                )


def test_by_default_every_specialisation_is_compiled_for_one_architecture_in_turn_besides_the_recorded_one() -> None:
    names = [f"kernel<{number}>" for number in range(5)]
    for _, variant in CUDA:
        assert sorted(name for arch in _others(variant) for name in _in_turn(variant, names, arch)) == names


def _chosen(workload: Workload, variant: CudaVariant, arch: str, part: str) -> list[str]:
    """The specialisations that are compiled for an architecture: of the shipped runs, those of a quick recording or the others."""
    every = kernels(variant, _cases(workload, variant))
    if arch != RECORDED:
        return every if EVERY else _in_turn(variant, every, arch)
    measured = every if EVERY or variant.only_architecture else kernels(variant, workload.cases)
    quick = kernels(variant, (case for case in workload.cases if "quick" in case.sets))
    first_of_function = {name.partition("<")[0]: name for name in reversed(measured)}
    started = {name.partition("<")[0] for name in quick}
    chosen = {*quick, *(name for function, name in first_of_function.items() if function not in started)}
    return [name for name in measured if (name in chosen) == (part == "quick")]


def _in_turn(variant: CudaVariant, names: Sequence[str], arch: str) -> list[str]:
    """Of these names the part of one of the other architectures; each variant begins with another one."""
    others = _others(variant)
    first = others.index(arch) + [each for _, each in CUDA].index(variant)
    return list(names[first % len(others) :: len(others)])


def _others(variant: CudaVariant) -> list[str]:
    return [arch for arch in ARCHITECTURES if arch != RECORDED and compute_capability(arch) >= variant.min_compute_capability]


def _cases(workload: Workload, variant: CudaVariant):
    if variant.only_architecture:
        return tuple(case for case in workload.cases if EVERY or "quick" in case.sets)
    return (*workload.cases, *emulation_cases(workload))


def _kernel_folder(workload: Workload):
    folders = {
        variant.source_file.parent for variant in workload.variants if isinstance(variant, CudaVariant) and variant.source_file
    }
    assert len(folders) == 1, "a workload keeps its kernels in one folder"
    return folders.pop()
