"""Twenty figures of GPUs, Counters, and Runs & checks, at random from the shipped runs, from the parquet files alone."""

import random
import tempfile
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from tests import machine_code_run
from tests.recomputed import counts, definitions, displayed, occupancy
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import Rules, draw
from tests.recomputed.sentences import numbers
from tests.recomputed.test_cells import SEED, VIEW, check, of_charts
from warpladder.collectors.core.plan import Request
from warpladder.dashboard.compare import within_run
from warpladder.dashboard.core import counters, run_data
from warpladder.dashboard.views.trust import query
from warpladder.dashboard.views.trust import query as trust
from warpladder.dashboard.views.why.occupancy import query as occupancy_query
from warpladder.data import store

pytestmark = pytest.mark.slow


def _gpus(shown: Shown) -> Rules:
    return counts.SHARES if "share" in shown.frame else counts.GPUS


@pytest.mark.thorough
def test_gpus() -> None:
    rng = random.Random(f"gpus {SEED}")
    shared = [run for run in definitions.shipped() if run.has("samples") and (run.table("samples")["gpus"] > 1).any()]
    found = [
        (run, shown, _gpus(shown))
        for run in rng.sample(shared, 1)
        for shown in islice(displayed.charts(VIEW["gpus"], run.id, rng), 8)
    ]
    check(draw(rng, found, numbers))


@pytest.mark.thorough
def test_counters() -> None:
    rng = random.Random(f"counters {SEED}")
    found = []
    for run in rng.sample([run for run in definitions.shipped() if run.has("counters")], 1):
        data = displayed.loaded(run.id)
        for workload in rng.sample(counters.counted_workloads(data), 1):
            part = replace(data, counters=data.counters[data.counters["workload"] == workload])
            where = workload, counters.counted_cases(data, workload)[-1], ""
            shown = displayed.charts(VIEW["counters"], run.id, rng, part)
            found += [(run, each._replace(where=where), counts.COUNTERS) for each in shown]
    check(draw(rng, found, numbers))


def test_occupancy() -> None:
    """Of a run that is made here, because kernels compile without a GPU."""
    pytest.importorskip("cuda.bindings")
    with tempfile.TemporaryDirectory() as folder:
        asked = Request(
            names=["tensor_transpose"],
            cases=["n=64,perm=210", "n=128,perm=210"],
            variants=["v02_copy_shared", "v08_matrix_tile", "v11_swizzled_tile"],
        )
        run = definitions.Shipped(machine_code_run.write(Path(folder), asked))
        data = run_data.load(store.open_run(run.folder))
        found = []
        for case in data.code.cases("tensor_transpose"):
            frame = occupancy_query.rows(data, "tensor_transpose", case)
            shown = Shown("occupancy", run.id, case, "", ("tensor_transpose", case, ""), frame)
            found.append((run, shown, occupancy.OCCUPANCY))
        check(draw(random.Random(f"occupancy {SEED}"), found, lambda run, shown: []))


def test_runs_and_checks() -> None:
    rng = random.Random(f"trust {SEED}")
    every = definitions.shipped()
    # One run with a trace, and one of any.
    traced = rng.choice([run for run in every if run.has("kernels")])
    found = []
    for run in dict.fromkeys((traced, rng.choice(every))):
        data = displayed.loaded(run.id)
        tables = [("verdicts", trust.statuses(data), counts.VERDICTS), ("errors", trust.errors(data), counts.ERRORS),
                  ("skips", trust.skips(data), counts.SKIPS), ("stops", trust.stop_reasons(data), counts.STOPS),
                  ("noise", within_run.noise_floors(data), counts.NOISE)]  # fmt: skip
        if run.has("kernels"):
            tables += [
                ("kernels", query.unattributed(data), counts.UNATTRIBUTED),
                ("rounds", query.by_case(query.rounds(data)), counts.ROUNDS),
            ]
        for name, frame, rules in tables:
            found.append((run, Shown("trust", run.id, name, "", ("", "", ""), frame), rules))
    check(draw(rng, found, numbers))
    check(of_charts("trust", lambda shown: counts.SAMPLES, 1, 1), least=1)
