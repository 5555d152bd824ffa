"""Traces of Proton from inside kernels: the blocks, the time of their warps in each scope, and the pages that show them."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.collectors.proton import made
from tests.dashboard.test_app import Open, open_app, words
from warpladder.__main__ import command
from warpladder.collectors.proton import parse
from warpladder.collectors.trace.model import ReportError
from warpladder.collectors.trace.notes import Notes
from warpladder.data import store

__all__ = ["open_app"]

#: A warp of a block of 3,600 ns at 2 GHz: the whole takes 7,200 cycles, with a load of 3,000 and a store of 1,200 in it.
WARP = [("kernel", 50, 7250), ("load", 150, 3150), ("store", 5000, 6200)]
#: The same with a longer load.
SLOWER = [("kernel", 50, 7250), ("load", 150, 4150), ("store", 5000, 6200)]
#: A warp of a block of 2,000 ns whose scopes leave out half of it.
SHORT = [("kernel", 0, 2000)]
BLOCKS = [
    made.Block(0, 7, 0, 3600, [WARP, SLOWER]),
    made.Block(1, 9, 100, 3700, [WARP, WARP]),
    made.Block(2, 7, 4000, 6000, [SHORT, SHORT]),
]


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., store.Run]:
    def write(trace: Any, name: str = "flash.chrome_trace") -> store.Run:
        text = json.dumps(trace).encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        done = CliRunner().invoke(command(), ["import", str(tmp_path / name), "--data-dir", str(tmp_path / "runs")])
        assert done.exit_code == 0, done.output
        return store.open_run(tmp_path / "runs" / done.stdout.splitlines()[-1])

    return write


def stages_of(run: store.Run, case: str, block: int) -> dict[str, int]:
    frame = run.table("experiment_blocks")
    rows = frame[(frame["case"] == case) & (frame["block"] == block)]
    return dict(zip(rows["stage"], rows["stage_ns"], strict=True))


@pytest.mark.parametrize("name", ["flash.chrome_trace", "flash.json.gz"])
def test_blocks_have_the_times_of_the_global_timer_and_scopes_the_mean_of_the_warps(imported: Any, name: str) -> None:
    run = imported(made.trace(("attention", BLOCKS)), name)
    frame = run.table("experiment_blocks")
    spans = frame[["block", "multiprocessor", "start_ns", "end_ns"]].drop_duplicates().to_numpy().tolist()
    assert spans == [[0, 7, 0, 3600], [2, 7, 4000, 6000], [1, 9, 100, 3700]]
    # 7,200 cycles in 3,600 ns are two a nanosecond; of the whole, what is in no inner scope counts.
    assert stages_of(run, "launch=1", 1) == {"kernel": 1500, "load": 1500, "store": 600, parse.OUTSIDE: 0}
    assert stages_of(run, "launch=1", 0) == {"kernel": 1250, "load": 1750, "store": 600, parse.OUTSIDE: 0}
    assert stages_of(run, "launch=1", 2) == {"kernel": 1000, parse.OUTSIDE: 1000}
    shares = {row["what"]: row["value"] for row in run.records("experiments") if row["experiment"] == "stage"}
    assert shares["load"] == pytest.approx((1500 + 1750) / 9200) and sum(shares.values()) == pytest.approx(1)
    assert run.info["collector"] == "proton" and run.info["label"] == ""


def test_each_launch_of_a_kernel_is_a_case_also_one_with_a_single_block(imported: Any) -> None:
    later = [block._replace(start_ns=block.start_ns + 9000, end_ns=block.end_ns + 9000) for block in BLOCKS]
    one = [[made.Block(0, 3, start, start + 100, [[("all", 0, 150)]])] for start in (20_000, 30_000)]
    run = imported(made.trace(("add", BLOCKS), ("add", later), ("sub", one[0]), ("sub", one[1])))
    cells = run.table("experiment_blocks")[["variant", "case"]].drop_duplicates().to_numpy().tolist()
    assert cells == [["add", "launch=1"], ["add", "launch=2"], ["sub", "launch=1"], ["sub", "launch=2"]]
    assert run.table("experiment_blocks")["start_ns"].max() == 4000


def test_of_scopes_that_overlap_the_one_that_was_opened_last_counts() -> None:
    spans = [
        parse.Span(0, 10, "a"),
        parse.Span(4, 14, "b"),
        parse.Span(4, 6, "c"),
        parse.Span(20, 21, "a"),
        parse.Span(3, 3, "d"),
    ]
    assert parse.own_cycles(spans) == {"a": 4 + 1, "b": 8, "c": 2, "d": 0}


def test_other_events_are_left_out_and_counted() -> None:
    events = made.trace(("add", BLOCKS))["traceEvents"]
    notes = Notes()
    assert len(list(parse.launches_of([{"ph": "M"}, *events, 7], "a.json", notes))) == 1
    assert notes.finish()[0]["text"] == "2 events are no scopes of a warp, and are left out"


def truncated(text: str) -> str:
    return text[: len(text) // 2]


def of_triton_3_6(text: str) -> str:
    return text.replace("Init Time", "Other Time")


def without_times(text: str) -> str:
    return text.replace('"ts"', '"at"')


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (truncated, "cut off or damaged; let the program reach proton.finalize(), which writes it"),
        (lambda text: text[:-1] + ', "deep": ' + "[" * 100_000, "cut off or damaged"),
        (of_triton_3_6, "lacks the times at which blocks start and end; Triton writes them from version 3.7 on"),
        (without_times, "has no scope of a kernel that lasts; put scopes of triton.profiler.language into a kernel"),
        (
            lambda text: '{"traceEvents": [], "was": ' + json.dumps(json.loads(text)["traceEvents"]) + "}",
            "has no scope of a kernel",
        ),
    ],
)
def test_what_cannot_be_read_takes_one_line_and_leaves_no_run(tmp_path: Path, damage: Callable[[str], str], why: str) -> None:
    (tmp_path / "bad.json").write_text(damage(json.dumps(made.trace(("add", BLOCKS)))))
    done = CliRunner().invoke(command(), ["import", str(tmp_path / "bad.json"), "--data-dir", str(tmp_path / "runs")])
    (line,) = done.stderr.splitlines()
    assert done.exit_code == 2 and line.startswith("bad.json: ") and why in line
    assert not [each for each in (tmp_path / "runs").glob("*") if not each.name.startswith(".")]


def test_a_trace_of_another_tool_is_no_trace_of_proton(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [{"ph": "X", "cat": "kernel", "pid": 0, "tid": 7}]}))
    assert not parse.is_trace(tmp_path / "trace.json") and not parse.is_trace(tmp_path)


def test_ranges_cannot_name_variants(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(made.trace(("add", BLOCKS))))
    with pytest.raises(ReportError, match="has no ranges of NVTX"):
        parse.import_report(tmp_path / "a.json", tmp_path / "runs", "", object(), [])  # type: ignore[arg-type]


@pytest.mark.parametrize("page", ["home", "why", "ladder", "trust", "timeline", "machine_code"])
def test_every_page_opens(imported: Any, open_app: Open, page: str) -> None:
    run = imported(made.trace(("add", BLOCKS)))
    app = open_app(run.path.parent, page, run=run.path.name)
    assert not app.exception


def test_the_page_of_experiments_draws_the_blocks(imported: Any, open_app: Open) -> None:
    run = imported(made.trace(("add", BLOCKS)))
    app = open_app(run.path.parent, "why", run=run.path.name, section="experiments")
    assert not app.exception
    assert "The last multiprocessor ends 2.30 µs after the first, at 6.00 µs" in words(app)
    assert "as it is" not in words(app) and not app.main.code
