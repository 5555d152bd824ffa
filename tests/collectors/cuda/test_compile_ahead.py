"""What a plan needs is compiled before anything is measured, side by side."""

import inspect
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpladder.collectors.core import kernel_cache
from warpladder.collectors.core.plan import Request, VersionsRef, make_plan
from warpladder.collectors.core.signals import Stopped
from warpladder.collectors.cuda import compile_ahead
from warpladder.collectors.cuda.compile_ahead import Job, Kernels, RunOnce
from warpladder.collectors.cuda.compiler import compilation_of, compiled
from warpladder.data import store
from warpladder.workloads import registry
from warpladder.workloads.registry import Version

pytestmark = pytest.mark.slow

PLAN = make_plan(
    Request(["conv2d"], cases=["n=256"], variants=["v02_naive_global", "v03_coalesced", "numba_serial", "numpy", "cudnn"])
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(kernel_cache.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    compiled.cache_clear()
    return tmp_path


def test_kernels_that_configs_share_are_one_job_and_functions_of_numba_are_jobs_too() -> None:
    jobs = compile_ahead.jobs_of(PLAN, ["sm_90"])
    assert [(type(job), job.name) for job in jobs] == [
        (RunOnce, "conv2d/numba_serial"),
        (Kernels, "workloads/conv2d/kernels/v02_naive_global.cu"),
        (Kernels, "workloads/conv2d/kernels/v03_coalesced.cu"),
    ]
    assert [type(job) for job in compile_ahead.jobs_of(PLAN, [])] == [RunOnce]


def test_what_depends_on_the_size_is_compiled_for_the_share_of_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_ahead, "_versions", lambda *modules: modules)
    wanted = Request(["mlp_data_parallel_bf16"], cases=["batch=400"], variants=["torch_compile_allreduce"], gpus=(1, 2))
    jobs = [job for job in compile_ahead.jobs_of(make_plan(wanted), ["sm_90"]) if isinstance(job, RunOnce)]
    assert [(job.name, job.case, job.ranks) for job in jobs] == [
        ("mlp_data_parallel_bf16/torch_compile_allreduce", "batch=400", ranks) for ranks in (1, 2)
    ]
    assert len({job.mark for job in jobs}) == 2
    ran: list[str] = []
    monkeypatch.setattr(compile_ahead, "_run_once", lambda workload, case, *others: ran.append(case.name))
    for job in jobs:
        compile_ahead._do(job, dict)
    assert ran == ["batch=400", "batch=200,rate=32.0"]


def test_what_two_versions_of_a_file_compile_at_their_first_call_waits_for_the_process_that_has_both() -> None:
    both = VersionsRef("conv2d", own=Version(Path("bench.py")), other=Version(Path("old", "bench.py")))
    plan = replace(PLAN, jobs=tuple(replace(job, workload=both) for job in PLAN.jobs))
    assert {type(job) for job in compile_ahead.jobs_of(plan, ["sm_90"])} == {Kernels}


def _compile(jobs: Mapping[Job, Sequence[int]], check: Callable[[], object] = lambda: None) -> list[tuple[int, int, str]]:
    """Compile all jobs, and return what is reported."""
    told: list[tuple[int, int, str]] = []
    with compile_ahead.Compilers(jobs, lambda *report: told.append(report), check) as compilers:
        compilers.wait_for()
    return told


def test_what_was_compiled_is_on_disk_for_whoever_measures(cache: Path) -> None:
    jobs = compile_ahead.jobs_of(PLAN, ["sm_90"])
    told = _compile(jobs)
    assert [report[:2] for report in told] == [(finished, 3) for finished in range(4)]
    assert re.fullmatch(r"\d+\.\d s; longest: conv2d/numba_serial, \d+\.\d s of processor time", told[-1][2])
    assert compile_ahead.jobs_of(PLAN, ["sm_90"]) == {}
    assert list((cache / "numba").rglob("*.nbc"))
    variant = registry.load("conv2d").variant("v02_naive_global")
    assert kernel_cache.holds(compilation_of(variant, ["conv2d"], "sm_90").key)


def test_numba_compiles_again_where_the_file_of_the_loops_is_another_or_was_written_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (job,) = compile_ahead.jobs_of(PLAN, [])
    assert isinstance(job, RunOnce)
    kernel_cache.write(job.mark, {}, b"")
    assert compile_ahead.jobs_of(PLAN, []) == {}
    loops = inspect.unwrap(registry.load("conv2d").variant("numba_serial").run)  # type: ignore[union-attr]
    source, stat = Path(loops.__code__.co_filename), Path.stat
    later = SimpleNamespace(st_mtime_ns=source.stat().st_mtime_ns + 1)
    monkeypatch.setattr(Path, "stat", lambda path, **how: later if path == source else stat(path, **how))
    (again,) = compile_ahead.jobs_of(PLAN, [])
    assert isinstance(again, RunOnce) and again.mark != job.mark


@pytest.mark.thorough
def test_what_does_not_compile_is_left_for_its_verdict() -> None:
    jobs = [
        Kernels("this is not CUDA", "x.cu", ("k",), (), "sm_90", ()),
        RunOnce("conv2d", "", "no_such_variant", "", "n=256", ""),
    ]
    assert [finished for finished, *_ in _compile({job: [0] for job in jobs})] == [0, 1, 2]


def test_what_a_library_prints_is_no_finished_job(tmp_path: Path) -> None:
    (tmp_path / "talks.py").write_text("import os\nos.write(1, b'compiling, please wait\\n')\n")
    job = RunOnce("talks", str(tmp_path / "talks.py"), "loud", "", "n=1", "")
    _, (finished, jobs, times) = _compile({job: [0]})
    assert (finished, jobs) == (1, 1) and "longest: talks/loud, " in times


def test_a_signal_ends_it_at_once() -> None:
    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        _compile(compile_ahead.jobs_of(PLAN, ["sm_90"]), stop)


def test_a_case_waits_for_what_it_needs_and_nothing_compiles_while_it_is_measured(tmp_path: Path) -> None:
    """The slow job writes the time, again and again, until a file exists."""
    clock = tmp_path / "clock.py"
    clock.write_text(
        "import pathlib, time\nhere = pathlib.Path(__file__).parent\n"
        "while not (here / 'enough').exists():\n    (here / 'tick').write_text(str(time.monotonic())); time.sleep(0.01)\n"
    )
    slow = RunOnce("clock", str(clock), "x", "", "n=1", "")
    quick = RunOnce("conv2d", "", "no_such_variant", "", "n=256", "")
    tick, enough = tmp_path / "tick", tmp_path / "enough"
    with compile_ahead.Compilers({quick: [0], slow: [1]}, lambda *report: None, lambda: None) as compilers:
        while not tick.exists():
            time.sleep(0.01)
        compilers.wait_for(0)
        ends, seen = time.monotonic() + 10, ""
        while (now := tick.read_text()) != seen and time.monotonic() < ends:  # a busy machine takes a while to stop it
            seen, _ = now, time.sleep(0.3)
        assert now == seen
        enough.touch()
        compilers.wait_for(1)
        began = time.monotonic()
        compilers.wait_for()
        assert time.monotonic() - began < 0.1


def test_a_small_gpu_measures_beside_no_process_that_compiles() -> None:
    jobs = {RunOnce("conv2d", "", name, "", "n=256", ""): [number] for number, name in enumerate(("one", "other"))}
    with compile_ahead.Compilers(jobs, lambda *report: None, lambda: None, 1 << 30) as compilers:
        compilers.wait_for(0)
        began = time.monotonic()
        compilers.wait_for(1)
        assert time.monotonic() - began < 0.1  # nothing was left


def test_what_pytorch_compiles_is_a_job_a_case_and_what_cupy_compiles_one_a_variant_until_the_cache_notes_it() -> None:
    asked = Request(
        ["mlp_training", "conv2d"],
        cases=["batch=100", "batch=400", "n=512", "n=1024"],
        variants=["torch_compile", "cupy_ndimage"],
    )
    plan = make_plan(asked)
    jobs = [*compile_ahead.jobs_of(plan, ["sm_90"])]
    of_torch = {
        batch: [
            ("mlp_training", "", "torch_compile", f"mode={mode}", f"batch={batch}")
            for mode in ("default", "max-autotune-no-cudagraphs")
        ]
        for batch in (100, 400)
    }
    of_cupy = ("conv2d", "", "cupy_ndimage", "", "n=256")
    assert [astuple(job)[:5] for job in jobs] == [*of_torch[100], of_cupy, *of_torch[400]]
    assert compile_ahead.jobs_of(plan, []) == {}
    assert compile_ahead.jobs_of(plan, ["sm_90"], libraries=False) == {}
    for job in jobs[1:]:
        assert isinstance(job, RunOnce)
        kernel_cache.write(job.mark, {}, b"")
    assert [*compile_ahead.jobs_of(plan, ["sm_90"])] == jobs[:1]


def test_a_route_that_leaves_compiled_code_on_disk_is_run_once_at_its_smallest_case() -> None:
    plan = make_plan(Request(["call_routes"], cases=["n=1024,calls=1", "n=4096,calls=1"]))
    jobs = [job for job in compile_ahead.jobs_of(plan, ["sm_90"]) if isinstance(job, RunOnce) and "numba_" not in job.variant]
    assert {(job.variant, job.case) for job in jobs} == {
        (name, "n=64,calls=1")
        for name in ("cupy_raw_module", "cupy_unsynchronized", "cupy_view", "pybind11", "torch_ext", "triton", "pycuda")
    }


@pytest.mark.thorough
@pytest.mark.parametrize("text", ["raise RuntimeError", "import os; os._exit(7)"])
def test_a_module_that_cannot_be_imported_or_ends_its_process_costs_the_recording_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "broken_module.py").write_text(text)
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    done = subprocess.run(
        [sys.executable, "-m", "warpladder", "record", str(file), "--data-dir", str(tmp_path / "runs"),
         "--collector", "host_clock"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    run = store.open_run(tmp_path / "runs" / done.stdout.splitlines()[-1])
    assert set(run.table("results")["status"]) == {"ok"}
    assert set(run.table("ceilings")["name"]) >= {"host_copy", "host_fma"}


OWN = """
import numpy as np
from warpladder.workloads.api import Buffer, Case, HostVariant, Workload

def double(case, inputs, outputs):
    outputs["y"][:] = 2 * inputs["x"]

WORKLOAD = Workload(
    name="mine", title="Doubling", cases=(Case({"n": 8}, flops=8, min_bytes=64, sets=("quick",)),),
    variants=(HostVariant("double", "double", "host", run=double), HostVariant("other", "other", "host", run=double, requires=("broken_module",))),
    buffers=lambda case: ({"x": Buffer((8,))}, {"y": Buffer((8,))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(8, dtype=np.float32)},
    reference=lambda case, inputs: {"y": 2.0 * inputs["x"]},
)
"""


def test_what_the_first_case_of_each_workload_needs_comes_before_what_later_cases_need() -> None:
    plan = make_plan(Request(["conv2d", "tensor_transpose", "mlp_training"], case_set="quick", variants=["torch_compile"]))
    needed = [*compile_ahead.jobs_of(plan, ["sm_90"]).values()]
    workloads = [planned.workload.name for planned in plan.jobs]
    is_first = [workloads.index(workloads[numbers[0]]) == numbers[0] for numbers in needed]
    assert is_first == sorted(is_first, reverse=True) and not all(is_first)
