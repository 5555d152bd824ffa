"""Functions of shared libraries are variants: arrays reach them as pointers, and what they return is their verdict."""

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workloads.functions.loading import build_extension
from tests.workloads.functions.recording import record
from warpladder.collectors.core.bench import classify, is_sticky
from warpladder.workloads.api import WorkloadError
from warpladder.workloads.declare.functions.extensions import CallFailed, CFunction, c_function
from warpladder.workloads.declare.functions.sources import source_file_of, source_of

CODE = """
#include <stdint.h>
int scaled(const float* x, float* out, int n, float by) { for (int i = 0; i < n; ++i) out[i] = by * x[i]; return n < 0 ? 7 : 0; }
void summed(const double* x, double* low, double* high, int64_t n, double above) {
  *low = *high = 0;
  for (int64_t i = 0; i < n; ++i) *(x[i] > above ? high : low) += x[i];
}
int stream_of(uintptr_t* out, void* stream, const char* null) { *out = (uintptr_t)stream; return null ? 1 : 0; }
int code(int which) { return which; }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("library")
    (made / "own.c").write_text(CODE)
    (made / "own.cpp").write_text("int scaled(const float* x, float* out, int n, float by) { return 0; }")
    for compiler, source, library in (("gcc", "own.c", "libown.so"), ("g++", "own.cpp", "libcpp.so")):
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", made / library, made / source], check=True)
    return made


def scaled(folder: Path, **given: Any) -> CFunction:
    return c_function("libown.so", "scaled", ("x", "out", "n", "by"), beside=folder, **given)


X = np.arange(6, dtype=np.float32)


def test_arrays_are_passed_as_pointers_and_numbers_by_their_types(folder: Path) -> None:
    out = np.zeros(6, np.float32)
    assert scaled(folder)(X, out=out, n=6, by=1.5) is None
    assert out.tolist() == [0.0, 1.5, 3.0, 4.5, 6.0, 7.5]
    scaled(folder)(X, out, np.int32(6), np.float32(2))
    assert out.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    scaled(folder)(n=3, by=-1.0, out=out, x=X)
    assert out.tolist() == [0.0, -1.0, -2.0, 6.0, 8.0, 10.0]


def test_a_call_with_prepared_arguments_reads_the_arrays_anew_each_time(folder: Path) -> None:
    x, out = X.copy(), np.zeros(6, np.float32)
    run = scaled(folder).with_arguments(x, out=out, n=6, by=2.0)
    run()
    assert out.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    x[:] = 1
    run()
    assert out.tolist() == [2.0] * 6
    fails = c_function("libown.so", "code", ("which",), beside=folder).with_arguments(3)
    with pytest.raises(CallFailed, match=r"code of libown\.so returned 3"):
        fails()
    with pytest.raises(WorkloadError, match="argument 'x' is missing"):
        scaled(folder).with_arguments(out=out, n=6, by=2.0)


def test_declared_types_several_outputs_and_no_return_value(folder: Path) -> None:
    args, types = ("x", "out0", "out1", "n", "above"), {"n": np.int64, "above": ctypes.c_double, "x": "float64"}
    summed = c_function("libown.so", "summed", args, types=types, returns="void", beside=folder)
    low, high = np.zeros(1), np.zeros(1)
    summed(np.array([1.0, 2.0, 30.0, 40.0]), out=(low, high), n=4, above=10)
    assert (low[0], high[0]) == (3.0, 70.0)
    with pytest.raises(WorkloadError, match="summed: takes 2 outputs as `out`, and got a ndarray"):
        summed(np.zeros(4), out=low, n=4, above=10)
    with pytest.raises(WorkloadError, match="summed: x holds float32, and is declared to hold float64"):
        summed(X, out=(low, high), n=4, above=10)


class Stream:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class OfCuda:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 5


@pytest.mark.parametrize(
    ("stream", "address"),
    [
        (None, 0),
        (9, 9),
        (Stream(ptr=2), 2),
        (Stream(cuda_stream=3), 3),
        (Stream(handle=ctypes.c_void_p(4)), 4),
        (Stream(handle=ctypes.c_void_p(None)), 0),
        (OfCuda(), 5),
    ],
)
def test_a_stream_of_each_library_is_passed_by_its_address(folder: Path, stream: Any, address: int) -> None:
    found = np.full(1, 77, np.uintp)
    c_function("libown.so", "stream_of", ("out", "stream", None), beside=folder)(out=found, stream=stream)
    assert found.tolist() == [address]


def test_a_code_other_than_0_is_a_launch_error_with_its_number(folder: Path) -> None:
    code = c_function("libown.so", "code", ("which",), beside=folder)
    code(0)
    with pytest.raises(CallFailed) as failed:
        code(7)
    said = "code of libown.so returned 7; if it returns nothing, say returns='void'"
    status, detail = classify(failed.value)
    assert (status, detail.rpartition(": ")[2], is_sticky(failed.value)) == ("launch_error", said, False)
    with pytest.raises(CallFailed) as failed:
        code(700)  # cudaErrorIllegalAddress
    assert is_sticky(failed.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"library": "libabsent.so"},
            "libabsent.so: no such file in FOLDER, and no library of the system; build it first, or mend the path",
        ),
        ({"library": "lib/own.so"}, "FOLDER/lib/own.so: no such file; build the library first, or mend the path"),
        ({"source": "own.cu"}, "FOLDER/own.cu: no such file; give the path of the source of scaled, or leave it out"),
        ({"returns": "float"}, "scaled: returns='float': choose one of int, void"),
        ({"args": ("x", "x")}, "scaled: args has x twice; name each once"),
        ({"args": ("x", "2n")}, "scaled: args has '2n'; name an array, an axis, a config's value, `out` or `stream`"),
        ({"args": ("x", "out1")}, "scaled: args names the outputs out1; name one `out`, or out0, out1 and so on"),
        ({"types": {"m": np.int64}}, "scaled: types names 'm', and args has x, out, n, by"),
        ({"types": {"n": "int"}}, ""),
        ({"types": {"n": "whole"}}, "scaled: types['n'] is 'whole'; give a type of NumPy or ctypes, such as np.int64"),
    ],
)
def test_a_wrong_declaration_is_one_line(folder: Path, given: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {
        "library": "libown.so",
        "symbol": "scaled",
        "args": ("x", "out", "n", "by"),
        "beside": folder,
        **given,
    }
    if not said:
        c_function(**arguments)
        return
    with pytest.raises(WorkloadError) as refused:
        c_function(**arguments)
    assert str(refused.value) == said.replace("FOLDER", str(folder))


class OnGpu:
    """An array as Numba's: on the GPU, by its interface."""

    dtype, shape, strides = np.dtype(np.float32), (6,), None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (4096, False), "shape": (6,), "typestr": "<f4", "version": 3}


