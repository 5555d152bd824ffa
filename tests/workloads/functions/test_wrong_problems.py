"""Wrong inputs and references: each gets one clear verdict or diagnostic, and the other benchmarks of the file are measured."""

import re

import pandas as pd
import pytest

from tests.workloads.functions import wrong_problems
from tests.workloads.functions.recording import record
from tests.workloads.functions.wrong_problems import PROBLEMS
from warpladder.data import store
from warpladder.data.names import Source

pytestmark = [pytest.mark.xdist_group("wrong_problems"), pytest.mark.slow]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return record(tmp_path_factory.mktemp("problems"), wrong_problems.text())


@pytest.fixture(scope="module")
def results(run: store.Run) -> pd.DataFrame:
    return run.table("results").set_index("workload")


@pytest.mark.parametrize("name", PROBLEMS)
def test_wrong_inputs_or_a_wrong_reference_is_told_in_one_line(name: str, results: pd.DataFrame) -> None:
    status, detail = results.loc[name, ["status", "detail"]]
    assert status == PROBLEMS[name].status and re.search(PROBLEMS[name].detail, detail)
    assert "\n" not in detail and len(detail) < 400 and detail.count("WorkloadError") == 0


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_verifies_less_than_it_should_is_a_diagnostic(name: str, run: store.Run) -> None:
    table = run.table("diagnostics")
    said = [
        text for text in table[table["source"].isin([Source.REFERENCE, Source.INPUTS])]["text"] if text.startswith(f"{name}/")
    ]
    assert len(said) == bool(PROBLEMS[name].diagnostic)
    assert all(PROBLEMS[name].diagnostic in text for text in said)
