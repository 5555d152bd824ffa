"""Programs under nsys: their device work is attributed to them, and its times are phases beside the wall clock."""

import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.collectors.programs import fake_nsys, recording
from tests.collectors.programs.recording import compared, script, statuses
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.signals import Stop, Stopped
from warpladder.collectors.nsight_systems.source import open_report
from warpladder.collectors.nsight_systems.trace import NsightTrace
from warpladder.collectors.programs.executions import ProgramsTrace, phase_samples
from warpladder.collectors.programs.profiled import Execution, NsightSystems
from warpladder.collectors.programs.runner import Launch
from warpladder.dashboard.core import run_data
from warpladder.dashboard.trace.samples import extents
from warpladder.dashboard.views.time.transfers.query import stages
from warpladder.data import store
from warpladder.data.names import Source

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="programs are timed on Linux"), pytest.mark.slow]


@pytest.fixture
def nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording.fake_nsys(tmp_path, monkeypatch)


@pytest.fixture
def run(nsys: None, tmp_path: Path) -> store.Run:
    """Two programs in three profiled rounds, which log each start."""
    log = tmp_path / "log"
    commands = [script(tmp_path / name, f"echo {name} >> {log}; echo {name}") for name in ("p1", "p2")]
    found = compared(tmp_path, *commands, profiler=NsightSystems(), runs=4, warmup=1)
    assert len(log.read_text().split()) == 2 + 4 * 3 + 3 * 2
    return found


def test_each_kernel_is_of_its_program_by_whichever_thread_it_was_launched(run: store.Run) -> None:
    ranges = run.table("ranges").set_index("range_id")
    kernels = run.table("kernels")
    variants = []
    for place in kernels["range_id"]:
        text = ranges.loc[place, "text"]
        place = ranges.loc[place, "parent_id"] if text == "step" else place
        variants.append((ranges.loc[place, "variant"], text if text == "step" else "", int(ranges.loc[place, "round"])))
    expected = [("p1", "", n) for n in range(3)] + [("p1", "step", n) for n in range(3)] + [("p2", "", n) for n in range(3)]
    assert sorted(variants) == sorted(expected)
    ours = ranges[ranges["domain"] == "warpladder"]
    assert set(ours["text"]) == {"p1 vs p2", "whole", "p1", "p2", *(f"operation.hot#{number}" for number in range(3))}
    assert not ranges["text"].str.startswith("execution=").any()
    assert run.table("memory_ops")["range_id"].notna().all()


def test_the_times_of_kernels_and_copies_are_phases_and_the_wall_clock_is_of_other_executions(run: store.Run) -> None:
    samples = run.table("samples")
    medians = samples[samples["scope"] != "operation"].groupby(["variant", "scope"])["duration_ns"].agg(["size", "median"])
    assert medians["size"].unique().tolist() == [3]
    assert medians["median"].to_dict() == {
        ("p1", "phase:compute"): 1500.0,
        ("p1", "phase:h2d"): 50.0,
        ("p2", "phase:compute"): 500.0,
        ("p2", "phase:d2h"): 20.0,
        ("p2", "phase:h2d"): 40.0,
    }
    assert samples[samples["scope"] == "operation"].groupby(["variant", "twin"]).size().to_dict() == {
        ("p1", 0): 4,
        ("p1", 1): 4,
        ("p2", 0): 4,
    }
    said = [text for text in run.table("diagnostics")["text"] if text.startswith("the trace and the phases")]
    assert len(said) == 1 and "3 of each program" in said[0]


@pytest.mark.thorough
def test_the_run_names_the_gpu_and_the_profiler(run: store.Run) -> None:
    assert (run.info["collector"], run.info["collector_version"]) == ("nsight_systems", "2025.3.1")
    assert (run.info["device_name"], run.info["device_count"]) == ("Tesla T4", 1)


