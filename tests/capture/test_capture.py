"""Kernels that are taken from launches, with CuPy and Triton faked at their border, and the benchmarks that they become."""

import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

from warpladder.__main__ import command
from warpladder.collectors.capture import bench_file, child, cupy_kernels, triton_kernels
from warpladder.collectors.capture.tensors import OfTorch
from warpladder.collectors.capture.watch import Watch
from warpladder.workloads import registry
from warpladder.workloads.api import CudaVariant

CODE = 'extern "C" __global__ void axpy(const float* x, float* y, int n, float a) { y[threadIdx.x] = a * x[threadIdx.x]; }'


class Array:
    """An array of the faked CuPy, on the host."""

    __cuda_array_interface__: ClassVar[dict[str, object]] = {}

    def __init__(self, values: Any) -> None:
        self.host = np.asarray(values)
        self.data = SimpleNamespace(ptr=self.host.__array_interface__["data"][0])
        self.dtype, self.shape, self.nbytes = self.host.dtype, self.host.shape, self.host.nbytes

    def ravel(self, order: str) -> "Array":
        return Array(self.host.ravel(order))

    def get(self) -> np.ndarray:
        return self.host.copy()

    def set(self, values: np.ndarray) -> None:
        self.host[...] = values


def cupy_that_runs(kernel: Any) -> ModuleType:
    module = ModuleType("cupy")
    module.RawKernel = lambda code, name, options=(): lambda grid, block, args, shared_mem=0: kernel(*args)  # type: ignore[attr-defined]
    module.RawModule = lambda code, options=(): SimpleNamespace(  # type: ignore[attr-defined]
        get_function=lambda name: lambda grid, block, args, shared_mem=0: kernel(*args)
    )
    module.cuda = SimpleNamespace(runtime=SimpleNamespace(deviceSynchronize=lambda: None))  # type: ignore[attr-defined]
    return module


def scaled(x: Array, y: Array, n: np.generic, a: np.generic) -> None:
    y.host[...] = a * x.host


def added(x: Array, y: Array, n: np.generic, a: np.generic) -> None:
    y.host[...] += a * x.host


def taken(kernel: Any, launches: int = 1, **options: Any) -> tuple[Watch, Array]:
    watch = Watch(re.compile("axpy"), **options)
    module = cupy_that_runs(kernel)
    cupy_kernels.watch_cupy(watch, module)
    x, y = Array(np.arange(4, dtype=np.float32)), Array(np.ones(4, np.float32))
    for number in range(launches):
        module.RawKernel(CODE, "axpy")((2,), (4, 1), (x, y, np.int32(4), np.float32(number + 1)), shared_mem=8)
    return watch, y


def test_the_launch_that_is_wanted_is_kept_with_its_arguments_and_the_program_has_its_results() -> None:
    watch, y = taken(scaled, launches=3, number=2)
    (kernel,) = watch.kept
    assert (kernel.grid, kernel.block, kernel.shared, kernel.number) == ((2, 1, 1), (4, 1, 1), 8, 2)
    assert kernel.arguments == ("x", "y", np.int32(4), np.float32(2))
    x, changed = kernel.arrays
    assert (x.after, changed.is_read) == (None, False)
    assert changed.after is not None and changed.after.view(np.float32).tolist() == [0, 2, 4, 6]
    assert y.host.tolist() == [0, 3, 6, 9] and watch.counts["axpy"] == 3


def test_what_a_kernel_adds_to_is_read_and_is_added_to_once() -> None:
    watch, y = taken(added)
    assert watch.kept[0].arrays[1].is_read and y.host.tolist() == [1, 2, 3, 4]


def test_arguments_that_are_too_large_or_overlap_are_not_kept_and_the_launch_is_made() -> None:
    watch, y = taken(scaled, most_bytes=31)
    assert watch.refused == {"axpy": "its arguments have 32 bytes; --most-bytes allows 31"} and y.host.tolist() == [0, 1, 2, 3]
    both, module = np.zeros(6, np.float32), cupy_that_runs(scaled)
    watch = Watch(re.compile(""))
    cupy_kernels.watch_cupy(watch, module)
    module.RawModule(code=CODE).get_function("axpy")((1,), (4,), (Array(both[:4]), Array(both[2:]), np.int32(4), np.float32(1)))
    assert watch.refused == {"axpy": "its arguments x and y overlap in memory"}


