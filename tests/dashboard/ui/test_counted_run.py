"""The run whose counters explain another run: of its variants, those whose sources are equal count."""

from pathlib import Path

from tests.synthetic import made_traces
from warpladder.dashboard.ui import counted_run
from warpladder.data import store


def test_a_variant_whose_source_differs_is_not_explained_by_its_counters(tmp_path: Path) -> None:
    timed = store.open_run(made_traces.write_collected(tmp_path, "cuda_events", "timed"))
    every = {variant for variant, _ in counted_run.sources(timed, "conv2d")}
    changed = min(every)
    counted = store.open_run(made_traces.write_collected(tmp_path, "nsight_compute", "counted", sources={changed: "other"}))
    own = {variant for variant, _ in counted_run.sources(counted, "conv2d")}
    assert changed in own
    assert counted_run.equal_variants(timed, counted, "conv2d") == (every & own) - {changed} != set()
