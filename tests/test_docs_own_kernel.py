"""docs/own-kernel.md: its blocks, put together, are a file that is recorded; its messages and tolerances are those of the code."""

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from tests.doc_pages import ROOT, Block, blocks_of
from tests.emulator import emulator
from warpladder.collectors.choice import gpu_problem, has_module
from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.workloads import registry
from warpladder.workloads.api import TOLERANCE, CudaVariant, Workload

pytestmark = pytest.mark.slow

PAGE: Final = ROOT / "docs" / "own-kernel.md"
BLOCKS: Final = list(blocks_of(PAGE))
#: Names in a block -> the module that it needs.
NEEDS: Final = {"torch": "torch", "@products": "torch", "@trained": "torch"}
#: Workload -> variants.
ON_HOST: Final = {
    "softmax": {"naive", "into", "in_place", "by_blocks", "softmax_rows"},
    "moments": {"two_passes"},
    "products": {"matmul"},
    "ranks": {"unstable"},
    "trained_layer_norm": {"native", "by_hand"},
}
ON_GPU: Final = {"softmax": {"softmax"}, "scaling": {"strided_loop"}}


def _runs_here(block: Block) -> bool:
    built = emulator.COMPILER is not None or "shared_library" not in block.text
    return built and all(has_module(module) for name, module in NEEDS.items() if name in block.text)


def page_as_file(folder: Path) -> Path:
    """The page's Python in one file, without what needs a package that is missing, and the kernel beside it."""
    file = folder / "bench.py"
    file.write_text("\n\n".join(block.text for block in BLOCKS if block.language == "python" and _runs_here(block)))
    kernel, function = (block.text for block in BLOCKS if block.language == "cpp")
    (folder / "softmax.cu").write_text(kernel)
    (folder / "softmax.cpp").write_text(function)
    if emulator.COMPILER:
        build = [emulator.COMPILER, "-O2", "-shared", "-fPIC", "-o", "libsoftmax.so", "softmax.cpp"]
        assert " ".join(["c++", *build[1:]]) in PAGE.read_text()
        subprocess.run(build, cwd=folder, check=True)
    return file


def results_of(folder: Path, collector: str) -> dict[tuple[str, str], set[str]]:
    """The statuses of each variant of the page, by workload and variant; a reason stands after any but ok."""
    limits = replace(LIMITS["quick"], seconds=0.05, processes=1)
    run_id, _ = Recorder(make_plan(Request(files=[page_as_file(folder)]), limits), collector_of(collector)).record(
        folder, "", []
    )
    results = store.open_run(folder / run_id).table("results")
    said = results["status"].where(results["status"] == "ok", results["status"] + ": " + results["detail"])
    found = {key: set(said[rows]) for key, rows in results.groupby(["workload", "variant"]).groups.items()}
    found["softmax", "by_blocks"].remove("skipped: rows is no multiple of 48")
    return found


def expected(variants: dict[str, set[str]]) -> set[tuple[str, str]]:
    variants = {**variants, "softmax": variants["softmax"] - ({"softmax_rows"} if emulator.COMPILER is None else set())}
    there = {"softmax", "moments", "scaling", "ranks", *(("products", "trained_layer_norm") if has_module("torch") else ())}
    return {(workload, name) for workload, names in variants.items() if workload in there for name in names}


@pytest.mark.skipif(gpu_problem() is None, reason="with a GPU the other test records the page")
def test_the_blocks_of_the_page_are_measured_on_the_host(tmp_path: Path) -> None:
    found = results_of(tmp_path, "host_clock")
    assert {key for key, said in found.items() if said == {"ok"}} == expected(ON_HOST)
    skipped = {key: said.pop() for key, said in found.items() if said != {"ok"}}
    assert set(skipped) == expected(ON_GPU)
    assert all(said.startswith("skipped: needs an NVIDIA GPU") for said in skipped.values())


@pytest.mark.gpu
def test_the_blocks_of_the_page_are_measured_on_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    found = results_of(tmp_path, "cuda_events")
    assert found == {key: {"ok"} for key in expected(ON_HOST) | expected(ON_GPU)}


def _softmax(folder: Path) -> tuple[Workload, CudaVariant]:
    workload = next(each for each in registry.load_file(page_as_file(folder)) if each.name == "softmax")
    variant = workload.variant("softmax")
    assert isinstance(variant, CudaVariant)
    return workload, variant


@emulator.needs_compiler
@pytest.mark.parametrize("order", ["forward", "backward"])
def test_the_kernel_of_the_page_is_right(tmp_path: Path, order: emulator.Order) -> None:
    workload, variant = _softmax(tmp_path)
    assert workload.make_case is not None
    case = workload.make_case({"rows": 3, "n": 300})
    inputs = workload.make_inputs(case, np.random.default_rng(1))
    right = workload.reference(case, inputs)["out"]
    for config in variant.configs:
        outputs = {"out": np.full((3, 300), np.nan, np.float32)}
        emulator.run(variant, variant.launches(case, config), inputs, outputs, order)
        assert np.linalg.norm(outputs["out"] - right) <= workload.tolerance["fp32"] * np.linalg.norm(right)


@pytest.mark.parametrize("arch", [pytest.param("sm_75", marks=pytest.mark.thorough), "sm_90"])
def test_the_kernel_of_the_page_compiles_without_spills(tmp_path: Path, arch: str) -> None:
    _, variant = _softmax(tmp_path)
    module = compile_variant(variant, ["softmax<128>", "softmax<256>"], arch)
    assert [kernel.spill_bytes for kernel in module.kernels.values()] == [0, 0]


def test_the_tolerances_of_the_page_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| .* \| `(\w+)` \| ([\de.-]+)\b.* \|$", PAGE.read_text(), re.MULTILINE)
    assert {precision: float(tolerance) for precision, tolerance in rows} | {"mixed": 0.0} == TOLERANCE


def _texts_of_code() -> Iterator[str]:
    """Every text that the code of recordings has, the parts of an f-string one by one."""
    for room in ("workloads", "collectors"):
        for file in (ROOT / room).rglob("*.py"):
            yield from (
                node.value
                for node in ast.walk(ast.parse(file.read_text()))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            )


def test_the_messages_of_the_page_are_those_of_the_code() -> None:
    table = PAGE.read_text().partition("| message | cure |\n|---|---|\n")[2].partition("\n\n")[0]
    messages = [line.split("`")[1] for line in table.splitlines()]
    assert len(messages) > 5
    code = "\n".join(_texts_of_code())
    pieces = [piece.strip() for message in messages for piece in message.split("…") if len(piece.strip()) > 2]
    assert [piece for piece in pieces if piece not in code] == []
