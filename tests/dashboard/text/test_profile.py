"""The summary of an imported profile: its figures, counted by hand, on one screen."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.collectors.nsight_compute import ncu_reports
from tests.collectors.nsight_systems import reports
from warpladder.__main__ import command
from warpladder.collectors.nsight_compute import parse as nsight_compute
from warpladder.dashboard.text import parts
from warpladder.dashboard.text.parts import fitting
from warpladder.dashboard.ui.text import apart
from warpladder.data import metrics

#: Name, category, stream, start and end in us, and the start of the launch.
_WORK: tuple[tuple[str, str, int, float, float, float], ...] = (
    ("gemm", "kernel", 7, 10, 50, 2),
    ("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", 7, 50, 60, 4),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "kernel", 20, 55, 80, 6),
    ("gemm", "kernel", 7, 120, 160, 105),
    ("relu", "kernel", 7, 165, 170, 108),
)
_US = 1_000


def _trace(path: Path, *, work: bool = True) -> Path:
    """Two steps of 100 us; times on the device of `_WORK`."""
    events: list[dict[str, Any]] = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": 100 * step, "dur": 100, "pid": 1, "tid": 1}
        for step in range(2)
    ]
    for place, (name, category, stream, start, end, launched) in enumerate(_WORK if work else ()):
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": launched, "dur": 1, "pid": 1, "tid": 1}
        args: dict[str, Any] = {"device": 0, "context": 1, "stream": stream, "correlation": place + 1}
        args |= {"bytes": 1_000} if category == "gpu_memcpy" else {"grid": [1, 1, 1], "block": [1, 1, 1]}
        on_device = {"ph": "X", "cat": category, "name": name, "ts": start, "dur": end - start, "pid": 0, "tid": stream}
        events += [call | {"args": {"correlation": place + 1}}, on_device | {"args": args}]
    about = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
        "baseTimeNanoseconds": 1_700_000_000 * 10**9,
    }
    path.write_text(json.dumps(about | {"traceEvents": events}))
    return path


def _said(*typed: str, data_dir: Path) -> str:
    done = CliRunner().invoke(command(), [*typed, "--data-dir", str(data_dir)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert len(lines) <= 24 and max(len(line) for line in lines if "warpladder app " not in line) <= 80
    return done.stdout


def _facts(path: Path, tmp_path: Path) -> Any:
    _said("import", str(path), data_dir=tmp_path / "runs")
    done = CliRunner().invoke(command(), ["summary", "--data-dir", str(tmp_path / "runs"), "--format", "json"])
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_parts_of_a_profile_add_up_to_its_span(tmp_path: Path) -> None:
    """Communication runs from 55 to 80 us, 5 us of it beside a copy. Work was launched late after 80 us, and in time after 160 us."""
    facts = _facts(_trace(tmp_path / "t.json"), tmp_path)
    assert facts["device_time"] == {
        "span_ns": 160 * _US,
        "busy_ns": 115 * _US,
        "compute_ns": 85 * _US,
        "communication_ns": 25 * _US,
        "exposed_communication_ns": 25 * _US,
        "copies_and_sets_alone_ns": 5 * _US,
        "graphs_traced_whole_ns": 0,
        "idle_ns": 45 * _US,
        "idle_host_wait_ns": 40 * _US,
        "idle_kernel_wait_ns": 5 * _US,
        "idle_other_ns": 0,
        "idle_other_launch_unknown_ns": 0,
        "idle_other_managed_memory_ns": 0,
    }
    assert [(each["name"], each["executions"], each["total_ns"]) for each in facts["kernels"]] == [
        ("gemm", 2, 80 * _US), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1, 25 * _US), ("relu", 1, 5 * _US),
    ]  # fmt: skip
    assert facts["kernels"][0]["share_percent"] == pytest.approx(100 * 80 / 110)
    assert [(each["kind"], each["n"], each["bytes"], each["time_ns"]) for each in facts["copies"]] == [
        ("h2d", 1, 1_000, 10 * _US)
    ]
    steps = facts["steps"]
    assert (steps["count"], steps["median_ns"], steps["least_ns"], steps["most_ns"]) == (2, 100 * _US, 100 * _US, 100 * _US)


@pytest.mark.slow
def test_import_ends_with_what_summary_prints(tmp_path: Path) -> None:
    *answer, run_id = _said("import", str(_trace(tmp_path / "t.json")), data_dir=tmp_path / "runs").splitlines()
    assert _said("summary", run_id, data_dir=tmp_path / "runs").splitlines()[:12] == answer[:12]
    assert answer[:4] == [
        "t.json: PyTorch's profiler, NVIDIA H100",
        "largest part: compute, 53.1 % of 160 µs",
        # The first step holds the work up to 80 us, and the second one that from 120 us on.
        "2 steps: 100 µs each on the host, median 60.0 µs (50.0 to 70.0 µs) from first to",
        "  last device work, which cover 120 of 160 µs; the other 40.0 µs: idle",
    ]
    assert [" ".join(line.split()) for line in answer[5:11]] == [
        "compute 85.0 µs 53.1 %",
        "idle 45.0 µs 28.1 %",
        "- next work not launched yet 40.0 µs 25.0 %",
        "- gaps under 30 µs 5.00 µs 3.1 %",
        "exposed communication (nothing computes) 25.0 µs 15.6 %",
        "copies, memsets (no kernel runs meanwhile) 5.00 µs 3.1 %",
    ]
    todo = "the host takes 100 µs a step (without waits), the device 60.0 µs: faster kernels do not shorten a step"
    assert todo in " ".join(answer).replace("   ", " "), "the largest part is compute, and the advice is about another one"
    assert " ".join(answer).endswith(run_id), "the command for the pages names the run"


def test_idle_time_before_work_without_a_launch_is_a_part_of_its_own(tmp_path: Path) -> None:
    """Without its launch, the gap of 40 us before the second product is not known to be a wait for the host."""
    path = _trace(tmp_path / "t.json")
    trace = json.loads(path.read_text())
    kept = [each for each in trace["traceEvents"] if (each["cat"], each.get("ts")) != ("cuda_runtime", 105)]
    path.write_text(json.dumps(trace | {"traceEvents": kept}))
    text = [" ".join(line.split()) for line in _said("import", str(path), data_dir=tmp_path / "runs").splitlines()]
    assert "- launch not in the profile 40.0 µs 25.0 %" in text
    assert not any("next work" in line for line in text)


@pytest.mark.slow
def test_the_devices_that_are_added_are_those_that_are_counted(tmp_path: Path) -> None:
    """Copies to a third GPU count as work of the busiest; each of the two others has the span of 900 us."""
    tables = reports.schema_3_20() | {"CUPTI_ACTIVITY_KIND_MEMSET": [], "NVTX_EVENTS": [], "CUPTI_ACTIVITY_KIND_RUNTIME": []}
    works = ((0, 100, 300), (1, 340, 1_000))
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [reports.kernel(n + 1, a * _US, b * _US, deviceId=n) for n, a, b in works]
    tables["CUPTI_ACTIVITY_KIND_MEMCPY"] = [
        each | {"start": 400 * _US, "end": 410 * _US, "deviceId": 2} for each in tables["CUPTI_ACTIVITY_KIND_MEMCPY"][:1]
    ]
    facts = _facts(reports.write(tmp_path / "three.sqlite", tables), tmp_path)
    assert (facts["devices"], facts["device_time"]["span_ns"]) == (2, 2 * 900 * _US)
    assert "of 1.80 ms (2 devices added)" in _said("summary", data_dir=tmp_path / "runs")


@pytest.mark.slow
def test_work_before_its_launch_shows_that_the_clocks_differ(tmp_path: Path) -> None:
    trace = json.loads(_trace(tmp_path / "t.json").read_text())
    for event in trace["traceEvents"]:
        if event["cat"] in ("kernel", "gpu_memcpy"):
            event["ts"] -= 20
    (tmp_path / "t.json").write_text(json.dumps(trace))
    done = CliRunner().invoke(command(), ["import", str(tmp_path / "t.json"), "--data-dir", str(tmp_path / "runs")])
    # At -10 and 100 us, and their calls at 2 and 105 us.
    assert "warning: 2 kernels, copies and sets start before the call that launched them" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_of_several_processes_each_counts_from_its_first_work_to_its_last(tmp_path: Path) -> None:
    """As in a job of two ranks: 100 to 400 us on GPU 0, with 40 us between two kernels, and 150 to 900 us on GPU 1, with 10 us."""
    other, other_thread = reports.GLOBAL_PID + (1 << 24), reports.TID + (1 << 24)
    tables = reports.schema_3_20() | {"CUPTI_ACTIVITY_KIND_MEMCPY": [], "CUPTI_ACTIVITY_KIND_MEMSET": [], "NVTX_EVENTS": []}
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [
        *(reports.kernel(n, a * _US, b * _US) for n, a, b in ((1, 100, 300), (2, 340, 400))),
        *(reports.kernel(n, a * _US, b * _US, pid=other, deviceId=1) for n, a, b in ((1, 150, 250), (2, 260, 900))),
    ]
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] = [
        *(reports.call(n, a * _US, a * _US + 5) for n, a in ((1, 50), (2, 330))),
        *(reports.call(n, a * _US, a * _US + 5, tid=other_thread) for n, a in ((1, 140), (2, 120))),
    ]
    time = _facts(reports.write(tmp_path / "two.sqlite", tables), tmp_path)["device_time"]
    names = ("span", "busy", "idle_host_wait", "idle_kernel_wait", "idle_other")
    assert [time[f"{name}_ns"] // _US for name in names] == [300 + 750, 260 + 740, 40, 10, 0]
    said = _said("summary", data_dir=tmp_path / "runs")
    assert "largest part: compute, 95.2 % of 1.05 ms (2 processes added)" in said
    assert "sum: first to last work, 2 processes added" in said


def test_names_that_are_alike_show_where_they_differ() -> None:
    full = [
        f"sm90_xmma_wgrad_indexed_implicit_gemm_tilesize{size}_warpgroupsize1x1x1_kernel__5x_cudnn" for size in ("64", "128")
    ]
    assert apart(full, full, 42) == [
        "sm90_xmma_wgrad_inde…tilesize64_warpgroup…",
        "sm90_xmma_wgrad_inde…tilesize128_warpgrou…",
    ]
    assert apart(["agent<f> #1", "agent<f> #2", "gemm"], ["agent<f<int>>", "agent<f<long>>", "gemm"], 42) == [
        "agent…f<int>>", "agent…f<long>>", "gemm"
    ]  # fmt: skip
    far = ["void agent<" + "x, " * 40 + f"reduce::call<{kind}>(int)" for kind in ("double", "long")]
    assert apart(["agent<x>"] * 2, far, 42) == [
        "agent…x, x, x, x, x, reduce::call<double>",
        "agent…x, x, x, x, x, x, reduce::call<long>",
    ]


def test_commands_and_figures_are_not_broken_between_lines() -> None:
    start, command = "next: " + "see " * 12, "warpladder extract 20240922T101320Z-a-3031"
    assert parts.wrapped([f"{start}what: {command}"]) == [f"{start}what:", f"  {command}"]
    assert parts.wrapped(["a" * 75 + " 24.2 % less"]) == ["a" * 75, "  24.2 % less"]


def test_of_several_reports_the_ids_are_printed_alone(tmp_path: Path) -> None:
    typed = [str(_trace(tmp_path / name)) for name in ("a.json", "b.json")]
    assert len(_said("import", *typed, data_dir=tmp_path / "runs").splitlines()) == 2


@pytest.mark.slow
def test_a_profile_without_device_work_says_how_to_have_some(tmp_path: Path) -> None:
    text = _said("import", str(_trace(tmp_path / "t.json", work=False)), data_dir=tmp_path / "runs")
    assert "no device work in this profile" in text and "ProfilerActivity.CUDA" in text
    facts = _facts(tmp_path / "t.json", tmp_path)
    assert (facts["device_time"], facts["kernels"], facts["copies"], facts["steps"]["count"]) == (None, [], [], 2)
    trace = json.loads((tmp_path / "t.json").read_text())
    trace["traceEvents"].append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 5, "dur": 50, "pid": 1, "tid": 1})
    (tmp_path / "operators.json").write_text(json.dumps(trace))
    text = _said("import", str(tmp_path / "operators.json"), data_dir=tmp_path / "runs")
    assert "next: see which operators take the time on the host: warpladder extract RUN;" in " ".join(text.split())


@pytest.mark.slow
def test_of_graphs_that_were_traced_whole_compute_and_communication_are_unknown(tmp_path: Path) -> None:
    tables = reports.schema_3_20()
    tables["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [
        {"start": 5_000, "end": 9_000, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 900, "globalPid": 0, "graphId": 3, "graphExecId": 4}
    ]  # fmt: skip
    facts = _facts(reports.write(tmp_path / "g.sqlite", tables), tmp_path)
    assert facts["graphs_traced_whole"] == {"launches": 1, "total_ns": 4_000}
    time = facts["device_time"]
    assert [time[f"{name}_ns"] for name in ("compute", "communication", "exposed_communication")] == [None] * 3
    assert 0 < time["graphs_traced_whole_ns"] <= 4_000 <= time["busy_ns"]
    assert "CUDA graphs, whose kernels are not known" in _said("summary", data_dir=tmp_path / "runs")


def test_a_report_with_counters_alone_has_the_limit_of_each_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel `fill` runs at 91 % of the peak of DRAM, and `scale` keeps no unit busy. Two launches of `fill` take 2 us and 3 us."""
    pytest.importorskip("ncu_report")
    busy = {metrics.TIME: 2_000.0, metrics.DRAM: 91.0, metrics.COMPUTE: 10.0, metrics.MEMORY: 91.0}
    idle = {metrics.TIME: 4_000.0, metrics.DRAM: 3.0, metrics.COMPUTE: 10.0, metrics.MEMORY: 3.0}
    launches = (
        ncu_reports.launch("fill", busy),
        ncu_reports.launch("fill", busy | {metrics.TIME: 3_000.0}),
        ncu_reports.launch("scale", idle),
    )
    monkeypatch.setattr(
        nsight_compute, "read_report", lambda path: nsight_compute.Report(path.name, launches, len(launches), 0)
    )
    facts = _facts(ncu_reports.write(tmp_path / "r.ncu-rep"), tmp_path)
    assert facts["device_time"] is None
    first, second = facts["counters"]
    assert (first["kernel"], first["time_ns"], first["limit"], first["limit_percent"]) == ("fill", 5_000, "bound by DRAM", 91)
    assert (second["kernel"], second["time_ns"]) == ("scale", 4_000) and second["limit"].startswith("latency-bound")
    assert "page Why" in facts["next"]


