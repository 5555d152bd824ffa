"""Twenty figures of each page of cells, at random from the shipped runs, from the parquet files alone."""

import os
import random
from collections.abc import Callable, Sequence

import pytest

from tests.recomputed import cells, definitions, displayed
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import EACH, Figure, Rules, draw
from tests.recomputed.sentences import numbers
from warpladder.dashboard.compare import overview
from warpladder.dashboard.views import VIEWS

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("WARPLADDER_RECOMPUTED_SEED", "1"))
VIEW = {section.name: section for view in VIEWS for section in view.sections}


def of_charts(page: str, rules: Callable[[Shown], Rules | None], runs: int, tables: int) -> list[Figure]:
    """Figures of the charts of a page, from some runs at random that have any."""
    rng = random.Random(f"{page} {SEED}")
    found, used = [], 0
    for run in rng.sample(definitions.shipped(), len(definitions.shipped())):
        if not run.has("samples"):
            continue
        before = len(found)
        for shown in displayed.charts(VIEW[page], run.id, rng):
            if (known := rules(shown)) is not None:
                found.append((run, shown, known))
            if len(found) - before >= tables:
                break
        used += len(found) > before
        if used == runs:
            break
    return draw(rng, found, numbers)


def check(figures: Sequence[Figure], least: int = EACH) -> None:
    assert len(figures) >= least
    wrong = [str(figure) for figure in figures if not figure.agrees]
    assert not wrong, f"{len(wrong)} of {len(figures)} differ (seed {SEED}):\n" + "\n".join(wrong)


def _sizes(shown: Shown) -> Rules:
    return cells.WINNERS if "compared_in" in shown.frame else cells.SIZES


def _roofline(shown: Shown) -> Rules | None:
    return None if "executed_flop" in shown.frame or "counted" in shown.name else cells.ROOFLINE


def test_ladder() -> None:
    check(of_charts("ladder", lambda shown: cells.LADDER, 1, 4))


def test_sizes() -> None:
    check(of_charts("sizes", _sizes, 1, 4))


@pytest.mark.thorough
def test_roofline() -> None:
    check(of_charts("roofline", _roofline, 2, 2))


def test_ship() -> None:
    check(of_charts("ship", lambda shown: cells.SHIP, 2, 2))


def test_overview() -> None:
    """The best variants that Home and `summary` tell."""
    rng = random.Random(f"home {SEED}")
    timed = [run for run in definitions.shipped() if run.has("samples")]
    tables = [(run, overview.overview(displayed.loaded(run.id))) for run in rng.sample(timed, 3)]
    found = [(run, Shown("home", run.id, "overview", "", ("", "", ""), frame), cells.OVERVIEW) for run, frame in tables]
    check(draw(rng, found, numbers))