@pytest.mark.parametrize(
    ("positional", "named", "said"),
    [
        ((X,), {"n": 6, "by": 1.0}, ""),
        ((), {"n": 6, "by": 1.0, "out": X}, "scaled: argument 'x' is missing; it takes x, out, n, by"),
        ((X, X), {"n": 6, "by": 1.0, "m": 3}, "scaled: has no argument 'm'; it has x, out, n, by"),
        ((X, X, X), {"n": 6, "by": 1.0}, "scaled: takes 2 arguments by position, and got 3"),
        ((X, X), {"n": "6", "by": 1.0}, "scaled: n is '6'; give an array, a number, or a ctypes object"),
        (([1.0], X), {"n": 6, "by": 1.0}, "scaled: x is a list; give an array, a number, or a ctypes object"),
        (
            (X, X),
            {"n": 1 << 40, "by": 1.0},
            "scaled: n is 1099511627776, which c_int cannot hold; declare its type: types={'n': np.int64}",
        ),
        ((X[::2], X), {"n": 3, "by": 1.0}, "scaled: x has gaps in memory; give a contiguous array"),
        ((OnGpu(), X), {"n": 6, "by": 1.0}, "scaled: x is on the GPU and out on the host; give both on one"),
    ],
)
def test_wrong_arguments_are_one_line_and_call_nothing(
    folder: Path, positional: tuple[Any, ...], named: dict[str, Any], said: str
) -> None:
    if not said:
        named["out"] = np.zeros(6, np.float32)
        scaled(folder)(*positional, **named)
        return
    with pytest.raises(WorkloadError) as refused:
        scaled(folder)(*positional, **named)
    assert str(refused.value) == said


def test_arrays_in_another_order_of_axes_have_no_gaps(folder: Path) -> None:
    x = np.zeros((2, 3, 4), np.float32).transpose(1, 2, 0)
    out = np.ones(24, np.float32)
    scaled(folder)(x, out, 24, 1.0)
    assert not out.any()


