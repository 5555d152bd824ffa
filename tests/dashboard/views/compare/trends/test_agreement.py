"""Trends and Compare never disagree: every pair of shipped runs with cells in common, and every step over all of them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise

import pytest

from warpladder.dashboard.compare.changes import Change, NotComparable, Options, Side, compare
from warpladder.dashboard.compare.levels import Medians, TimedCell, medians
from warpladder.dashboard.core import run_data
from warpladder.dashboard.views.compare.trends.query import RecordedRun, Trends, trends
from warpladder.data import store

pytestmark = pytest.mark.slow

RUNS = {run.run_id: run for run in store.list_runs([store.RECORDED])[0] if "samples" in run.tables}


@cache
def recorded(run_id: str, workload: str) -> RecordedRun:
    return RecordedRun(run_id, RUNS[run_id].info, medians(RUNS[run_id], workload))


@cache
def loaded(run_id: str) -> run_data.RunData:
    return run_data.load(store.open_run(RUNS[run_id].path))


def groups() -> dict[tuple[str, str, str], list[str]]:
    """The runs of each workload on one device and by one collector, as on the page Trends, the oldest first."""
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for run in sorted(RUNS.values(), key=lambda run: (run.info["started_at"], run.run_id)):
        for workload in sorted(run.timed):
            found[run.info["device_name"] or run.info["cpu_name"], run.info["collector"], workload].append(run.run_id)
    return {key: runs for key, runs in found.items() if len(runs) > 1}


def charts(every: Sequence[RecordedRun], workload: str) -> Iterator[Trends]:
    """Every chart of the page: a case in a timing."""
    of_all = Counter((cell.case, cell.timing) for run in every for cell in set(run.medians.cells))
    for case, timing in of_all:
        yield trends(every, workload, case, timing)


@cache
def changes(a: str, b: str, workload: str, history: tuple[str, ...]) -> dict[TimedCell, Change]:
    def shown(asked: str) -> list[Medians]:
        return [recorded(run_id, asked).medians for run_id in history]

    try:
        found = compare(Side(loaded(a)), Side(loaded(b)), Options(scope="all", absolute=True), shown).changes
    except NotComparable:
        return {}
    return {
        TimedCell(each.case, each.timing.scope, each.timing.cache, each.variant, each.config, each.gpus): each
        for each in found
        if each.workload == workload
    }


def disagreements(every: Sequence[str], workload: str) -> tuple[Counter[str], list[str]]:
    """The verdicts of Compare about neighbouring runs, and what Trends tells otherwise."""
    runs, counts, found = [recorded(run_id, workload) for run_id in every], Counter[str](), []
    for chart in charts(runs, workload):
        for series in chart.series:
            cell = TimedCell(chart.case, chart.timing.scope, chart.timing.cache, series.variant, series.config, series.gpus)
            steps = {step.place: step for step in series.steps}
            for place, (before, after) in enumerate(pairwise(series.points), 1):
                a, b = (chart.runs[point.run].name for point in (before, after))
                change = changes(a, b, workload, tuple(every))[cell]
                counts[change.verdict] += 1
                about = f"{workload} {chart.case} {chart.timing} {series.name}: {a} → {b}: {change.verdict}"
                step, judged = steps.get(place), series.judged[place - 1]
                if (judged.verdict, judged.ratio) != (change.verdict, change.ratio):
                    found.append(f"{about}, on Trends {judged.verdict}")
                if step and (step.verdict != change.verdict or change.verdict not in ("slower", "faster", "drifted")):
                    found.append(f"{about}, with a step")
                if step and (step.ratio.value > 1) != (change.ratio.value > 1):
                    found.append(f"{about}, with a step the other way")
                if not step and (
                    change.verdict in ("slower", "faster") or (change.verdict == "drifted" and len(series.points) == 2)
                ):
                    found.append(f"{about}, without a step")
    return counts, found


@pytest.mark.thorough
@pytest.mark.parametrize("group", groups(), ids=" ".join)
def test_no_step_and_no_verdict_disagree(group: tuple[str, str, str]) -> None:
    every = groups()[group]
    told = Counter[str]()
    for runs in [every, *map(list, combinations(every, 2))]:
        counts, found = disagreements(runs, group[2])
        assert not found, found[:5]
        told += counts
    assert told.total() > 0 or len(every) == 2


@pytest.mark.thorough
def test_the_cell_about_which_both_disagreed_is_told_alike() -> None:
    """gan_tconv, images=10, v03_matrix_product: Trends had a step where Compare had none."""
    verdicts = set()
    for (_, _, workload), every in groups().items():
        if workload == "gan_tconv":
            for a, b in combinations(every, 2):
                for cell, change in changes(a, b, workload, (a, b)).items():
                    if (cell.case, cell.variant) == ("images=10", "v03_matrix_product"):
                        (series,) = (
                            each
                            for each in trends(
                                [recorded(a, workload), recorded(b, workload)], workload, cell.case, cell.timing
                            ).series
                            if (each.variant, each.config, each.gpus) == (cell.variant, cell.config, cell.gpus)
                        )
                        verdicts.add((change.verdict, [step.verdict for step in series.steps] == [change.verdict]))
    assert verdicts and all(stepped == (verdict in ("slower", "faster", "drifted")) for verdict, stepped in verdicts)