def test_pages_of_traces_sum_the_programs_work(run: store.Run) -> None:
    data = run_data.load(run)
    assert extents(data) == ("samples", "all")
    found = stages(data).set_index("variant")
    assert found["n"].to_dict() == {"p1": 3, "p2": 3}
    assert found["kernel_ns"].to_dict() == {"p1": 2000.0, "p2": 500.0}  # of both threads
    assert found["end_to_end_ns"].to_dict() == {"p1": 9000.0, "p2": 9000.0}


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("echo boo >&2; exit 1", "the run has no trace: nsys wrote no report (boo)"),
        ("exit 0", "the run has no trace: nsys wrote no report (it said nothing)"),
        ('for w in "$@"; do case "$w" in --output=*) echo rubbish > "${w#--output=}";; esac; done', "not a report of Nsight Systems"),
    ],
    ids=["fails", "silent", "rubbish"],
)  # fmt: skip
def test_without_a_report_the_wall_clock_is_kept_and_the_run_says_why(
    profile: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.tool(tmp_path, monkeypatch, profile)
    run = compared(tmp_path, "true", "true", profiler=NsightSystems())
    assert set(run.table("samples")["scope"]) == {"operation"}
    assert run.info["collector"] == "host_clock"
    assert "kernels" not in run.tables
    (row,) = run.table("diagnostics").query("severity == 'warning'").to_dict("records")
    assert row["source"] == Source.TRACING
    assert said in row["text"]


@pytest.mark.thorough
def test_a_program_that_fails_under_the_profiler_alone_keeps_its_times(nsys: None, tmp_path: Path) -> None:
    count = tmp_path / "count"
    failing = script(tmp_path / "p1", f"echo >> {count}; [ $(wc -l < {count}) -lt 6 ] || {{ echo full >&2; exit 4; }}")
    run = compared(tmp_path, failing, "true", profiler=NsightSystems(), runs=2)  # one warm-up and four timed starts
    assert statuses(run)["p1"][0] == "ok"
    (row,) = run.table("diagnostics").query("severity == 'warning'").fillna("").to_dict("records")
    # Of no variant: a finding about one would keep its times from being compared.
    assert (row["variant"], row["text"]) == ("", "p1 failed under nsys, which does not count: exit code 4: full")


def test_a_signal_ends_the_profiler_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording.tool(tmp_path, monkeypatch, f"echo $$ > {tmp_path / 'pid'}; sleep 60")
    cell = Cell("w", "p1", "", "whole")
    with Stop() as stop:

        def interrupt() -> None:
            while not (tmp_path / "pid").exists():
                time.sleep(0.02)
            stop.number = 2

        threading.Thread(target=interrupt).start()
        executions = [Execution(cell, 0, Launch("/bin/true", ("true",), 5.0))]
        with pytest.raises(Stopped), NsightSystems().profile(executions, tmp_path, stop):
            pass
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_work_outside_of_the_executions_is_of_no_program(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    fake_nsys.report(path, ["p1", "p2", "p1"])
    cells = [(Cell("w", name, "", "whole"), number) for name, number in (("p1", 0), ("p2", 0))]  # the third is not asked for
    with open_report(path) as report:
        found = ProgramsTrace(NsightTrace(report), cells)
        assert [cell.variant for cell, _ in found.cells] == ["p1", "p2"]
        times = [-1, 0, 8999, 9000, 10_500, 25_000]
        assert found.executions_at(np.array(times)).tolist() == [-1, 0, 0, -1, 1, -1]
        phases = [(row["variant"], row["scope"], row["duration_ns"]) for row in phase_samples(found)]
        assert phases == [
            ("p1", "phase:compute", 1500),
            ("p2", "phase:compute", 500),
            ("p1", "phase:h2d", 50),
            ("p2", "phase:h2d", 40),
            ("p2", "phase:d2h", 20),
        ]
        assert found.devices() == {(100, 0): 3, (101, 0): 3, (102, 0): 3}
