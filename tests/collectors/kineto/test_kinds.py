"""What the events of a trace are: of old profilers, of other devices, of JAX; and what is no trace."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.collectors.kineto.made_events import Event, document, host, imported, imported_file, kernel, launch
from warpladder.collectors.kineto.copies import copy_of
from warpladder.collectors.trace.model import ReportError
from warpladder.data import store
from warpladder.data.iterations import steps_of


def copy(name: str, correlation: int = 0, start: float = 50, **args: Any) -> Event:
    return host(name, start, 10, "gpu_memcpy", 0, 7, device=0, stream=7, correlation=correlation, **args)


@pytest.mark.parametrize("category", ["cpu_op", "Operator"])
def test_steps_that_an_old_profiler_wrote_as_operators_are_iterations(tmp_path: Path, category: str) -> None:
    """Three steps of 990 us with an operator of 100 us and a kernel of 400 us, with textual ids of threads."""
    events = []
    for number in (10, 11, 12):
        begin = 1_635_202_069_792_000 + 1000 * (number - 10)
        events += [
            host(f"ProfilerStep#{number}", begin, 990, category, 31383, "31383"),
            host("aten::mm", begin + 10, 100, category, 31383, "31383"),
            host("cudaLaunchKernel", begin + 20, 9, "Runtime", 31383, "31383", correlation=number),
            {**kernel(begin + 200, 400, number), "cat": "Kernel", "tid": "stream 7"},
        ]
    run, _ = imported(tmp_path, events, baseTimeNanoseconds=0)
    steps = steps_of(run)
    assert steps.number.tolist() == [10, 11, 12]
    assert (steps.end - steps.start).tolist() == [990_000] * 3
    operations = run.table("operations")
    assert operations["name"].tolist() == ["aten::mm"] * 3 and operations["device_ns"].tolist() == [400_000] * 3
    assert operations["thread"].tolist() == [31383] * 3


@pytest.mark.parametrize(
    "category",
    [
        "xpu_runtime",
        "xpu_driver",
        "mtia_runtime",
        "musa_runtime",
        "privateuse1_runtime",
        "privateuse1_driver",
        "hip_runtime",
        "Runtime",
    ],
)
def test_calls_of_every_device_launch_its_kernels(tmp_path: Path, category: str) -> None:
    events = [host("aten::mm", 10, 100), host("enqueueKernel", 20, 5, category, correlation=3), kernel(40, 500, 3)]
    run, _ = imported(tmp_path, events)
    assert run.table("kernels")["launch_start_ns"].tolist() == [10**18 + 20_000]
    assert run.table("operations")["device_ns"].tolist() == [500_000]


def test_times_with_fractions_are_those_of_the_digits(tmp_path: Path) -> None:
    """A float64 of 1.7e15 us has neighbours a quarter of a microsecond apart."""
    texts = [("1730000000123456.8", "0.3"), ("1730000000123457.123", "10.001"), ("1730000000123467", "2")]
    listed = [
        json.dumps({**kernel(1, 1, 0), "ts": "TS", "dur": "DUR"}).replace('"TS"', ts).replace('"DUR"', dur) for ts, dur in texts
    ]
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [' + ", ".join(listed) + "]}")
    run, _ = imported_file(path, tmp_path / "runs")
    kernels = run.table("kernels")
    assert kernels["start_ns"].tolist() == [1730000000123456800, 1730000000123457123, 1730000000123467000]
    assert (kernels["end_ns"] - kernels["start_ns"]).tolist() == [300, 10001, 2000]


NAMES = {
    "Memcpy HtoD (Pinned -> Device)": ("h2d", "pinned", "device"),
    "Memcpy DtoH (Device -> Pageable)": ("d2h", "device", "pageable"),
    "Memcpy DtoD (Device -> Device)": ("d2d", "device", "device"),
    "Memcpy PtoP (Device -> Device)": ("p2p", "device", "device"),
    "Memcpy HtoH (Pageable -> Pinned)": ("h2h", "pageable", "pinned"),
    "Memcpy HtoA (Pinned -> Array)": ("h2d", "pinned", "array"),
    "Memcpy AtoH (Array -> Pinned)": ("d2h", "array", "pinned"),
    "Memcpy HtoD (Host -> Device)": ("h2d", None, "device"),
    "CopyHostToDevice": ("h2d", None, None),
    "CopyDeviceToHost": ("d2h", None, None),
    "CopyDeviceToDevice": ("d2d", None, None),
    "MEMORY_COPY_HOST_TO_DEVICE": ("h2d", None, None),
    "Memcpy M2D (Memory -> Device)": ("h2d", "pageable", "device"),
    "Memcpy D2S (Device -> Shared)": ("d2d", "device", "managed"),
    "MemcpyH2D": ("h2d", None, None),
    "Memcpy <unknown> (Device -> Pinned)": ("d2h", "device", "pinned"),
    "Memcpy <unknown> (? -> ?)": ("unknown", None, None),
    "FillBuffer": ("unknown", None, None),
    "Memcpy": ("unknown", None, None),
}


def test_copies_are_of_the_direction_in_their_name_or_of_an_unknown_one(tmp_path: Path) -> None:
    run, warnings = imported(tmp_path, [copy(name, start=50 + 20 * place) for place, name in enumerate(NAMES)])
    found = run.table("memory_ops").sort_values("start_ns")
    columns = (found[name].astype(object).where(found[name].notna(), None) for name in ("kind", "src_memory", "dst_memory"))
    assert dict(zip(NAMES, zip(*columns, strict=True), strict=True)) == NAMES
    assert any("3 copies are of an unknown direction" in text for text in warnings)


def test_the_kind_in_the_arguments_tells_a_direction_that_the_name_does_not() -> None:
    assert copy_of("Copy", "CopyHostToDevice").kind == "h2d"
    assert copy_of("Memcpy <unknown> (? -> ?)", "DtoH").kind == "d2h"


def test_a_copy_without_a_size_has_that_of_its_call_or_none(tmp_path: Path) -> None:
    def call(correlation: int, **args: Any) -> Event:
        return host("hipMemcpyWithStream", 10, 2, "cuda_runtime", correlation=correlation, **args)

    events = [
        *(call(1, size="2560", kind="1"), copy("Memcpy HtoD (Host -> Device)", 1)),
        *(call(2), copy("Memcpy HtoD (Host -> Device)", 2, 70)),
        *(call(3, size=8), copy("Memcpy HtoD (Host -> Device)", 3, 90, bytes=16)),
        copy("Memcpy HtoD (Host -> Device)", 4, 110),
        *(call(5, size=0), copy("Memcpy HtoD (Host -> Device)", 5, 130)),
    ]
    run, _ = imported(tmp_path, events)
    sizes = run.table("memory_ops").sort_values("start_ns")["bytes"].astype(object)
    assert sizes.where(sizes.notna(), None).tolist() == [2560, None, 16, None, 0]


def lane(pid: int, name: str, lines: dict[int, str]) -> list[Event]:
    """Metadata of a process of XLA, and of its lines."""
    return [
        {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}},
        *({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": line}} for tid, line in lines.items()),
    ]


def x(pid: int, tid: int, name: str, start: float, lasts: float, **args: Any) -> Event:
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": start, "dur": lasts, "args": args}


def xla(events: list[Event], folder: Path) -> tuple[store.Run, list[str]]:
    path = folder / "host.trace.json"
    path.write_text(json.dumps({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*events, {}]}))
    return imported_file(path, folder / "runs")


def test_a_trace_of_jax_has_kernels_copies_calls_and_ranges(tmp_path: Path) -> None:
    details = "regs:32 static_shared:16 dynamic_shared:1024 grid:4,2,1 block:128,1,1 occ_pct:50"
    events = [
        *lane(1, "/device:GPU:0", {1: "XLA Modules", 2: "XLA Ops", 14: "Stream #14(Compute)"}),
        *lane(2, "/device:GPU:1", {15: "Stream #15(MemcpyH2D)"}),
        *lane(701, "/host:CPU", {7: "python", 8: "tf_XLAEigen/8"}),
        x(701, 7, "train", 0, 900, step_num="3"),
        x(701, 7, "$main.py:3 step", 1, 898),
        x(701, 7, "PjitFunction(f)", 5, 200),
        x(701, 8, "cuLaunchKernel", 10, 5, correlation_id="7", device_id="0"),
        x(701, 8, "cuMemcpyHtoDAsync_v2", 30, 5, correlation_id="8"),
        x(1, 1, "jit_f(123)", 100, 400),
        x(1, 2, "add.1", 100.5, 50.25),
        x(1, 14, "loop_add_fusion", 100.5, 50.25, correlation_id="7", hlo_op="add.1", kernel_details=details),
        x(1, 14, "MemcpyD2D", 200.5, 40, memcpy_details="kind_src:device kind_dst:device size:4096 dest:0 async:1"),
        x(
            2,
            15,
            "MemcpyH2D",
            210,
            30,
            correlation_id="8",
            memcpy_details="kind_src:pinned kind_dst:device size:512 dest:1 async:1",
        ),
        x(1, 14, "Memset", 300, 1, memset_details="kind:device num_bytes:64 async:1"),
    ]
    run, _ = xla(events, tmp_path)
    (row,) = run.table("kernels").to_dict("records")
    assert (row["name"], row["start_ns"], row["end_ns"], row["device"], row["stream"]) == (
        "loop_add_fusion",
        100_500,
        150_750,
        0,
        14,
    )
    assert [row[f"grid_{axis}"] for axis in "xyz"] == [4, 2, 1] and row["block_x"] == 128 and row["registers"] == 32
    assert row["dynamic_shared_bytes"] == 1040 and row["launch_start_ns"] == 10_000
    memory = run.table("memory_ops").sort_values("start_ns")
    assert memory["kind"].tolist() == ["d2d", "h2d", "memset"] and memory["bytes"].tolist() == [4096, 512, 64]
    assert memory["device"].tolist() == [0, 1, 0] and memory["src_memory"].tolist()[:2] == ["device", "pinned"]
    assert run.table("api_calls")["name"].tolist() == ["cuLaunchKernel", "cuMemcpyHtoDAsync_v2"]
    assert sorted(run.table("ranges")["text"]) == ["PjitFunction(f)", "step 3"]
    assert run.info["collector"] == "xla_profiler"


def test_what_ran_on_a_tpu_stands_on_its_line_of_operations(tmp_path: Path) -> None:
    events = [
        *lane(1, "/device:TPU:3", {1: "XLA Modules", 2: "XLA Ops", 3: "Steps"}),
        *lane(701, "/host:CPU", {7: "python"}),
        x(1, 1, "jit_f(1)", 0, 100),
        x(1, 2, "fusion.1", 0, 40),
        x(1, 2, "fusion.2", 50, 30),
    ]
    run, _ = xla(events, tmp_path)
    kernels = run.table("kernels")
    assert kernels["name"].tolist() == ["fusion.1", "fusion.2"] and set(kernels["device"]) == {3}


@pytest.mark.parametrize("devices", [(), ("/device:GPU:0",)])
def test_a_trace_of_jax_without_work_of_a_device_advises_jax(tmp_path: Path, devices: Sequence[str]) -> None:
    """Without a GPU, XLA names no device at all."""
    lanes = [each for name in devices for each in lane(1, name, {})]
    events = [*lanes, *lane(701, "/host:CPU", {7: "python"}), x(701, 7, "train", 0, 10, step_num="2")]
    run, warnings = xla(events, tmp_path)
    assert run.table("ranges")["text"].tolist() == ["step 2"]
    assert any("jax.profiler" in text for text in warnings) and not any("--trace" in text for text in warnings)


OTHERS: dict[str, tuple[Any, str]] = {
    "browser": (
        [x(1, 2, "Run", 0, 1) | {"cat": "toplevel"}, x(1, 2, "f", 0, 1) | {"cat": "devtools.timeline,v8"}],
        "a trace of a browser",
    ),
    "ebpf": ([x(1, 2, "sys_read", 0, 1) | {"cat": "ebpf"}], "a trace of eBPF"),
    "other": ([x(1, 2, "f", 0, 1) | {"cat": "my tool"}], "`my tool`"),
    "plain": ([x(1, 2, "f", 0, 1)], "without a category"),
    "empty": ([], "has no events"),
    "begin and end": ([host("aten::mm", 0, 1) | {"ph": phase} for phase in "BE"], "begins and ends"),
    "metadata": (lane(1, "python", {2: "thread"}), "no trace of a profiler"),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("is_list", [False, True])
def test_a_file_that_is_no_trace_of_a_gpu_is_refused_with_what_it_is(tmp_path: Path, name: str, is_list: bool) -> None:
    events, said = OTHERS[name]
    path = tmp_path / "file.json"
    path.write_text(json.dumps(events if is_list else {"traceEvents": events}))
    with pytest.raises(ReportError, match=r"\Afile\.json: [^\n]*\Z") as refused:
        imported_file(path, tmp_path / "runs")
    assert said in str(refused.value)
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


def test_a_trace_without_device_work_advises_the_option_of_pytorch(tmp_path: Path) -> None:
    run, warnings = imported(tmp_path, [host("ProfilerStep#1", 0, 100, "user_annotation"), host("aten::mm", 5, 50)])
    told = " ".join([*warnings, *run.table("diagnostics")["text"]])
    assert "ProfilerActivity.CUDA" in told and "--trace" not in told
    run, _ = imported(tmp_path, [host("aten::mm", 5, 50), launch(10, 1), kernel(40, 5, 1)], "other.json")
    told = " ".join(run.table("diagnostics")["text"])
    assert "record_function" in told and "--trace" not in told


def test_a_list_of_events_alone_is_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps(document([launch(10, 1), kernel(40, 5, 1)])["traceEvents"]))
    run, _ = imported_file(path, tmp_path / "runs")
    assert run.rows("kernels") == 1