@pytest.mark.parametrize(("kernel", "declares"), [(scaled, "bench.cuda("), (added, "writes_inputs=True")])
def test_the_benchmark_has_what_the_launch_had_and_its_outputs(tmp_path: Path, kernel: Any, declares: str) -> None:
    watch, _ = taken(kernel)
    (answer,) = child.written(watch, tmp_path, "prog.py")
    assert answer == {"kernel": "axpy", "launches": 1, "folder": "axpy", "why": ""}
    text = (tmp_path / "axpy/bench.py").read_text()
    assert declares in text and (tmp_path / "axpy/kernel.cu").read_text() == CODE
    (workload,) = (each for each, _ in registry.load_with_files([], [tmp_path / "axpy/bench.py"]) if each.name == "axpy")
    (case,) = workload.cases
    inputs = workload.make_inputs(case, np.random.default_rng(0))
    assert inputs["x"].tolist() == [0, 1, 2, 3] and ("y" in inputs) == (kernel is added)
    expected = workload.reference(case, inputs)
    if isinstance(variant := workload.variants[0], CudaVariant):
        assert variant.launches(case, {})[0].args == ("x", "y_new", np.int32(4), np.float32(1))
    assert [np.asarray(each).tolist() for each in expected.values()] == [[1, 2, 3, 4] if kernel is added else [0, 1, 2, 3]]


# -- Triton ----------------------------------------------------------------------------------------------------------------------

PTX = ".version 8.7\n.target sm_90a\n.visible .entry double(\n.param .u64 a,\n.param .u64 b,\n.param .u32 n,\n.param .u64 s\n)\n{ ret; }\n"


class Tensor:
    """A tensor of the faked PyTorch, on the host."""

    dtype = "torch.bfloat16"

    def __init__(self, bits: np.ndarray) -> None:
        self.bits = bits
        self.shape = bits.shape

    def data_ptr(self) -> int:
        return int(self.bits.__array_interface__["data"][0])


class Memory(OfTorch):
    """Memory of a faked tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.kind, self.shape, self.start = tensor, "bfloat16", tensor.shape, tensor.data_ptr()

    @property
    def nbytes(self) -> int:
        return self.tensor.bits.nbytes

    def read(self) -> np.ndarray:
        return self.tensor.bits.view(np.uint8).copy()

    def write(self, data: np.ndarray) -> None:
        self.tensor.bits.view(np.uint8)[...] = data


def double(a_ptr, out, n, BLOCK=4):  # type: ignore[no-untyped-def]  # noqa: N803
    """Stands for a kernel of Triton."""


class JITFunction:
    """A function of the faked Triton; its machine code doubles."""

    fn = staticmethod(double)

    def run(self, a: Tensor, b: Tensor, n: int, *, grid: Any, warmup: bool, **options: Any) -> Any:
        b.bits[...] = 2 * a.bits
        signature = {"a_ptr": "*bf16", "out": "*bf16", "n": "i32", "BLOCK": "constexpr"}
        metadata = SimpleNamespace(num_warps=2, shared=64, name="double", cluster_dims=(1, 1, 1))
        return SimpleNamespace(metadata=metadata, asm={"ptx": PTX}, src=SimpleNamespace(signature=signature))


def test_a_kernel_of_triton_becomes_its_ptx_and_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_kernels, "OfTorch", Memory)
    watch, jit = Watch(re.compile("")), SimpleNamespace(JITFunction=type("JITFunction", (JITFunction,), {}))
    autotuner = SimpleNamespace(Autotuner=type("Autotuner", (), {"_bench": lambda self, call: call()}))
    triton_kernels.watch_triton(watch, jit, autotuner, lambda: None)  # type: ignore[arg-type]
    a, b = Tensor(np.arange(8, dtype=np.uint16)), Tensor(np.zeros(8, np.uint16))

    def launch() -> None:
        jit.JITFunction().run(
            a, b, 8, grid=lambda values: (values["n"] // values["BLOCK"],), warmup=False, BLOCK=4, num_warps=2
        )

    autotuner.Autotuner()._bench(launch)
    assert not watch.counts
    b.bits[...] = 0
    launch()
    (kernel,) = watch.kept
    assert (kernel.grid, kernel.block, kernel.shared, kernel.symbol) == ((2, 1, 1), (64, 1, 1), 64, "double")
    assert kernel.arguments == ("a_ptr", "out_", np.int32(8), np.uint64(0))
    assert kernel.call == "double[(2, 1, 1)](a_ptr=a_ptr, out=out_, n=8, BLOCK=4, num_warps=2)"
    bench_file.write(kernel, tmp_path / "double", "prog.py")
    text = (tmp_path / "double/bench.py").read_text()
    compile(text, "bench.py", "exec")
    assert 'args=("a_ptr", "out__new", np.int32(8), np.uint64(0),)' in text and ".view(torch.bfloat16)" in text
    assert "@triton.jit\ndef double(" in (tmp_path / "double/kernel.py").read_text()


# -- the command -----------------------------------------------------------------------------------------------------------------


def test_a_program_without_such_kernels_leaves_no_folder(tmp_path: Path) -> None:
    program, out = tmp_path / "prog.py", tmp_path / "out"
    program.write_text("import sys\nprint(sys.argv[1:], __name__)\n")
    done = CliRunner().invoke(command(), ["capture", "--out", str(out), str(program), "--steps", "3"])
    assert done.exit_code == 2 and "no kernel" in done.stderr and not out.exists()
    out.mkdir()
    done = CliRunner().invoke(command(), ["capture", "--out", str(out), str(program)])
    assert done.exit_code == 2 and "nothing is overwritten" in done.stderr


#: A program with a faked CuPy beside it.
CUPY = """
from types import SimpleNamespace
import numpy as np

