"""A pinned baseline: kept in the URL and across pages, and the ratios of each page against it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.dashboard.compare.test_changes import MINE, OTHERS, run
from tests.dashboard.pages import choose_run, lead
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs, made_sweeps
from warpladder.dashboard.compare.changes import NotComparable, Options, Side, against_variant

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pinned")
    for run_id, seed in (("before", 7), ("after", 8)):
        made_runs.write(made, run_id, rounds=8, seed=seed, workloads=("conv2d",))
    made_runs.write_host_run(made, "host", rounds=8, workloads=("conv2d",))
    return made


def test_every_variant_is_compared_with_the_pinned_one_of_its_case() -> None:
    a, b = run("a", {}), run("b", {MINE: 1.4, OTHERS[0]: 0.7}, source="two")
    found = against_variant(Side(a, OTHERS[1]), Side(b), Options())
    assert {change.of_a for change in found} == {(OTHERS[1], "")} and len(found) == 11
    told = {change.variant: change.verdict for change in found}
    assert told == {**dict.fromkeys(OTHERS, "tied"), MINE: "slower", OTHERS[0]: "faster"}
    assert found[0].variant == MINE and found[0].ratio.value == pytest.approx(1.4)
    with pytest.raises(NotComparable, match="any-device"):
        against_variant(Side(a, MINE), Side(replace(b, info={**b.info, "device_name": "another"})))


@pytest.mark.thorough
def test_a_pin_stays_across_pages_until_it_is_taken_off(open_app: Open, folder: Path) -> None:
    page = open_app(folder, "ladder", run="before")
    assert "vs pinned" not in words(page)
    page.button(key="pin run").click().run()
    assert page.query_params["pin"] in ("before", ["before"]) and "this run is the pinned one" in words(page)
    choose_run(page, "after", pin="before")
    assert "vs pinned before:" in words(page) and " tied" in words(page)
    for other in ("sizes", "home", "counters", "compare"):
        lead(page, other)
        page.run()
        assert page.query_params["pin"] in ("before", ["before"]) and not page.exception
        assert ("vs pinned before:" in words(page)) == (other in ("sizes", "home")), other
        if other == "compare":
            assert page.main.selectbox(key="choose with").value == "before", "the pinned run is A"
    page.button(key="unpin").click().run()
    assert "pin" not in page.query_params and "pinned: before" not in words(page)


@pytest.mark.thorough
def test_a_link_pins_a_variant(open_app: Open, folder: Path) -> None:
    page = open_app(folder, "ladder", run="before", pin="before@v01_naive")
    assert "vs pinned before, v01_naive:" in words(page) and "faster" in words(page)


def test_a_pin_that_cannot_be_used_is_a_line(open_app: Open, folder: Path) -> None:
    page = open_app(folder, "ladder", run="before", pin="nothing@[x](y)")
    assert "The link pins nothing@[x](y), which is not a run here" in words(page)
    page = open_app(folder, "ladder", run="before", pin="host")
    assert "vs pinned host:" in words(page) and "was recorded on" in words(page)


@pytest.mark.thorough
def test_counters_are_shown_beside_those_of_the_pinned_run(open_app: Open, tmp_path: Path) -> None:
    for run_id in ("before", "after"):
        made_sweeps.write_counted(tmp_path, run_id)
    made_runs.write(tmp_path, "uncounted", rounds=8)
    assert "takes 1.00× its time there" in words(open_app(tmp_path, "counters", run="after", pin="before"))
    assert "it has no counters of this case" in words(open_app(tmp_path, "counters", run="after", pin="uncounted"))
