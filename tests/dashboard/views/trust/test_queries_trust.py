"""Findings and reasons to stop, as the checks list them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.dashboard.core.test_queries_cells import run_of, samples, variant
from warpladder.dashboard.compare import overview
from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.trust import chart
from warpladder.dashboard.views.trust import query as trust


def test_findings_stand_together_by_variant_with_errors_first() -> None:
    said = [
        {"severity": "warning", "source": "a", "text": "x", "workload": "w", "variant": "v01_a", "case": "n=1"},
        {"severity": "error", "source": "b", "text": "y"},
        {"severity": "warning", "source": "a", "text": "z", "workload": "w", "variant": "v01_a", "case": "n=2"},
        {"severity": "warning", "source": "a", "text": "x", "workload": "w", "variant": "v02_b", "case": "n=1"},
    ]
    found = trust.findings(run_of([], [], diagnostics=said))
    assert found[["severity", "variant", "cells", "example", "text"]].to_numpy().tolist() == [
        ["error", "", 1, "", "y"], ["warning", "v01_a", 2, "n=1", "x"], ["warning", "v02_b", 1, "n=1", "x"],
    ]  # fmt: skip


def test_findings_about_the_run_keep_each_text() -> None:
    said = [
        {"severity": "warning", "source": "throttling", "text": "w/n=1: 3 of 30"},
        {"severity": "warning", "source": "throttling", "text": "w/n=2: 5 of 30"},
        {"severity": "warning", "source": "throttling", "text": "15 of 30", "workload": "w", "variant": "v01_a", "case": "n=2"},
    ]
    found = trust.findings(run_of([], [], diagnostics=said))
    assert found[["variant", "cells", "text"]].to_numpy().tolist() == [
        ["", 2, "w/n=1: 3 of 30\nw/n=2: 5 of 30"], ["v01_a", 1, "15 of 30"],
    ]  # fmt: skip


def test_the_clock_beside_a_sample_is_called_that_of_nvml() -> None:
    for held, words in ((None, "<br>NVML: 1965 MHz, 41 °C"), (1587.4, "<br>held 1,587 MHz; NVML: 1965 MHz, 41 °C")):
        rows = samples("v01_a", range(100, 110), sm_clock_mhz=1965, temperature_c=41, held_clock_mhz=held)
        data = run_of([variant("v01_a")], rows)
        figure = chart.samples_over_rounds(data.samples, look(data)).figure
        assert words in figure.data[0].hovertext[0]


def test_reasons_to_stop_are_counted_without_the_figures_behind_them() -> None:
    results = [
        {"workload": "w", "variant": name, "case": "n=1", "status": status, "detail": detail}
        for name, status, detail in (
            ("v01_a", "ok", "device cold: converged, n=35, ±0.4%; operation hot: at the limit of 3 s, n=9, ±2%"),
            ("v02_b", "ok", "device cold: converged, n=40, ±0.1%"),
            ("v03_c", "timeout", "device cold: converged, n=1, ±0%"),
        )
    ]
    found = trust.stop_reasons(run_of([], [], results))
    assert dict(zip(found["reason"], found["cells"], strict=True)) == {
        "device cold: converged": 2,
        "operation hot: at the limit of 3 s": 1,
    }
    assert trust.statuses(run_of([], [], results)).to_dict("records") == [{"workload": "w", "ok": 2, "timeout": 1, "total": 3}]


def test_of_many_rough_winners_the_sentence_names_the_first() -> None:
    rough = tuple(f"numpy of w{number} is known to ±20 %" for number in range(5))
    assert trust.Verdict((), ("1 source changed since",), rough=rough).sentence == (
        "In part. Times of winners are rough: numpy of w0 is known to ±20 %, numpy of w1 is known to ±20 %, numpy of w2 is known to ±20 % "
        "and 2 more; 1 source changed since."
    )


def test_a_cell_that_failed_takes_nothing_from_the_winners(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    best = SimpleNamespace(workload="w", variant="v01_numpy", median_ns=Estimate(100.0, 99.0, 101.0))
    failed = {"workload": "w", "variant": "v02_b", "case": "n=1", "status": "wrong_result", "detail": "off"}
    run = run_of([variant("v02_b")], [], [failed])
    monkeypatch.setattr(overview, "lines", lambda *_: (best,))
    assert trust.verdict(run, tmp_path).sentence == "In part. 1 cell failed and cannot win, such as v02_b."
    monkeypatch.setattr(overview, "lines", lambda *_: (SimpleNamespace(**vars(best) | {"variant": ""}),))
    assert trust.verdict(run, tmp_path).sentence == "No: no trusted winner of w; 1 cell failed and cannot win, such as v02_b."


@pytest.mark.parametrize(
    ("high", "told"),
    [
        (109.0, "Yes: every cell is right, and the checks found nothing."),
        (146.0, "In part. Times of winners are rough: v01_numpy of w is known to ±23 %."),
    ],
)
def test_of_a_winner_with_a_wide_interval_the_time_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, high: float, told: str, tmp_path: Path
) -> None:
    best = SimpleNamespace(workload="w", variant="v01_numpy", median_ns=Estimate(100.0, 100.0, high))
    monkeypatch.setattr(overview, "lines", lambda *_: (best,))
    assert trust.verdict(run_of([], []), tmp_path).sentence == told
