"""`compare_functions` on a GPU: with arrays of CuPy and PyTorch, and without arguments."""

from pathlib import Path

import pytest

import warpladder

pytestmark = pytest.mark.gpu


def test_functions_of_cupy_are_timed_on_the_device_and_verified(tmp_path: Path) -> None:
    cupy = pytest.importorskip("cupy")
    x = cupy.random.standard_normal((1024, 1024), dtype=cupy.float32)
    fused = cupy.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x + 1", "fused")
    run = warpladder.compare_functions(
        lambda x: 2 * x + 1, fused, lambda x: 2 * x, args=x, names=["two", "one", "wrong"], data_dir=tmp_path
    )
    table = run.table(scope="device", cache="cold").set_index("variant")
    assert list(table["status"]) == ["ok", "ok", "wrong_result"]
    assert run.notes == (
        "each sample had other arguments than yours: each real number was multiplied by a random factor from 0.5 to 1",
    )
    assert table.loc["one", "speedup"] > 1.1
    code = 'extern "C" __global__ void twice(const float* x, float* y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = 2 * x[i]; }'
    kernel, out = cupy.RawKernel(code, "twice"), cupy.empty_like(x)
    run = warpladder.compare_functions(
        lambda x, y: kernel((x.size // 256,), (256,), (x, y)),
        lambda x, y: 2 * x,
        args=(x, out),
        names=["raw", "cupy"],
        data_dir=tmp_path,
    )
    assert list(run.table(scope="device", cache="cold")["status"]) == ["ok", "ok"]


def test_functions_of_pytorch_run_where_their_arguments_are(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for device, scope in (("cuda", "device"), ("cpu", "operation")):
        x = torch.randn(512, 512, device=device)
        run = warpladder.compare_functions(
            lambda x: torch.softmax(x, 1),
            lambda x: (x - x.logsumexp(1, keepdim=True)).exp(),
            args=x,
            names=["one", "two"],
            data_dir=tmp_path,
        )
        assert list(run.table(scope=scope)["status"].unique()) == ["ok"] and run.notes == ()


def test_functions_without_arguments_are_timed_on_the_device(tmp_path: Path) -> None:
    cupy = pytest.importorskip("cupy")
    x = cupy.ones((4096, 4096), dtype=cupy.float32)
    out = cupy.empty_like(x)
    run = warpladder.compare_functions(lambda: cupy.add(x, x, out=out), lambda: x + x, names=["into", "new"], data_dir=tmp_path)
    table = run.table(scope="device", cache="cold")
    assert list(table["status"]) == ["ok", "ok"] and "outputs were compared once" in run.notes[0]
    assert table["median_ns"].between(20_000, 2_000_000).all()  # 134 MB
    assert bool((x == 1).all())
