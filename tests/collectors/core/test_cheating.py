"""What is wrong is caught, whenever it goes wrong, and nobody else is blamed for it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.collectors.core import cheating, cheating_kernels
from tests.collectors.core.test_measure import Kept
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.measure import measure_case
from warpladder.collectors.core.plan import LIMITS, Job, Request, WorkloadRef, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.core.rounds import Turn
from warpladder.collectors.host.host_clock import HostBench
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.workloads.api import Case, HostVariant, Workload, WorkloadError

LIMITS_HERE = replace(LIMITS["quick"], seconds=0.05, cell_timeout_s=10.0, max_rounds=8, budget_s=None)
# Recorded once, not by each worker.
pytestmark = pytest.mark.xdist_group("cheating")


def recorded(module: Any, collector: str, data_dir: Path) -> store.Run:
    plan = make_plan(Request(files=[Path(module.__file__)]), LIMITS_HERE)
    run_id, _ = Recorder(plan, collector_of(collector)).record(data_dir, "", [])
    return store.open_run(data_dir / run_id)


@pytest.fixture(scope="module")
def on_host(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return recorded(cheating, "host_clock", tmp_path_factory.mktemp("host"))


@pytest.fixture(scope="module")
def on_gpu(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return recorded(cheating_kernels, "cuda_events", tmp_path_factory.mktemp("gpu"))


CHANGES_X = "changes its input x, which the other variants read"
IN_A_SAMPLE = "right at first, and wrong in a timed sample: "
STATUSES = {
    "zeroes_input": CHANGES_X,
    "doubles_in_place": CHANGES_X,
    "replaces_input": "",
    "unlocks_input": CHANGES_X,
    "writes_by_pointer": CHANGES_X,
    "changes_input_later": CHANGES_X,
    "wrong_from_the_fourth": IN_A_SAMPLE + "1000 of 1000 elements of y are not finite",
    "writes_only_over_nan": "with other inputs: relative L2 error",
    "keeps_a_copy": "with other inputs: relative L2 error",
    "returns_the_same_again": "with other inputs: 1000 of 1000 elements of y are not finite",
    "returns_a_launch": "returned Launched; return None after writing to the outputs, or a dict of arrays by name",
    "identity": "output y is a view of input x: nothing was computed",
}


def check(run: store.Run, statuses: Mapping[str, str], honest: set[str]) -> None:
    """All that cheat are caught with their reason and without samples, and the others are ok with samples."""
    results = run.table("results").set_index("variant")
    samples = set(run.table("samples")["variant"])
    for variant, detail in statuses.items():
        assert results.loc[variant, "status"] == "wrong_result", (variant, results.loc[variant, "detail"])
        assert detail in results.loc[variant, "detail"], variant
    assert set(results.index[results["status"] == "ok"]) == honest, results["detail"].to_dict()
    assert samples == honest


@pytest.mark.slow
def test_every_cheat_on_the_host_is_caught_and_no_neighbour_blamed(on_host: store.Run) -> None:
    refused = dict(STATUSES)
    del refused["replaces_input"]
    results = on_host.table("results").set_index("variant")
    assert results.loc["replaces_input", "status"] == "launch_error"
    assert "does not support item assignment" in results.loc["replaces_input", "detail"]
    check(on_host, refused, {"first", "last", "says_that_it_writes"})


def test_a_variant_that_says_so_gets_its_inputs_anew_each_time(on_host: store.Run) -> None:
    row = on_host.table("results").set_index("variant").loc["says_that_it_writes"]
    assert row["rel_l2_error"] == 0
    assert row["detail"].endswith("writes its inputs, which are copied anew before each execution, outside of the time")


@pytest.mark.gpu
def test_every_cheat_on_a_gpu_is_caught_and_no_neighbour_blamed(on_gpu: store.Run) -> None:
    check(on_gpu, cheating_kernels.STATUSES, {"first", "last", "numpy"})


# -- the workload's own ------------------------------------------------------------------------------------------------


def measured(**changes: Any) -> pd.DataFrame:
    """Rows of `results` of an honest variant, in a workload that is changed so."""
    honest = HostVariant("honest", "honest", "host", run=cheating.honest)
    workload = replace(cheating.WORKLOAD, variants=(honest,), host_baseline="honest", **changes)
    kept, case = Kept(), workload.cases[0].name
    job = Job(WorkloadRef("cheating"), case, (Cell("cheating", "honest", "", case),), 0)
    measure_case(job, workload, {"host": HostBench}, Turn(0, 0, LIMITS_HERE), kept)
    return pd.DataFrame(kept.tables["results"])


def reference(y: Any) -> Any:
    return lambda case, inputs: y


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "the reference gives nothing, and `buffers` declares y; make the names the same"),
        ({"z": np.zeros(1000)}, "the reference gives z, and `buffers` declares y; make the names the same"),
        ({"y": np.zeros(0)}, "the reference: y has shape (0,), and `buffers` declares (1000,)"),
        ({"y": np.zeros(1000, np.float16)}, "the reference: y has type float16, which cannot verify float32"),
        ({"y": np.zeros(1000, np.int64)}, "the reference: y has type int64, which cannot verify float32"),
        (
            {"y": np.full(1000, np.nan)},
            "the reference: y is NaN or infinite in every element, and no input is, so that nothing can be compared; make finite outputs",
        ),
        (None, "the reference gives NoneType; make it a dict of arrays by name"),
    ],
)
def test_a_reference_that_does_not_say_what_is_right_is_refused(given: Any, said: str) -> None:
    row = measured(reference=reference(given)).iloc[0]
    assert (row["status"], row["detail"]) == ("launch_error", said)


def test_a_reference_that_changes_its_inputs_is_refused() -> None:
    def changes(case: Case, inputs: Any) -> Any:
        inputs["x"] *= 2
        return {"y": inputs["x"]}

    row = measured(reference=changes).iloc[0]
    assert (row["status"], "read-only" in row["detail"]) == ("launch_error", True)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({}, "make_inputs gives nothing, and `buffers` declares x; make the names the same"),
        ({"x": np.ones(999, np.float32)}, "make_inputs: x has shape (999,), and `buffers` declares (1000,)"),
        ({"x": np.ones(1000)}, "make_inputs: x has type float64, and `buffers` declares float32"),
    ],
)
def test_inputs_other_than_declared_are_refused(made: Any, said: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        measured(make_inputs=lambda case, rng: made)
    assert str(refused.value) == said


@pytest.mark.parametrize("tolerance", [-1e-6, 1.0, float("nan"), float("inf")])
def test_a_tolerance_that_passes_anything_is_refused(tolerance: float) -> None:
    with pytest.raises(WorkloadError, match=r"cheating: tolerance of fp32 is .*; give one from 0 to below 1"):
        replace(cheating.WORKLOAD, tolerance={"fp32": tolerance})


@pytest.mark.slow
def test_inputs_that_are_always_the_same_are_no_reason_to_distrust() -> None:
    same: Workload = cheating.WORKLOAD
    x = same.make_inputs(same.cases[0], np.random.default_rng(1))
    assert measured(make_inputs=lambda case, rng: x).iloc[0]["status"] == "ok"
