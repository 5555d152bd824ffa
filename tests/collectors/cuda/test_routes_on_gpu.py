"""The routes from Python to a kernel, recorded on a GPU: both pitfalls are flagged, and no honest route is."""

from dataclasses import replace
from pathlib import Path

import pytest

from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.wiring import collector_of
from warpladder.data import hand_over, store
from warpladder.data.names import Phase, Source

pytestmark = pytest.mark.gpu

QUICK = replace(LIMITS["quick"], seconds=0.2, cell_timeout_s=120.0, budget_s=None)
CHEAP = ["v01_padded_tile", "cupy_raw_module", "cuda_bindings_driver", "cupy_unsynchronized", "cupy_view", "numpy_view"]
SPECIMENS = {"cupy_unsynchronized", "cupy_view", "numpy_view"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    data_dir: Path = tmp_path_factory.mktemp("routes")
    cases = ["n=64,calls=1", "n=64,calls=100", "n=1024,calls=1", "n=4096,calls=1"]
    plan = make_plan(Request(["call_routes"], cases=cases, variants=CHEAP), QUICK)
    run_id, _ = Recorder(plan, collector_of("cuda_events")).record(data_dir, "", [])
    return store.open_run(data_dir / run_id)


def test_the_pitfalls_are_flagged_and_the_routes_are_not(run: store.Run) -> None:
    found = run.table("diagnostics").query("severity == 'warning'")
    doubted = found[found["source"].isin([Source.NEVER_SYNCHRONIZED, Source.ABOVE_CEILING, Source.NOT_GROWING])]
    assert set(doubted["variant"]) == SPECIMENS
    pending = found[found["source"] == Source.NEVER_SYNCHRONIZED]
    assert ("cupy_unsynchronized", "n=4096,calls=1") in set(zip(pending["variant"], pending["case"], strict=True))


def test_every_route_hands_over_without_a_copy_and_has_the_steps_of_its_first_use(run: store.Run) -> None:
    results = run.table("results").set_index(["variant", "case"])
    samples = run.table("samples")
    for route in ("cupy_raw_module", "cuda_bindings_driver"):
        told = hand_over.of_detail(results.loc[(route, "n=1024,calls=1"), "detail"])
        assert told is not None and told[0]
        steps = set(samples.query("variant == @route and cache == 'cold'")["scope"])
        assert {Phase.CONTEXT, Phase.IMPORT, Phase.COMPILE, Phase.FIRST_CALL, Phase.HAND_OVER} <= steps
        assert (Phase.LOAD in steps) == (route == "cuda_bindings_driver")
