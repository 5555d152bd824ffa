"""Wrong variants: each gets one clear verdict, and those beside it are measured."""

import re
from pathlib import Path

import pytest

from tests.workloads.functions import wrong_variants
from tests.workloads.functions.recording import record
from tests.workloads.functions.wrong_variants import ALL, DEADLY, RIGHT, SETTINGS
from warpladder.collectors.core.rounds import Limits
from warpladder.data import store
from warpladder.data.names import Source

pytestmark = [pytest.mark.xdist_group("wrong_variants"), pytest.mark.slow]

#: Enough rounds that a variant is called twenty times.
_LIMITS = Limits(min_rounds=20, max_rounds=20, seconds=0.0)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return record(tmp_path_factory.mktemp("wrong"), wrong_variants.text_of(ALL), limits=_LIMITS)


@pytest.fixture(scope="module")
def verdicts(run: store.Run) -> dict[str, tuple[str, str]]:
    return {row["variant"]: (row["status"], row["detail"]) for row in run.table("results").to_dict("records")}


@pytest.mark.sampled(26)
@pytest.mark.parametrize("name", ALL)
def test_a_wrong_variant_gets_its_verdict_in_one_line(name: str, verdicts: dict[str, tuple[str, str]]) -> None:
    status, detail = verdicts[name]
    assert status == ALL[name].status and re.search(ALL[name].detail, detail)
    assert "\n" not in detail and len(detail) < 700 and "Traceback" not in detail and "user_workload" not in detail


def test_variants_beside_wrong_ones_are_measured(run: store.Run, verdicts: dict[str, tuple[str, str]]) -> None:
    assert {verdicts[name][0] for name in RIGHT} == {"ok"}
    samples = run.table("samples")
    assert set(RIGHT) <= set(samples[samples["scope"] == "operation"]["variant"])


@pytest.mark.parametrize("name", SETTINGS)
def test_a_changed_setting_of_the_process_is_restored_and_said(name: str, run: store.Run) -> None:
    said = run.table("diagnostics")
    [text] = said[(said["source"] == Source.PROCESS_STATE) & (said["variant"] == name)]["text"]
    assert SETTINGS[name][1] in text


def test_nothing_is_said_of_variants_that_change_no_setting(run: store.Run) -> None:
    said = run.table("diagnostics")
    assert set(said[said["source"] == Source.PROCESS_STATE]["variant"]) == set(SETTINGS)


@pytest.mark.thorough
def test_a_variant_that_ends_or_blocks_its_process_costs_no_other_its_result(tmp_path: Path) -> None:
    limits = Limits(min_rounds=2, max_rounds=2, cell_timeout_s=6.0)
    run = record(tmp_path, wrong_variants.text_of(DEADLY), limits=limits)
    results = run.table("results").set_index("variant")
    for name, wrong in DEADLY.items():
        assert results.loc[name, "status"] == wrong.status and re.search(wrong.detail, results.loc[name, "detail"])
    assert set(results.loc[list(RIGHT), "status"]) == {"ok"}
