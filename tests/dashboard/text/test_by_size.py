"""The table of every variant at every size, against times made by hand."""

from collections.abc import Container, Mapping
from pathlib import Path

import pandas as pd
import pytest

from tests.synthetic import made_runs
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text import by_size, summary
from warpladder.data import store
from warpladder.data.names import Source, diagnostic_row

pytestmark = pytest.mark.slow

#: Microseconds by variant, config and n. `even` is as fast as `slow` at n=2; `odd` fails at n=3; `cheat` is distrusted at n=1.
TIMES = {
    ("slow", ""): {1: 90, 2: 200, 3: 300},
    ("even", "warps=4"): {1: 50, 2: 200, 3: 100},
    ("even", "warps=8"): {1: 60, 2: 250, 3: 80},
    ("odd", ""): {1: 70, 2: 220},
    ("cheat", ""): {1: 2, 2: 400, 3: 400},
}


VARIANTS = ("slow", "even", "odd", "cheat")


def made(
    folder: Path,
    count: int = 3,
    variants: Container[str] = VARIANTS,
    without_size: int = 0,
    kinds: Mapping[str, tuple[str, str]] | None = None,
    unsteady: str = "",
) -> RunData:
    """A run.

    Args:
        kinds: role and precision by variant, of those that are no host variant in fp32.
        unsteady: a variant that takes a fortieth of its time in every other round.
    """
    of = dict.fromkeys(VARIANTS, ("host", "fp32")) | dict(kinds or {})
    keys = [(*cell, n) for cell in TIMES if cell[0] in variants for n in range(1, count + 1)]
    cells = [{"workload": "sums", "variant": v, "config": c, "case": f"rows=8,n={n}"} for v, c, n in keys]
    results, samples = [], []
    for cell, (variant, config, n) in zip(cells, keys, strict=True):
        time = TIMES[variant, config].get(n)
        results.append(made_runs.row("results", **cell, status="ok" if time else "wrong_result", detail="" if time else "0.5"))
        for twin in (0, 1) if variant == "slow" and time else (0,) if time else ():
            timed = {"scope": "operation", "cache": "hot", "gpus": 0, "rank": 0, "process": 0}
            samples += [
                made_runs.row(
                    "samples",
                    **cell,
                    **timed,
                    twin=twin,
                    round=each,
                    duration_ns=1000 * time // (40 if variant == unsteady and each % 2 else 1) + (7 * each + twin) % 5,
                )
                for each in range(20)
            ]
    run = {**made_runs.run_row("by_size", ""), "device_name": ""}
    tables = {
        "variants": [made_runs.row("variants", workload="sums", variant=name, role=of[name][0], kind="host", precision=of[name][1]) for name in VARIANTS if name in variants],
        "cases": [made_runs.row("cases", workload="sums", case=f"rows=8,n={n}", size_rank=None if n == without_size else n, params=f'{{"rows": 8, "n": {n}}}') for n in range(1, count + 1)],
        "results": results,
        "samples": pd.DataFrame(samples),
        "diagnostics": [diagnostic_row("warning", Source.ABOVE_CEILING, "too fast", cell) for cell in cells if (cell["variant"], cell["case"]) == ("cheat", "rows=8,n=1")],
    }  # fmt: skip
    return run_data.load(store.open_run(made_runs.write_tables(folder, run, tables)))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return made(tmp_path_factory.mktemp("runs"))


def words(line: str) -> list[str]:
    return line.replace(" µs", "µs").split()


def test_each_variant_has_its_fastest_time_at_each_size_with_winner_ties_failures_and_doubts(data: RunData) -> None:
    title, heading, *rows, legend = by_size.lines(data)
    assert title == "sums: median operation time, caches warm, rows=8"
    assert words(heading) == ["n=1", "n=2", "n=3"]
    assert [words(row) for row in rows] == [
        ["slow", "90.0µs", "200µs", "*", "300µs"],
        ["even", "50.0µs", "*", "[warps=4]", "200µs", "=", "[warps=4]", "80.0µs", "*", "[warps=8]"],
        ["odd", "70.0µs", "220µs", "wrong_result"],
        ["cheat", "2.00µs", "?", "400µs", "400µs"],
    ]
    assert legend == "* the fastest   = tied with it   ? not compared: distrusted, or too few samples"


