"""`warpladder doctor` on a machine that has nothing: each cure is one that brings what is missing."""

import json
import re
import shutil
import tomllib

import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

from tests.doc_pages import ROOT
from warpladder.__main__ import command
from warpladder.collectors import choice
from warpladder.collectors.core import entry
from warpladder.commands import doctor

EXTRAS = {
    extra: {Requirement(text).name for text in texts}
    for extra, texts in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].items()
}
#: What a package of an extra brings by itself.
BROUGHT = {"triton": "torch", "cutensor": "cutensor-cu13", "nvmath": "nvmath-python", "NPP": "nvidia-npp"}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with no optional package, and no program on PATH."""
    monkeypatch.setattr(doctor, "has_module", lambda module: False)
    monkeypatch.setattr(choice, "has_module", lambda module: False)
    monkeypatch.setattr(entry, "has_module", lambda module: False)
    monkeypatch.setattr(shutil, "which", lambda *words, **more: None)


@pytest.mark.usefixtures("bare")
def test_each_extra_that_a_cure_names_brings_what_is_missing() -> None:
    cured = set()
    for finding in doctor.examine():
        for extra in re.findall(r"warpladder\[([\w-]+)\]", finding.detail):
            package = BROUGHT.get(finding.what, finding.what)
            if not finding.is_met and finding.what not in ("GPU", "nvdisasm"):
                assert package in EXTRAS[extra], finding
                cured.add(package)
    assert cured >= {
        "cupy-cuda13x",
        "torch",
        "cuda-core",
        "mpi4py",
        "cupti-python",
        "ncu-report",
        "streamlit",
        "plotly",
        "numba",
        "mcp",
        "duckdb",
    }
    assert "warpladder app" not in dict(doctor.possible())


def test_the_findings_as_json_are_those_of_the_table() -> None:
    said = json.loads(CliRunner().invoke(command(), ["doctor", "--format", "json"]).stdout)
    assert [each["what"] for each in said["findings"]] == [each.what for each in doctor.examine()]
    assert all(set(each) == {"command", "does"} for each in said["possible"])
