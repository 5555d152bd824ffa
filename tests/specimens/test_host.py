"""Specimens on the host are caught, and the honest variants among them are not blamed."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from types import ModuleType

import pytest

from tests.specimens import honest_fields, honest_host, host_later, host_numbers, host_process, host_results, out_of_scope
from tests.specimens.catalogue import Honest, Kind, Restored, Specimen, joined
from tests.specimens.outcomes import Recorded, record

#: Files of variants, each of which is a run; and whether `make test` records it.
FILES = {
    host_results: True,
    host_numbers: False,
    host_process: False,
    host_later: False,
    honest_host: False,
    honest_fields: False,
}
SPECIMENS, HONEST = joined(*(file.found for file in FILES))
# Recorded once, not by each worker.
pytestmark = [pytest.mark.xdist_group("specimens"), pytest.mark.slow]
Runs = Callable[[ModuleType], Recorded]


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The run of a file, which is recorded when it is first asked for."""
    return cache(
        lambda file: record([f"{file.__name__.rpartition('.')[2]}.py"], "host_clock", tmp_path_factory.mktemp("specimens"))
    )


def params(kind: int) -> list[object]:
    """Each specimen (0) or honest variant (1) with its file."""
    return [
        pytest.param(each, file, id=_name(each), marks=() if usual else pytest.mark.thorough)
        for file, usual in FILES.items()
        for each in joined(file.found)[kind]
    ]


def _name(found: Specimen | Honest) -> str:
    kind = found.kind if isinstance(found, Specimen) else found.library
    return f"{kind}: {found.variant}".replace(" ", "_")


@pytest.mark.parametrize(("specimen", "file"), params(0))
def test_a_specimen_is_caught(specimen: Specimen, file: ModuleType, run_of: Runs) -> None:
    if host_process.CPUS == 1 and any(isinstance(each, Restored) for each in specimen.outcomes):
        pytest.skip("one processor, so that neither affinity nor threads can change")
    assert not run_of(file).fault_of(specimen)


@pytest.mark.parametrize(("honest", "file"), params(1))
def test_an_honest_variant_is_timed_and_not_blamed(honest: Honest, file: ModuleType, run_of: Runs) -> None:
    fault = run_of(file).fault_of_honest(honest)
    if fault.startswith("skipped: "):
        pytest.skip(fault)
    assert not fault


def test_every_class_has_its_specimens_and_their_sources() -> None:
    counts = Counter(each.kind for each in SPECIMENS)
    assert dict(counts) == {
        Kind.UNWRITTEN: 4,
        Kind.KEPT: 9,
        Kind.SKIPPED: 8,
        Kind.CONSTANT: 4,
        Kind.NUMBERS: 8,
        Kind.ELSEWHERE: 7,
        Kind.INPUTS: 2,
        Kind.SETTINGS: 9,
        Kind.CLOCK: 1,
        Kind.HARNESS: 1,
    }
    assert all(each.idea and each.source and each.outcomes for each in SPECIMENS)
    assert len({(each.workload, each.variant) for each in SPECIMENS}) == len(SPECIMENS)


def test_what_is_out_of_scope_has_a_source_and_a_reason() -> None:
    found = out_of_scope.OUT_OF_SCOPE
    assert all(each.idea and each.source.startswith("https://") and each.reason for each in found)
    assert len({each.name for each in found}) == len(found)
