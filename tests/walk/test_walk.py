"""Every section over every shipped run and over fresh runs of this machine; `make walk` chooses each option of each of them as well."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.walk import fresh
from tests.walk.in_process import Walk
from warpladder.dashboard.core.run_index import ListedRun
from warpladder.dashboard.ui import runs
from warpladder.dashboard.views import VIEWS
from warpladder.data import store

pytestmark = [pytest.mark.xdist_group("walk"), pytest.mark.slow]
SHIPPED = sorted(path.name for path in store.RECORDED.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh.record(tmp_path_factory.mktemp("fresh"), *fresh.BRIEF)


@pytest.fixture(scope="module")
def walk(folder: Path) -> Iterator[Walk]:
    """A walk over the shipped runs and the fresh ones, which are the only ones of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "LOCAL", folder.parent / "none")
        patch.setenv(runs.DATA_DIR_VARIABLE, str(folder))
        yield Walk()


def listed(folder: Path) -> list[ListedRun]:
    return list(runs.listing((folder, store.RECORDED)).index.values())


#: Pages that show other runs too: they are opened of every third run.
OF_OTHERS = ("home", "reports")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["fresh", *SHIPPED])
def test_every_section_shows_something_of_a_run_or_leads_to_one(walk: Walk, folder: Path, name: str) -> None:
    walk.problems.clear()
    for each in (each for each in listed(folder) if (each.run.path.name if each.shipped else "fresh") == name):
        for view in VIEWS:
            if view.name in OF_OTHERS and each.shipped and SHIPPED.index(name) % 3:
                continue
            for section in view.applying(each.fits) or view.sections[:1]:
                app = walk.open(view, run=each.name, section=section.name)
                walk.expect_content(app, view, f"{section.name} {each.name}")
                walk.next_option(app, view, each.name)
    assert walk.problems == []


@pytest.mark.thorough
def test_a_fresh_machine_has_a_menu_of_pages_that_show_something(walk: Walk, folder: Path) -> None:
    every = [each for each in listed(folder) if not each.shipped]
    walk.problems.clear()
    for each in every:
        menu = {view.name for view in VIEWS if view.applying(each.fits)}
        right = each.run.table("results").query("status == 'ok'")[["workload", "case"]].drop_duplicates()
        sizes = right.merge(each.run.table("cases").dropna(subset="size_rank")).groupby("workload").size()
        several = {"sizes"} if sizes.max() > 1 else set()
        assert menu == {"home", "ladder", "devices", "compare", "trust"} | several | ({"reports"} & menu), (
            "a host has no kernels"
        )
        for view in (view for view in VIEWS if view.name in menu):
            app = walk.open(view, run=each.name)
            walk.expect_content(app, view, each.name)
    assert walk.problems == []


@pytest.mark.thorough
def test_no_specimen_is_compared_at_first(walk: Walk, folder: Path) -> None:
    """`numpy_view` of tensor_transpose is one, and the last variant of its run."""
    run = next(each for each in listed(folder) if each.run.path.name.endswith("h200-tensor-transpose-f294"))
    app = walk.open(next(view for view in VIEWS if view.name == "compare"), run=run.name, **{"with": run.name})
    shown = [app.selectbox(key=f"choose {side}").value for side in ("a", "b")]
    data = runs.load(run.run)
    roles = data.variants.set_index("variant")["role"]
    assert [roles[name] for name in shown] == ["rung", "peer"]
    assert "specimen" in set(roles)
