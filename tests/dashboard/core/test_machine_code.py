"""The kernels of cells and their counters, of a run written by hand."""

from pathlib import Path

import pytest

from tests.synthetic import made_code, made_runs
from tests.synthetic.made_code import CASE, CODES, COUNTS, NAIVE, WORKLOAD
from warpladder.dashboard.core.machine_code import MachineCode, kernels_by_variant
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.data import store
from warpladder.data.naming import CellName

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return load(store.open_run(made_code.write(tmp_path_factory.mktemp("code"))))


def cell(variant: str, config: str = "") -> CellName:
    return CellName(WORKLOAD, variant, config, CASE)


def test_cells_come_in_the_order_of_the_run(data: RunData) -> None:
    assert data.code
    assert data.code.cells == tuple(cell(*names) for names in CODES)
    assert [(name.variant, len(kernels)) for name, kernels in kernels_by_variant(data.code, WORKLOAD, CASE)] == [
        ("v01_naive", 1), ("v01_naive", 1), ("v02_shared", 2), ("v03_register_tile", 1), ("cudnn", 1),
    ]  # fmt: skip
    assert not list(kernels_by_variant(data.code, WORKLOAD, "n=512"))


def test_a_kernel_has_its_code_and_its_resources(data: RunData) -> None:
    (kernel,) = data.code.kernels(cell("v01_naive", "block=8"))
    assert [(each.line, each.text) for each in kernel.code.instructions] == list(NAIVE)
    assert (kernel.name, kernel.architecture, kernel.compiler) == ("conv2d<8>", "sm_90", "NVRTC 13.0")
    assert (kernel.registers, kernel.spill_bytes, kernel.shared_bytes) == (32, 4, 1024 + 512)
    assert (kernel.blocks, kernel.threads) == (8, 128)
    assert kernel.ptx.startswith(".visible .entry")


def test_launches_come_in_their_order_and_equal_code_is_read_once(data: RunData) -> None:
    first, second = data.code.kernels(cell("v02_shared", "block=8"))
    assert ((first.index, first.name), (second.index, second.name)) == ((0, "zero"), (1, "conv2d<8>"))
    assert data.code.kernels(cell("v02_shared", "block=8"))[1].code is second.code


def test_a_launch_without_code_has_its_name_alone(data: RunData) -> None:
    (kernel,) = data.code.kernels(cell("cudnn"))
    assert (kernel.name, kernel.code_id, len(kernel.code), kernel.registers) == ("cudnn::kernel<float>", "", 0, None)
    assert kernel.shared_bytes == 512
    assert data.code.kernels(cell("numpy")) == ()


def test_counters_are_those_of_one_launch(data: RunData) -> None:
    counted = data.code.counters(cell("v01_naive", "block=8"), 0)
    assert counted == COUNTS
    assert data.code.counters(cell("v01_naive", "block=8"), 1) == {}
    assert data.code.counters(cell("v01_naive", "block=16"), 0) == {}


def test_a_run_without_code_has_no_cells(tmp_path: Path) -> None:
    data = load(store.open_run(made_runs.write(tmp_path, "none", rounds=8, workloads=(WORKLOAD,))))
    assert not data.code and data.code.cells == ()
    assert not MachineCode() and MachineCode().cells == ()
    assert MachineCode().counters(cell("v01_naive", "block=8"), 0) == {}
