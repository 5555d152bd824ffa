"""The dispatch as code: it is compiled and run, on shipped runs and with hostile names."""

import json
import math
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cell import name_of
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.views.sizes.ship import code, dispatch, query
from warpladder.data import store

pytestmark = pytest.mark.slow

needs_cpp = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ on this machine")
SHIPPED = ("H200 conv2d", "H200 tensor_transpose", "H200 mlp_gemm", "H200 gan_tconv")
HOSTILE = 'a"\\\n*/ ??/ é // #include <x>\\'


@pytest.fixture(scope="module", params=SHIPPED)
def shipped(request: pytest.FixtureRequest) -> tuple[RunData, query.Contest, dispatch.Dispatch]:
    data = load(store.find_run(request.param, [store.RECORDED]))
    (workload,) = data.workloads
    timing = cells.timings(data, workload)[0]
    found = query.contest(data, workload, timing, query.precisions_of(data, workload, timing)[0])
    offers = query.shipments(found)
    return data, found, dispatch.dispatch(data, found, offers[-1].variants, 0.0)


def compiled(folder: Path, text: str, arguments: Sequence[str], function: str) -> list[str]:
    """What the function returns for each argument, which is C++."""
    prints = "\n".join(f"  puts({function}({argument}));" for argument in arguments)
    (folder / "dispatch.cpp").write_text(f"{text}\n#include <cstdio>\nint main() {{\n{prints}\n}}\n")
    build = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", folder / "dispatch", folder / "dispatch.cpp"]
    subprocess.run(build, check=True)
    return subprocess.run([folder / "dispatch"], capture_output=True, text=True, check=True).stdout.splitlines()


def executed(text: str, function: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(text, "dispatch", "exec"), names)
    return names[function]


def expected(found: query.Contest, plan: dispatch.Dispatch) -> list[str]:
    return [name_of(*plan.chosen[case.case]) for case in found.cases]


@pytest.mark.sampled(1)
@needs_cpp
def test_cpp_chooses_at_every_measured_case_what_the_plan_says(
    shipped: tuple[RunData, query.Contest, dispatch.Dispatch], tmp_path: Path
) -> None:
    data, found, plan = shipped
    arguments = [f"{case.size_value:g}" if plan.axis else json.dumps(case.case) for case in found.cases]
    function = code.function_name(found.workload)
    assert compiled(tmp_path, code.write(plan, found, data, "C++"), arguments, function) == expected(found, plan)


@pytest.mark.sampled(2)
def test_python_and_json_choose_the_same(shipped: tuple[RunData, query.Contest, dispatch.Dispatch]) -> None:
    data, found, plan = shipped
    choose = executed(code.write(plan, found, data, "Python"), code.function_name(found.workload))
    assert [choose(case.size_value if plan.axis else case.case) for case in found.cases] == expected(found, plan)
    content = json.loads(code.write(plan, found, data, "JSON"))
    assert content["loss_percent"]["worst"] == plan.worst.value
    for case in found.cases:
        if plan.axis:
            each = next(part for part in content["branches"] if part["below"] is None or case.size_value < part["below"])
        else:
            each = content["cases"][case.case]
        assert (each["variant"], each["config"]) == plan.chosen[case.case]


@pytest.mark.sampled(2)
def test_the_shipped_runs_have_both_kinds_of_dispatch(shipped: tuple[RunData, query.Contest, dispatch.Dispatch]) -> None:
    _, found, plan = shipped
    assert plan.axis == {"conv2d": "n", "mlp_gemm": "n", "gan_tconv": "images"}.get(found.workload, "")
    assert bool(plan.branches) == bool(plan.axis)
    # No two neighbours run the same, and every limit lies between the sizes that it parts.
    for before, after in zip(plan.branches, plan.branches[1:], strict=False):
        assert (before.variant, before.config) != (after.variant, after.config)
        assert before.last < before.limit <= after.first
    # Ties are tied with the fastest shipped variant, so the loss is hardly more than the regret, or cannot be told from it.
    regret = query.shipments(found)[-1].mean.value
    assert plan.mean.value <= regret + 1 or plan.mean.low <= regret


@pytest.fixture(scope="module")
def conv2d() -> tuple[RunData, query.Contest, dispatch.Dispatch]:
    data = load(store.find_run("H200 conv2d", [store.RECORDED]))
    found = query.contest(data, "conv2d", cells.timings(data, "conv2d")[0], "fp32")
    return data, found, dispatch.dispatch(data, found, found.variants[-1:])


def hostile(plan: dispatch.Dispatch, found: query.Contest, axis: str) -> tuple[dispatch.Dispatch, query.Contest]:
    limits = 100.0, math.inf
    branches = tuple(dispatch.Branch(f"{HOSTILE}{number}", HOSTILE, limits[number], 1, 9) for number in range(2))
    made = replace(plan, axis=axis, branches=branches if axis else (), chosen={HOSTILE: (HOSTILE, "")}, worst_case=HOSTILE)
    return made, replace(found, workload=HOSTILE)


@pytest.mark.sampled(2)
@needs_cpp
@pytest.mark.parametrize("axis", ["n", "int", "a b", HOSTILE])
def test_hostile_names_are_text_in_cpp(
    conv2d: tuple[RunData, query.Contest, dispatch.Dispatch], tmp_path: Path, axis: str
) -> None:
    data, found, plan = conv2d
    made, of = hostile(plan, found, axis)
    text = code.write(made, of, data, "C++")
    said = compiled(tmp_path, text, ["99", "100"], code.function_name(HOSTILE))
    assert "\n".join(said) == f"{HOSTILE}0[{HOSTILE}]\n{HOSTILE}1[{HOSTILE}]"


@pytest.mark.parametrize("axis", ["n", "lambda", "a b", HOSTILE, ""])
def test_hostile_names_are_text_in_python(conv2d: tuple[RunData, query.Contest, dispatch.Dispatch], axis: str) -> None:
    data, found, plan = conv2d
    made, of = hostile(plan, found, axis)
    choose = executed(code.write(made, of, data, "Python"), code.function_name(HOSTILE))
    if axis:
        assert [choose(99), choose(100)] == [f"{HOSTILE}0[{HOSTILE}]", f"{HOSTILE}1[{HOSTILE}]"]
    else:
        assert (choose(HOSTILE), choose("other")) == (HOSTILE, None)
