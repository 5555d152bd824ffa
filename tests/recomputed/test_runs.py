"""Figures of Details, Published, Compare, Devices and Trends, and of Sizes and Ladder with two devices, at random from the shipped runs,
from the parquet files alone.
"""

import random
from dataclasses import asdict
from itertools import combinations, islice

import pandas as pd
import pytest

from tests.recomputed import definitions, details, devices, displayed, several
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import draw
from tests.recomputed.sentences import numbers
from tests.recomputed.test_cells import SEED, VIEW, check
from warpladder.dashboard.compare import levels, side_by_side
from warpladder.dashboard.run.run import open_run
from warpladder.dashboard.views.compare.trends import chart, query
from warpladder.dashboard.views.devices import query as of_devices
from warpladder.dashboard.views.reports.published import query as published
from warpladder.data import figures, store

pytestmark = pytest.mark.slow


@pytest.mark.thorough
def test_details() -> None:
    rng = random.Random(f"details {SEED}")
    found = []
    for run in rng.sample([run for run in definitions.shipped() if run.has("samples")], 2):
        shown = islice(displayed.charts(VIEW["details"], run.id, rng), 4)
        found += [(run, each, details.rules_of(each)) for each in shown]
    check(draw(rng, found, numbers))


@pytest.mark.thorough
def test_published() -> None:
    rng = random.Random(f"published {SEED}")
    found = []
    reported = [run for run in definitions.shipped() if run.workloads & set(figures.reports())]
    for run in rng.sample(reported, 2):
        data = displayed.loaded(run.id)
        for report in figures.reports():
            if report not in data.workloads:
                continue
            table = figures.read(report)
            for source in published.sources(table)[:4]:
                frame = published.beside_ours(data, table, source)
                name = f"published|{source.table}|{source.quantity}"
                found.append(
                    (
                        run,
                        Shown("published", run.id, name, "", (report, "", ""), frame.assign(place=range(len(frame)))),
                        details.PRINTED,
                    )
                )
    check(draw(rng, found, numbers))


def _comparable(a: definitions.Shipped, b: definitions.Shipped) -> bool:
    """Whether two runs have cells in common, in device times and in others; 20 figures of each are drawn."""
    if not a.workloads & b.workloads:
        return False
    scopes = [scope for *_, scope, twin in a._rounds.keys() & b._rounds.keys() if not twin]
    return min(scopes.count("device"), len(scopes) - scopes.count("device")) >= 3


def test_compare() -> None:
    """As many figures of times that the host sees, which are judged twice, as of device times."""
    rng = random.Random(f"compare {SEED}")
    a, b = rng.choice([pair for pair in combinations(definitions.shipped(), 2) if _comparable(*pair)])
    compared = open_run(definitions.RECORDED / a.id).compare(str(definitions.RECORDED / b.id), scope="all", any_device=True)
    table = compared.table()
    on_device = table["scope"] == "device"
    for rows in (table[on_device], table[~on_device]):
        shown = Shown("compare", f"{a.id} {b.id}", "changes", "", ("", "", ""), rows)
        check(draw(rng, [(b, shown, several.COMPARE)], numbers))


def _two_devices() -> list[tuple[definitions.Shipped, definitions.Shipped]]:
    """The pairs of shipped recordings of a workload on two devices."""
    runs = [run for run in definitions.shipped() if run.info["kind"] == "recording" and run.info["device_count"] == 1]
    return [
        (a, b) for a, b in combinations(runs, 2) if a.info["device_name"] != b.info["device_name"] and a.workloads & b.workloads
    ]


@pytest.mark.thorough
def test_devices() -> None:
    rng = random.Random(f"devices {SEED}")
    pairs, sided = [], []
    for a, b in rng.sample(_two_devices(), 3):
        of_a, of_b = displayed.loaded(a.id), displayed.loaded(b.id)
        workload = rng.choice(sorted(a.workloads & b.workloads))
        timings = [each for each in side_by_side.timings(of_a, of_b, workload) if each.scope in definitions.SCOPES]
        for timing in rng.sample(timings, min(len(timings), 2)):
            found = side_by_side.side_by_side(of_a, of_b, workload, timing)
            where = (workload, timing.scope, timing.cache)
            frame = of_devices.frame_of(found.pairs)
            pairs.append((b, Shown("devices", f"{a.id} {b.id}", "pairs", "", where, frame), devices.PAIRS))
            losers = [asdict(each) | each.behind.columns("behind") for each in side_by_side.one_sided(found)]
            lost = pd.DataFrame(losers).assign(workload=workload)
            sided.append((b, Shown("devices", f"{a.id} {b.id}", "losers", "", where, lost), devices.LOSERS))
        rates = {each.what: each.ratio for each in of_devices.rates(of_a, of_b, found)}
        assert rates["copies in memory"] == devices.rate(a, b, ("device_copy",), time=False)
        assert rates["an empty kernel"] == devices.rate(a, b, ("graph_node",), time=True)
        assert rates.get("TF32") in (None, devices.rate(a, b, ("tf32_mma", "tf32_wgmma"), time=False))
    check([*draw(rng, pairs, numbers), *draw(rng, sided, numbers, 10)])


@pytest.mark.thorough
def test_trends() -> None:
    rng = random.Random(f"trends {SEED}")
    found = []
    groups: dict[tuple[str, str], list[str]] = {}
    for run in definitions.shipped():
        for workload in sorted(run.workloads):
            groups.setdefault((str(run.info["collector"]), workload), []).append(run.id)
    for (_, workload), ids in rng.sample([each for each in groups.items() if len(each[1]) > 1], 1):
        stored = [store.open_run(definitions.RECORDED / each) for each in ids]
        recorded = [query.RecordedRun(run.run_id, run.info, levels.medians(run, workload)) for run in stored]
        cases = query.counts(recorded, lambda cell: (cell.case, cell.timing))
        for case, timing in rng.sample([each for each, number in cases.items() if number > 1], 4):
            frame = chart.frame_of(query.trends(recorded, workload, case, timing))
            name = f"{workload}|{case}|{timing.scope} {timing.cache}"
            found.append(
                (
                    next(run for run in definitions.shipped() if run.id == ids[0]),
                    Shown("trends", " ".join(ids), name, "", ("", "", ""), frame),
                    several.TRENDS,
                )
            )
    check(draw(rng, found, numbers))
