"""Wrong variants and inputs on PyTorch's tensors, on the host."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from tests.workloads.functions import wrong_tensors
from tests.workloads.functions.recording import record
from tests.workloads.functions.wrong_tensors import HEAD, INPUTS, LAST, SETTINGS, WRONG
from warpladder.data import store
from warpladder.data.names import Source
from warpladder.workloads import registry
from warpladder.workloads.api import WorkloadError

pytestmark = pytest.mark.xdist_group("wrong_tensors")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return record(tmp_path_factory.mktemp("wrong"), wrong_tensors.text())


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_variant_gets_its_verdict_in_one_line(name: str, run: store.Run) -> None:
    _, status, detail = WRONG[name]
    found = run.table("results").set_index("variant").loc[name]
    assert found["status"] == status and re.search(detail, found["detail"]) and "\n" not in found["detail"]


def test_variants_beside_wrong_ones_are_measured(run: store.Run) -> None:
    assert set(run.table("results").set_index("variant").loc[["first", "last"], "status"]) == {"ok"}


def test_changed_settings_of_pytorch_are_restored_and_said(run: store.Run) -> None:
    said = run.table("diagnostics")
    texts = said[said["source"] == Source.PROCESS_STATE].groupby("variant")["text"].apply(list)
    assert set(texts.index) == set(SETTINGS)
    assert all(SETTINGS[name] in text for name, [text] in texts.items())


def test_a_reference_in_float32_is_a_warning(run: store.Run) -> None:
    said = run.table("diagnostics")
    [row] = said[said["source"] == Source.REFERENCE].to_dict("records")
    assert row["severity"] == "warning" and "out with no more digits than the variants" in row["text"]


@pytest.mark.parametrize("given", INPUTS)
def test_wrong_inputs_are_told_in_one_line(given: str, tmp_path: Path) -> None:
    file = tmp_path / "bench.py"
    file.write_text(HEAD.replace("torch.randn(n, n + 1, requires_grad=True)", given) + LAST)
    with pytest.raises(WorkloadError) as told:
        registry.load_file(file)
    assert INPUTS[given] in str(told.value) and "\n" not in str(told.value)
