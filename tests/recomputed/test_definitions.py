"""The definitions stand apart from the code that they check, every page has its figures, and a wrong figure is found."""

import ast
import random
from pathlib import Path

import pytest

from tests.recomputed import cells, definitions, displayed
from tests.recomputed.definitions import Between
from tests.recomputed.figures import Written, draw, same
from warpladder.dashboard.views import VIEWS

HERE = Path(__file__).parent
#: Modules that obtain what the pages show; all others compute from the files.
OBTAIN = {"displayed.py", *(file.name for file in HERE.glob("test_*.py"))}
#: Section -> its test. Why faster has the charts of the counters; Machine code has tables of one kernel.
TESTED = {
    "home": "test_overview", "compare": "test_compare", "sizes": "test_sizes", "devices": "test_devices", "ship": "test_ship", "trends": "test_trends",
    "published": "test_published", "ladder": "test_ladder", "roofline": "test_roofline",
    "details": "test_details", "timeline": "test_timeline", "calls": "test_api_and_kernels", "transfers": "test_transfers",
    "operators": "test_operators", "forecast": "test_forecast",
    "gpus": "test_gpus", "counters": "test_counters", "machine_code": "", "occupancy": "test_occupancy",
    "ranks": "test_ranks",
    "collectives": "test_collectives", "job_kernels": "test_kernels_of_ranks", "critical_path": "test_critical_path",
    "trust": "test_runs_and_checks", "why": "", "experiments": "",
}  # fmt: skip


def _imported(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
    return found


@pytest.mark.parametrize("file", sorted(set(HERE.glob("*.py"))), ids=lambda file: str(file.name))
def test_a_definition_imports_nothing_of_the_project(file: Path) -> None:
    if file.name not in OBTAIN:
        assert not {name for name in _imported(file) if name.split(".")[0] == "warpladder"}


def test_every_page_of_the_menu_has_a_test() -> None:
    assert set(TESTED) == {section.name for view in VIEWS for section in view.sections}
    written = "".join(file.read_text() for file in HERE.glob("test_*.py"))
    assert all(f"def {name}(" in written for name in TESTED.values() if name)


@pytest.mark.parametrize(
    ("shown", "expected", "agrees"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1.001, 1.0, False),
        (None, 1.0, False),
        (1.0, float("nan"), False),
        (None, float("nan"), True),
        ("tied", {"tied", "faster"}, True),
        ("slower", {"tied", "faster"}, False),
        (1.5, Between(1.4, 1.6), True),
        (1.7, Between(1.4, 1.6), False),
        ("79.3", Written(79.34), True),
        ("79.3", Written(79.36), False),
        ("2.22 µs", Written(2224.0), True),
        ("2.23 µs", Written(2224.0), False),
        ("300", Written(305.0), False),
    ],
)
def test_a_figure_agrees_only_with_its_own_value(shown: object, expected: object, agrees: bool) -> None:
    assert same(shown, expected) == agrees


@pytest.mark.thorough
def test_a_figure_that_is_one_percent_off_is_found() -> None:
    run = next(
        run for run in definitions.shipped() if run.info["label"] == "1 H200 by cuda_events" or "mlp-elementwise" in run.id
    )
    view = next(section for view in VIEWS for section in view.sections if section.name == "ladder")
    shown = next(each for each in displayed.charts(view, run.id, random.Random(1)) if "speedup" in each.frame)
    names = ["workload", "variant", "config", "case", "gpus", "cache", "scope", "n", "baseline", "baseline_config"]
    figures = ["median_ns", "percent_of_floor", "gb_per_s", "speedup"]
    off = shown.frame[names + figures].assign(**{name: 1.01 * shown.frame[name] for name in figures})
    found = draw(random.Random(1), [(run, shown._replace(frame=off), cells.LADDER)], lambda run, shown: [], 60)
    wrong = {figure.column for figure in found if not figure.agrees}
    assert {"median_ns", "percent_of_floor", "gb_per_s"} <= wrong
    assert not wrong - {"median_ns", "percent_of_floor", "gb_per_s", "speedup"}
