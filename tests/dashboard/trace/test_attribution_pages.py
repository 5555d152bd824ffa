"""What Timeline and Ladder say of device work that is attributed to ranges by time, or to none."""

from pathlib import Path

import pytest

from tests.collectors.nsight_systems.reports import write
from tests.collectors.nsight_systems.training import training
from tests.dashboard.pages import plotted
from tests.dashboard.test_app import Open, open_app, words
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.data.naming import Naming

__all__ = ["open_app"]

pytestmark = pytest.mark.slow

Imported = tuple[Path, dict[str, str]]

PHASES = Naming.parse("nvtx:^(?P<variant>data|forward|backward|optimizer)$")
SHARES = "Of the device time, 41.6 % was launched inside NVTX ranges of the launching thread, 57.4 % is attributed by time"
NOT_SHARED = "41.6 % was launched inside NVTX ranges of the launching thread, 0 % is attributed by time"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """A folder with two imports whose ranges are variants, and their ids by name; in `several` two threads have ranges during the backward pass."""
    folder = tmp_path_factory.mktemp("training")
    runs = {
        name: import_report(
            write(folder / f"{name}.sqlite", training(other_ranges=name == "several")), folder, name, PHASES, []
        )
        for name in ("training", "several")
    }
    return folder, runs


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", ["timeline", "ladder"])
def test_the_share_that_is_attributed_by_time_is_shown(open_app: Open, imported: Imported, page: str) -> None:
    app = open_app(imported[0], page, run=imported[1]["training"])
    assert not app.error
    assert SHARES in words(app)
    assert NOT_SHARED in words(open_app(imported[0], page, run=imported[1]["several"]))


@pytest.mark.thorough
def test_the_ladder_names_a_variant_that_is_not_ranked_as_skipped(open_app: Open, imported: Imported) -> None:
    app = open_app(imported[0], "ladder", run=imported[1]["several"])
    assert not app.error
    assert "backward" not in plotted(app)[0]
    assert "Skipped: backward." in words(app)
    assert "Skipped" not in words(open_app(imported[0], "ladder", run=imported[1]["training"]))


def test_the_timeline_says_how_much_of_a_chosen_range_is_by_time(open_app: Open, imported: Imported) -> None:
    app = open_app(imported[0], "timeline", run=imported[1]["training"], chosen="ranges-3")
    assert "range backward" in words(app)
    assert "the GPU was busy for 590 ns, 580 ns of it attributed to it by time." in words(app)
