"""Cases of any size, by the axes that each workload declares, and what each shows of its variants."""

import subprocess
import sys

import pytest

from tests.workloads.declared import HOST, WORKLOADS, name_of
from warpladder.collectors.core.plan import Request, make_plan
from warpladder.workloads import registry
from warpladder.workloads.api import WorkloadError
from warpladder.workloads.declare.cases import Axis, AxisError, parse_params, sweep

AXES = (
    Axis("n", 1, 100),
    Axis("shape", 1, 10, extents=2, instead_of="n"),
    Axis("perm", words=("01", "10")),
    Axis("k", 1, 9, optional=True),
)


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("n=007,perm=10", {"n": 7, "perm": "10"}),
        ("perm=01,n=100", {"n": 100, "perm": "01"}),
        (" shape=3x10 , perm=01, k=9", {"shape": "3x10", "perm": "01", "k": 9}),
    ],
)
def test_values_become_parameters_in_the_order_of_the_axes(text: str, params: dict[str, object]) -> None:
    found = parse_params(text, AXES)
    assert list(found.items()) == list(params.items())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing is not NAME=VALUE"),
        ("n", "n is not NAME=VALUE"),
        ("m=3,perm=01", "there is no axis m"),
        ("n=3,n=4,perm=01", "n is given twice"),
        ("perm=01", "n or shape is missing"),
        ("n=3", "perm is missing"),
        ("n=3,shape=3x3,perm=01", "shape stands in place of n; give one of them, or a --case for each"),
        ("n=0,perm=01", "n=0 is not within 1 to 100"),
        ("n=101,perm=01", "n=101 is not within 1 to 100"),
        ("n=1e2,perm=01", "n=1e2 is not a whole number"),
        ("n=\u0663,perm=01", "n=\u0663 is not a whole number"),
        ("shape=3x3x3,perm=01", "shape=3x3x3 is not 2 whole numbers joined by x"),
        ("shape=3x11,perm=01", "shape=3x11 is not within 1 to 10"),
        ("n=3,perm=11", "perm=11 is none of 01, 10"),
    ],
)
def test_what_is_no_case_is_told(text: str, said: str) -> None:
    with pytest.raises(AxisError) as refused:
        parse_params(text, AXES)
    assert str(refused.value) == said


def test_an_axis_with_a_default_can_be_left_out() -> None:
    axes = Axis("rows", 1, 2**62, default="4096"), Axis("n", 1, 100)
    assert parse_params("n=5", axes) == {"rows": 4096, "n": 5}
    assert parse_params("n=5,rows=2", axes) == {"rows": 2, "n": 5}
    assert [str(axis) for axis in axes] == ["rows (from 1, 4096 if left out)", "n (1 to 100)"]
    with pytest.raises(AxisError, match="n is missing"):
        parse_params("rows=5", axes)


def test_a_sweep_has_every_combination() -> None:
    assert list(sweep(["n=1,2", "perm=01"])) == ["n=1,perm=01", "n=2,perm=01"]
    for wrong in (["n"], ["n=1,,2"], ["n=1", "n=2"], ["=3"]):
        with pytest.raises(AxisError):
            list(sweep(wrong))


@pytest.mark.parametrize("workload", WORKLOADS, ids=name_of)
def test_the_axes_of_a_workload_give_its_declared_cases_and_others(workload) -> None:  # type: ignore[no-untyped-def]
    assert workload.make_case
    for case in workload.cases:
        known = {axis.name for axis in workload.axes}
        if set(case.params) <= known:
            found = workload.make_case(parse_params(case.name, workload.axes))
            assert (found.name, found.flops, found.min_bytes) == (case.name, case.flops, case.min_bytes)
    with pytest.raises(WorkloadError, match="its axes are"):
        workload.case("speed=3")


def test_a_case_that_is_not_declared_is_planned_ranked_and_found_by_the_child() -> None:
    plan = make_plan(Request(["conv2d", "mlp_gemm"], cases=["n=3000", "n=100", "n=512"], variants=["numpy"]))
    ranks = {(w.name, c.name): c.size_rank for w in plan.workloads for c in w.cases if c.name in ("n=3000", "n=100", "n=512")}
    assert [ranks["conv2d", f"n={n}"] for n in (100, 512, 3000)] == [0, 1, 2]
    assert {(job.workload.name, job.case) for job in plan.jobs} == set(ranks)
    for job in plan.jobs:
        assert registry.load(job.workload.name).case(job.case).min_bytes > 0


@pytest.mark.slow
def test_a_quick_run_begins_with_the_largest_case_of_every_workload() -> None:
    plan = make_plan(Request())
    names = [name for name in registry.names() if not registry.load(name).draft]
    first = plan.jobs[: len(names)]
    assert sorted(job.workload.name for job in first) == sorted(names)  # those that compile quickly come first
    assert {job.workload.name: job.case for job in first}["conv2d"] == "n=1024"
    assert len(plan.jobs) > len(first)


def test_every_variant_has_a_whole_header_and_a_host_variant_shows_its_loops() -> None:
    for workload in WORKLOADS:
        for variant in workload.variants:
            assert all(variant.header.values()), (workload.name, variant.name)
    for workload, host in HOST:
        of = workload.name, workload.name.removesuffix("_bf16"), "gemm_bf16"  # the last two: the same problem in other types
        assert host.source_path in [f"workloads/{name}/host.py" for name in of]
        assert "for " in host.source_text or host.name == "numpy", (workload.name, host.name)


def test_importing_the_workloads_imports_neither_numba_nor_torch() -> None:
    code = "from warpladder.workloads import registry; registry.load_all([], []); import sys"
    code += "; print({'numba', 'torch', 'cupy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
