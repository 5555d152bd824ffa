"""Specimens on a GPU are caught, and the honest variants among them are not blamed."""

from collections import Counter

import pytest

from tests.specimens import gpu_numbers, gpu_results, honest_gpu
from tests.specimens.catalogue import Honest, Kind, Specimen, joined
from tests.specimens.outcomes import Recorded, record

FILES = (gpu_results, gpu_numbers, honest_gpu)
SPECIMENS, HONEST = joined(*(file.found for file in FILES))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    for module in ("cupy", "torch", "triton", "numba"):
        pytest.importorskip(module)
    return record(
        [f"{file.__name__.rpartition('.')[2]}.py" for file in FILES], "cuda_events", tmp_path_factory.mktemp("specimens")
    )


def _name(found: Specimen | Honest) -> str:
    kind = found.kind if isinstance(found, Specimen) else found.library
    return f"{kind}: {found.workload.removeprefix('specimens_gpu_')} {found.variant}".replace(" ", "_")


@pytest.mark.gpu
@pytest.mark.parametrize("specimen", SPECIMENS, ids=_name)
def test_a_specimen_is_caught(specimen: Specimen, run: Recorded) -> None:
    assert not run.fault_of(specimen)


@pytest.mark.gpu
@pytest.mark.parametrize("honest", HONEST, ids=_name)
def test_an_honest_variant_is_timed_and_not_blamed(honest: Honest, run: Recorded) -> None:
    fault = run.fault_of_honest(honest)
    if fault.startswith("skipped: "):
        pytest.skip(fault)
    assert not fault


def test_every_class_has_its_specimens_and_their_sources() -> None:
    counts = Counter(each.kind for each in SPECIMENS)
    assert dict(counts) == {
        Kind.UNWRITTEN: 5,
        Kind.SKIPPED: 7,
        Kind.ELSEWHERE: 5,
        Kind.CLOCK: 1,
        Kind.INPUTS: 2,
        Kind.KEPT: 7,
        Kind.CONSTANT: 1,
        Kind.NUMBERS: 6,
        Kind.SETTINGS: 2,
    }
    assert all(each.idea and each.source and each.outcomes for each in SPECIMENS)
    assert len({(each.workload, each.variant) for each in SPECIMENS}) == len(SPECIMENS)


def test_honest_variants_are_of_five_libraries() -> None:
    assert {each.library for each in HONEST} == {"PyTorch", "CuPy", "Triton", "Numba", "CUDA C++"}
    assert len(HONEST) >= 20
