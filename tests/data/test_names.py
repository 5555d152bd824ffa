"""Names that rooms share: each is declared in `data.names`, and no module writes or asks for another."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.trees import nodes
from warpladder.data import store
from warpladder.data.names import CEILINGS, PHASES, SOURCES, Ceiling, Phase, Source, by_size, found_by_size, nccl_allreduce

pytestmark = [pytest.mark.xdist_group("trees"), pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
MODULES = [file for room in ("collectors", "dashboard") for file in sorted((ROOT / room).rglob("*.py"))]
#: Functions that take a diagnostic's severity, source and text.
TELL = {"diagnostic_row", "diagnostic", "_diagnose", "add", "count"}
CLASSES = {"Ceiling": Ceiling, "Phase": Phase, "Source": Source}
RUNS = store.list_runs([store.RECORDED])[0]


def names_of(declared: type) -> set[str]:
    return {value for name, value in vars(declared).items() if not name.startswith("_")}


@pytest.mark.parametrize(("declared", "meanings"), [(Ceiling, CEILINGS), (Phase, PHASES), (Source, SOURCES)])
def test_every_name_has_a_meaning_in_the_data_dictionary(declared: type, meanings: Mapping[str, str]) -> None:
    assert names_of(declared) == set(meanings)
    assert all(meanings.values())


def test_a_name_by_size_is_found_again_and_no_other_is() -> None:
    assert by_size(Ceiling.DEVICE_2_TO_1, "cold", 16711680) == "device_2_to_1_cold_16711680_bytes"
    assert found_by_size("device_2_to_1_cold_16711680_bytes") == (Ceiling.DEVICE_2_TO_1, "cold", 16711680)
    assert not any(map(found_by_size, (*CEILINGS, nccl_allreduce(7), "device_copy_warm_1_bytes")))


def sources_told(file: Path) -> Iterator[ast.expr]:
    """What each call that tells a diagnostic gives for its source."""
    for node in nodes(file):
        if isinstance(node, ast.Call) and len(node.args) >= 3:
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            severity = node.args[0]
            if function in TELL and (not isinstance(severity, ast.Constant) or severity.value in ("info", "warning", "error")):
                yield node.args[1]


def test_every_diagnostic_that_a_collector_writes_has_a_declared_source() -> None:
    told = [source for file in MODULES for source in sources_told(file)]
    passed_on = [source for source in told if isinstance(source, ast.Name) and source.id in ("source", "correlation")]
    named = [source for source in told if source not in passed_on]
    assert len(named) > 30
    assert [ast.unparse(source) for source in named if not ast.unparse(source).startswith("Source.")] == []


def attributes(file: Path) -> Iterator[tuple[str, str]]:
    """Each `Ceiling.X`, `Phase.X` and `Source.X` of a module."""
    for node in nodes(file):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in CLASSES:
            yield node.value.id, node.attr


def test_what_modules_write_and_ask_for_is_declared_and_all_that_is_declared_is_written() -> None:
    of = {file: set(attributes(file)) for file in MODULES}
    written = {each for file in MODULES if "collectors" in file.relative_to(ROOT).parts for each in of[file]}
    asked = set().union(*of.values()) - written
    assert all(hasattr(CLASSES[of], name) for of, name in written | asked)
    declared = {(of, name) for of, each in CLASSES.items() for name in vars(each) if not name.startswith("_")}
    # It stands in runs of earlier versions.
    assert declared - written == {("Source", "COUNTERS")}


#: Names that are no words of English besides, so that a literal of them stands for the name.
LITERALS = {name for name in {**CEILINGS, **PHASES, **SOURCES} if set("_:") & set(name)} - {"nsight_compute"}


def test_no_module_repeats_a_name_as_a_literal() -> None:
    literals = {file: {node.value for node in nodes(file) if isinstance(node, ast.Constant)} for file in MODULES}
    assert {file: found & LITERALS for file, found in literals.items() if found & LITERALS} == {}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.run_id)
def test_every_name_of_the_recorded_runs_is_declared(run: store.Run) -> None:
    ceilings = set(run.table("ceilings")["name"]) if "ceilings" in run.tables else set()
    assert {name for name in ceilings if name not in CEILINGS and not found_by_size(name)} <= {nccl_allreduce(3_180_040)}
    sources = set(run.table("diagnostics")["source"]) if "diagnostics" in run.tables else set()
    assert sources <= set(SOURCES)
    if "samples" in run.tables:
        scopes = set(run.table("samples")["scope"])
        assert {scope for scope in scopes if scope.startswith("phase:")} <= set(PHASES)