def test_a_function_that_is_not_there_is_told_with_the_name_that_cpp_gave_it(folder: Path) -> None:
    with pytest.raises(WorkloadError) as refused:
        c_function("libcpp.so", "scaled", ("x", "out", "n", "by"), beside=folder)(X, X, 6, 1.0)
    assert str(refused.value) == 'libcpp.so: has no function scaled; it has _Z6scaledPKfPfif: declare the function extern "C"'
    with pytest.raises(WorkloadError, match=r"libown\.so: has no function absent; `nm -D libown\.so` lists those that it has"):
        c_function("libown.so", "absent", (), beside=folder)()


def test_a_file_that_is_no_library_is_told(tmp_path: Path) -> None:
    (tmp_path / "libtext.so").write_text("no library")
    with pytest.raises(WorkloadError, match=r"libtext\.so: cannot be loaded \(.*\); build it for this machine"):
        c_function("libtext.so", "f", (), beside=tmp_path)()


def test_its_text_names_the_call_and_the_library_with_its_digest_and_shows_the_source(folder: Path, tmp_path: Path) -> None:
    function = scaled(folder, source="own.c")
    lines = source_of(function).splitlines()
    assert lines[0].startswith("# scaled(x, out, n, by) of libown.so, SHA-256 ")
    assert "int code(int which) { return which; }" in lines
    assert source_file_of(function) == folder / "own.c"
    assert str(folder) not in source_of(scaled(folder))
    (tmp_path / "libown.so").write_bytes((folder / "libown.so").read_bytes() + b"\0")
    assert source_of(scaled(tmp_path)) != source_of(scaled(folder))


BENCH = """
import numpy as np
import warpladder
from warpladder.workloads.declare.functions.extensions import c_function
import fast

bench = warpladder.Benchmark("scaling", n=[1000])

@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n, dtype=np.float32)

@bench.reference
def reference(x):
    return 2 * x

own = c_function({library!r}, "scaled", ("x", "out", "n", 2.0))
bench.variant(own, name="c", baseline=True)
bench.variant(fast.twice, name="extension")
bench.variant(c_function({library!r}, "scaled", ("x", "out", "n", 3.0)), name="wrong")
bench.variant(c_function({library!r}, "absent", ("x", "out", "n")), name="absent")
bench.variant(c_function({library!r}, "scaled", ("x", "out", "m", 2.0)), name="unknown")

@bench.variant
def wrapped(x, n, out):
    own(x, n=n, out=out)
"""


@pytest.mark.thorough
def test_a_benchmark_measures_a_c_function_and_a_c_extension_without_a_signature(folder: Path, tmp_path: Path) -> None:
    build_extension(tmp_path)
    run = record(tmp_path, BENCH.format(library=str(folder / "libown.so")))
    results = run.table("results").set_index("variant")
    assert results["status"].to_dict() == {
        "c": "ok", "extension": "ok", "wrong": "wrong_result", "absent": "launch_error", "unknown": "launch_error", "wrapped": "ok",
    }  # fmt: skip
    assert "libown.so: has no function absent; `nm -D" in results.loc["absent", "detail"]
    texts = run.table("variants").set_index("variant")["source_text"]
    assert texts["c"].startswith("# scaled(x, out, n, 2.0) of libown.so, SHA-256 ")
    assert "# fast.twice: compiled, in fast." in texts["extension"]
    assert "own = c_function(" in texts["wrapped"]
    assert "# scaled(x, out, n, 2.0) of libown.so, SHA-256 " in texts["wrapped"]


def test_a_function_takes_real_tensors_of_pytorch(folder: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, out = torch.arange(6, dtype=torch.float32), torch.zeros(6)
    scaled(folder, types={"x": "float32"})(x, out, n=6, by=2.0)
    assert out.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    channels_last = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    scaled(folder)(channels_last, torch.zeros(120), n=120, by=2.0)
    with pytest.raises(WorkloadError, match="scaled: x has gaps in memory"):
        scaled(folder)(x[::2], out, n=3, by=2.0)
    with pytest.raises(WorkloadError, match=r"scaled: x holds torch\.float64, and is declared to hold float32"):
        scaled(folder, types={"x": "float32"})(x.double(), out, n=3, by=2.0)
