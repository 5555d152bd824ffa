"""What a plan needs is compiled before anything is measured, side by side."""

from pathlib import Path

import pytest

from collectors import compile_ahead, kernel_cache
from collectors.compiler import compilation_of, compiled
from collectors.plan import Request, make_plan
from collectors.signals import Stopped
from workloads import registry

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
    kinds = [(job[0], job[2] if job[0] == "kernels" else job[1:5]) for job in compile_ahead.jobs_of(PLAN, ["sm_90"])]
    assert kinds == [
        ("kernels", "workloads/conv2d/kernels/v02_naive_global.cu"),
        ("kernels", "workloads/conv2d/kernels/v03_coalesced.cu"),
        ("run once", ("conv2d", "", "numba_serial", "n=256")),
    ]
    assert [job[0] for job in compile_ahead.jobs_of(PLAN, [])] == ["run once"]


def test_what_was_compiled_is_on_disk_for_whoever_measures(cache: Path) -> None:
    jobs = compile_ahead.jobs_of(PLAN, ["sm_90"])
    told: list[int] = []
    compile_ahead.compile_all(jobs, told.append, lambda: None)
    assert told == [1, 2, 3]
    assert [job[0] for job in compile_ahead.jobs_of(PLAN, ["sm_90"])] == ["run once"]  # whose cache is Numba's
    assert list((cache / "numba").rglob("*.nbc"))
    variant = registry.load("conv2d").variant("v02_naive_global")
    assert kernel_cache.holds(compilation_of(variant, ["conv2d"], "sm_90").key)


def test_what_does_not_compile_is_left_for_its_verdict() -> None:
    jobs = [
        ("kernels", "this is not CUDA", "x.cu", ("k",), (), "sm_90", ()),
        ("run once", "conv2d", "", "no_such_variant", "n=256", ""),
    ]
    told: list[int] = []
    compile_ahead.compile_all(jobs, told.append, lambda: None)
    assert told == [1, 2]


def test_a_signal_ends_it_at_once() -> None:
    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        compile_ahead.compile_all(compile_ahead.jobs_of(PLAN, ["sm_90"]), lambda done: None, stop)
