"""The kernel that compares outputs finds the errors that the host finds."""

from typing import Any

import numpy as np
import pytest

from tests.collectors.cuda.fake_cuda import install
from tests.emulator.emulator import needs_compiler, run
from warpladder.collectors.core.agreement import TILE, compare
from warpladder.installation import ROOT
from warpladder.workloads.api import CudaVariant, Launch

KERNEL = CudaVariant("errors", "errors", "ceiling", source=ROOT / "collectors/cuda/kernels/errors.cu")
COUNT = 2 * TILE + 100
#: Type of the outputs -> type of the reference.
TYPES = {
    "float16": "float64",
    "float32": "float64",
    "float64": "float64",
    "complex64": "complex128",
    "int32": "int64",
    "bool": "bool",
}


class DeviceArray:
    """An array that is not NumPy's, of which `compare` sees the shape and hands pieces to the device."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape, self.size, self.dtype = values, values.shape, values.size, values.dtype

    def reshape(self, *shape: int) -> "DeviceArray":
        return DeviceArray(self.values.reshape(*shape))

    def __getitem__(self, piece: slice) -> np.ndarray:
        return self.values[piece]

    def get(self) -> np.ndarray:
        return self.values


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the kernel on the emulator, with fewer blocks than tiles."""
    errors = install(monkeypatch, [], "errors")

    def found(actual: Any, right: Any, exact: bool, lost_at: float, scale: float) -> Any:
        infinite, tiles = errors.first_infinite(actual.dtype), -(-actual.size // TILE)
        if actual.dtype == np.float16:
            actual = actual.astype(np.float32)
        outputs = {"error": np.zeros(tiles), "size": np.zeros(tiles), "largest": np.zeros(2), "counts": np.zeros(5, np.uint64)}
        numbers = map(np.float64, (infinite, scale, lost_at))
        arguments = ("actual", "right", np.uint64(actual.size), *numbers, *outputs)
        launch = Launch(errors.kernel_of(actual.dtype, right.dtype), (2, 1, 1), (64, 1, 1), arguments)
        run(KERNEL, [launch], {"actual": actual.view(), "right": right.view()}, outputs)
        different, alike, lost, not_finite, finite = outputs["counts"].tolist()
        counts = (different - alike if exact else 0, 0 if exact else lost, not_finite, finite)
        return outputs["error"], outputs["size"], tuple(outputs["largest"] / scale), counts

    return found


def _spoilt(right: np.ndarray, dtype: str) -> dict[str, np.ndarray]:
    """Outputs by their fault; empty for those that are right."""
    of_numbers = {"none": [], "one": [TILE + 7], "half of a tile": range(TILE // 2)}
    outputs = {fault: right.astype(dtype) for fault in of_numbers}
    for fault, places in of_numbers.items():
        for place in places:
            outputs[fault][place] = not outputs[fault][place] if dtype == "bool" else outputs[fault][place] + 3
    if dtype.startswith(("float", "complex")):
        for place, value in ((3, np.nan), (-1, np.inf), (1, 0.0)):
            outputs[f"{value} at {place}"] = right.astype(dtype)
            outputs[f"{value} at {place}"][place] = value
    return outputs


@needs_compiler
@pytest.mark.parametrize("dtype", TYPES)
def test_the_kernel_finds_what_the_host_finds(dtype: str, on_device: Any) -> None:
    rng = np.random.default_rng(1)
    drawn = rng.standard_normal(COUNT) * 5 + (1j * rng.standard_normal(COUNT) if dtype.startswith("complex") else 0)
    right = drawn.astype(TYPES[dtype])
    if dtype.startswith(("float", "complex")):
        right[[1, 2]] = np.nan, -np.inf  # which the outputs have too
    if dtype in ("float16", "float32"):
        right[4] = 1e39  # which the outputs cannot hold
    tolerance = 1e-3 if dtype == "float16" else 1e-6
    with np.errstate(over="ignore"):
        outputs = _spoilt(right, dtype)
    for fault, output in outputs.items():
        expected = compare({"y": output}, {"y": right}, tolerance)
        found = compare({"y": DeviceArray(output)}, {"y": DeviceArray(right)}, tolerance, on_device=on_device)
        assert (found.ok, found.detail) == (expected.ok, expected.detail), fault
        assert found.ok == (fault == "none"), fault
        assert found.rel_l2_error == pytest.approx(expected.rel_l2_error, nan_ok=True), fault
        assert found.max_rel_error == pytest.approx(expected.max_rel_error, nan_ok=True), fault