def test_of_several_precisions_the_fastest_of_each_is_marked_and_a_peer_in_its_own(tmp_path: Path) -> None:
    """At n=2 the peer in fp32 is faster than the rung in 3xTF32, and tied with the one in fp32."""
    kinds = {"slow": ("peer", "fp32"), "even": ("rung", "fp32"), "odd": ("rung", "3xtf32")}
    *_, slow, even, odd, legend = by_size.lines(made(tmp_path, 2, ("slow", "even", "odd"), kinds=kinds))
    assert [words(row)[1:] for row in (slow, even)] == [["90.0µs", "200µs", "*"], ["50.0µs", "*", "200µs", "="]]
    assert words(odd)[-3:] == ["70.0µs", "*", "220µs"]
    assert legend == "* the fastest of its precision, also against libraries of a higher one   = tied with it"


def test_a_variant_that_may_be_as_fast_is_tied_behind_one_that_is_slower(tmp_path: Path) -> None:
    *_, odd, cheat, _ = by_size.lines(made(tmp_path, 2, unsteady="cheat"))
    assert [words(row)[-1] for row in (odd, cheat)] == ["220µs", "="]


def test_a_case_without_a_size_comes_last_and_has_its_winner_too(tmp_path: Path) -> None:
    _, heading, slow, even, *_ = by_size.lines(made(tmp_path, without_size=2))
    assert words(heading) == ["n=1", "n=3", "n=2"]
    assert words(slow)[-2:] == ["200µs", "*"]
    assert words(even)[-3:] == ["200µs", "=", "[warps=4]"]


def test_one_case_keeps_its_whole_name(tmp_path: Path) -> None:
    heading = by_size.lines(made(tmp_path, 1))[1]
    assert words(heading) == ["rows=8,n=1"]


def test_the_sizes_go_down_where_they_are_as_many_as_the_variants(tmp_path: Path) -> None:
    _, heading, *rows, _ = by_size.lines(made(tmp_path, 3, ("slow", "odd")))
    assert words(heading) == ["slow", "odd"]
    assert [words(row) for row in rows] == [
        ["n=1", "90.0µs", "70.0µs", "*"],
        ["n=2", "200µs", "*", "220µs"],
        ["n=3", "300µs", "*", "wrong_result"],
    ]


def test_times_stand_below_one_another_with_and_without_a_mark(tmp_path: Path) -> None:
    _, *lines, _ = by_size.lines(made(tmp_path, 2, ("slow", "odd")))
    assert lines == [
        "        slow        odd",
        "n=1  90.0 µs    70.0 µs *",
        "n=2   200 µs *   220 µs",
    ]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(data: RunData, width: int) -> None:
    lines = by_size.lines(data, width)
    assert all(len(line) <= width for line in lines[1:-1])
    assert sum("n=3" in line for line in lines) == 1
    assert ("[warps=4]" in "".join(lines)) == (width > 60)


@pytest.mark.thorough
@pytest.mark.parametrize("width", [80, 120])
def test_the_answer_fits_the_terminal(width: int) -> None:
    data = run_data.load(store.open_run(store.RECORDED / "20261127T041834Z-h200-gan-tconv-eea1"))
    rows = summary.figures(data)
    lines = summary.table(rows, width)
    assert all(len(line) <= width for line in lines)
    assert "v12_warpgroups_3xtf32" in lines[2]
    assert "distrust" in "".join(lines)
    assert len(summary.table(rows)[1]) > 120


def test_a_recording_of_many_workloads_prints_few_rows(data: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = summary.figures(data)
    monkeypatch.setattr(summary, "figures", lambda data, every_size: pd.concat([rows] * 40))
    few = summary.terminal(data, 0, sizes=False, every=False).splitlines()
    assert few[-1] == "and 24 more rows: warpladder summary RUN --all"
    assert len(few) == 18
    assert len(summary.terminal(data, 0, sizes=False, every=True).splitlines()) == 41