def test_a_long_name_takes_a_line(tmp_path: Path) -> None:
    path = _trace(tmp_path / "t.json")
    trace = json.loads(path.read_text())
    kernel = next(each for each in trace["traceEvents"] if each["name"] == "gemm")
    path.write_text(json.dumps(trace | {"traceEvents": [kernel | {"dur": 400, "name": f"{'very::' * 500}{'long' * 100}"}]}))
    assert "regex:long" in _said("import", str(path), data_dir=tmp_path / "runs").replace("\n  ", " ")


def test_copies_of_unknown_size_are_counted_beside_the_bytes_of_the_others(tmp_path: Path) -> None:
    path = _trace(tmp_path / "t.json")
    trace = json.loads(path.read_text())
    copy = next(each for each in trace["traceEvents"] if each["cat"] == "gpu_memcpy")
    further = copy | {"ts": 200, "args": {name: value for name, value in copy["args"].items() if name != "bytes"}}
    path.write_text(json.dumps(trace | {"traceEvents": [*trace["traceEvents"], further]}))
    text = _said("import", str(path), data_dir=tmp_path / "runs")
    row = next(line for line in text.splitlines() if line.startswith("host to device, pinned (1 without size)"))
    assert row.split()[-3:] == ["1.00", "kB", "–"], "bytes and time are not of the same copies, so that they have no rate"


def test_warnings_are_wrapped_and_the_first_is_whole_where_there_is_room() -> None:
    long, short = " ".join(["word"] * 20), "file.json: warning: short"
    assert fitting([long, short], 3) == [" ".join(["word"] * 16), "  " + " ".join(["word"] * 4), short]
    assert fitting([long, short, short], 3)[2:] == ["2 more warnings, and all in full: warpladder summary RUN --all"]
    cut, more = fitting([long, short, short], 2)
    assert cut.endswith("word …") and len(cut) <= 80 and more[:1] == "2"