class Array:
    __cuda_array_interface__ = {}
    def __init__(self, values):
        self.host = np.asarray(values)
        self.data = SimpleNamespace(ptr=self.host.__array_interface__["data"][0])
        self.dtype, self.shape, self.nbytes = self.host.dtype, self.host.shape, self.host.nbytes
    def ravel(self, order): return Array(self.host.ravel(order))
    def get(self): return self.host.copy()
    def set(self, values): self.host[...] = values

def RawKernel(code, name, options=()):
    def launch(grid, block, args, shared_mem=0): args[1].host[...] = args[3] * args[0].host
    return launch

RawModule = None
cuda = SimpleNamespace(runtime=SimpleNamespace(deviceSynchronize=lambda: None))
"""
PROGRAM = f"""
import os, resource, signal, sys, time
import cupy, numpy as np

axpy = cupy.RawKernel('''{CODE}''', "axpy")
axpy((1,), (4,), (cupy.Array(np.arange(4, dtype=np.float32)), cupy.Array(np.ones(4, np.float32)), np.int32(4), np.float32(3)))
"""


@pytest.fixture
def with_cupy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cupy.py").write_text(CUPY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def captured(tmp_path: Path, end: str, *options: str) -> Any:
    """What `capture --out made/out` of the program does that ends as told."""
    (tmp_path / "prog.py").write_text(PROGRAM + end)
    return CliRunner().invoke(command(), ["capture", "--out", str(tmp_path / "made/out"), *options, str(tmp_path / "prog.py")])


@pytest.mark.parametrize(
    ("end", "exit_code", "told"),
    [
        ("", 0, ""),
        ("raise SystemExit(7)", 0, "prog.py ended with exit code 7"),
        ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", 0, "prog.py ended with signal 2"),
        ("os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)", 143, "prog.py ended with signal 2"),
    ],
)
@pytest.mark.usefixtures("with_cupy")
def test_kernels_are_kept_however_the_program_ends(tmp_path: Path, end: str, exit_code: int, told: str) -> None:
    done = captured(tmp_path, end)
    assert done.exit_code == exit_code and told in done.stderr
    assert f"axpy  1 launches  warpladder record {tmp_path}/made/out/axpy/bench.py" in done.stdout
    assert sorted(each.name for each in (tmp_path / "made/out").rglob("*")) == [
        "arguments.npz",
        "axpy",
        "bench.py",
        "kernel.cu",
    ]


@pytest.mark.parametrize(
    ("end", "options", "told"),
    [
        ("os._exit(0)", (), "prog.py ended with exit code 0 before its kernels were written; let it return, or call sys.exit"),
        ("os.kill(os.getpid(), signal.SIGKILL)", (), "prog.py ended with signal 9 before its kernels were written"),
        ("", ("--most-bytes", "1"), "prog.py: nothing was kept; each line has the reason"),
        ("", ("--kernel", "gemm"), "prog.py: no kernel of CuPy's"),
        ("", ("--kernel", "(("), "--kernel ((: no regular expression"),
        # A disk that is full, for files above 600 bytes.
        (
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))",
            (),
            "prog.py: nothing was kept; each line has the reason",
        ),
    ],
)
@pytest.mark.usefixtures("with_cupy")
def test_nothing_that_is_kept_ends_with_2_and_leaves_no_folder(
    tmp_path: Path, end: str, options: tuple[str, ...], told: str
) -> None:
    done = captured(tmp_path, end, *options)
    assert done.exit_code == 2 and told in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "made").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text("")
    done = CliRunner().invoke(command(), ["capture", "--out", "/dev/null/out", str(tmp_path / "prog.py")])
    assert (done.exit_code, done.stderr) == (
        2,
        "--out /dev/null/out: cannot be written (Not a directory); choose another folder\n",
    )
