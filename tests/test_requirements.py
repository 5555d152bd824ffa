"""The ranges of pyproject.toml, and the locks that `make lock` makes of them."""

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from tests.doc_pages import ROOT

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: Final = PROJECT["optional-dependencies"]


def _locked(file: str) -> dict[str, str]:
    """Name of each package of a lock -> its version."""
    lines = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==([^\s;]+)", (ROOT / file).read_text(), re.MULTILINE)
    return {name.lower(): version for name, version in lines}


@pytest.mark.parametrize(
    ("file", "extras"),
    [
        ("requirements.txt", ["dashboard", "host"]),
        ("requirements-dev.txt", ["dashboard", "host", "mcp", "mpi", "ncu", "sql"]),
        ("requirements-gpu.txt", ["gpu"]),
        ("requirements-gpu-cuda12.txt", ["gpu-cuda12"]),
        ("requirements-peers.txt", ["gpu", "peers"]),
    ],
)
def test_a_lock_has_a_version_of_each_range_that_make_lock_gives_it(file: str, extras: list[str]) -> None:
    locked = _locked(file)
    for text in [*PROJECT["dependencies"], *(text for extra in extras for text in EXTRAS[extra])]:
        need = Requirement(text)
        if need.marker is None or need.marker.evaluate():
            assert need.specifier.contains(locked[need.name.lower()]), text


def test_no_two_locks_of_one_environment_disagree() -> None:
    for first, second in (("requirements.txt", "requirements-dev.txt"), ("requirements-gpu.txt", "requirements-peers.txt")):
        one, other = _locked(first), _locked(second)
        assert {name: (version, other[name]) for name, version in one.items() if other.get(name, version) != version} == {}


def test_every_package_has_a_lower_bound_and_the_package_itself_pins_none() -> None:
    for text in [*PROJECT["dependencies"], *(each for extra in EXTRAS.values() for each in extra)]:
        operators = {each.operator for each in Requirement(text).specifier}
        assert ">=" in operators and operators <= {">=", "<"}, text


def test_the_core_needs_no_page_and_no_chart() -> None:
    core = {Requirement(text).name for text in PROJECT["dependencies"]}
    assert core.isdisjoint(Requirement(text).name for extra in EXTRAS.values() for text in extra)


def test_the_recipe_and_the_makefile_name_the_locks_that_there_are() -> None:
    named = set(re.findall(r"requirements[\w-]*\.txt", (ROOT / "Makefile").read_text()))
    assert named == {file.name for file in Path(ROOT).glob("requirements*.txt")}
