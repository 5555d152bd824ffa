"""`warpladder extract`: which operations of a trace come first, what is written, what is refused, and wrong requests."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.doc_pages import ROOT
from warpladder.__main__ import command
from warpladder.collectors.kineto.parse import import_report
from warpladder.dashboard.core.operations.hot_operations import Choice, HotOperations, hot_operations
from warpladder.dashboard.core.operations.hot_operations import Operation as HotOperation
from warpladder.data import store
from warpladder.workloads.torch_operation import Chain, Operation

KINETO = ROOT / "tests" / "fixtures" / "kineto"
#: Operations of at least 1 % of the device time of the fixtures -> the beginning of the reason why they are refused, or nothing.
EXPECTED: dict[str, dict[str, str]] = {
    "resnet18_train_h2d.json.gz": {
        "aten::convolution_backward": "",
        "aten::conv2d": "",
        "aten::cudnn_batch_norm_backward": "",
        "aten::batch_norm": "",
        "aten::to": "a copy between host and device",
        "aten::threshold_backward": "",
        "aten::max_pool2d_with_indices_backward": "its work or its result depends on the values",
        "aten::add_, aten::threshold_backward": "",
        "aten::add_, aten::relu_": "",
        "aten::relu_": "",
        "aten::max_pool2d": "",
    },
    "graph_and_two_streams.json.gz": {
        "[CUDA graph]": "kernels of a CUDA graph",
        "aten::sum": "",
        "aten::mul": "",
    },
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command(), ["extract", *arguments])


def hot(path: Path, folder: Path, choice: Choice | None = None) -> HotOperations:
    opened = store.open_run(folder / import_report(path, folder, "", None, []))
    return hot_operations(opened, {}, choice or Choice())


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_every_operation_above_one_percent_is_extracted_or_refused_with_its_reason(name: str, tmp_path: Path) -> None:
    found = hot(KINETO / name, tmp_path)
    largest = {each.name: each.reason for each in found.operations if found.share(each) >= 0.01}
    assert largest.keys() == EXPECTED[name].keys()
    for operator, reason in EXPECTED[name].items():
        assert largest[operator].startswith(reason) and bool(largest[operator]) == bool(reason), operator


@pytest.mark.slow
def test_device_time_is_that_of_the_profiler_itself(tmp_path: Path) -> None:
    found = hot(KINETO / "resnet18_train_h2d.json.gz", tmp_path)
    sums = json.loads((KINETO / "resnet18_train_h2d.sums.json").read_text())
    total = {row["key"]: row for row in sums if row["device"].endswith("CPU")}
    for name in ("aten::convolution_backward", "aten::cudnn_batch_norm_backward", "aten::conv2d"):
        mine = [each for each in found.operations if each.name == name]
        assert sum(each.device_ns for each in mine) == pytest.approx(1000 * total[name]["device_us"], rel=1e-6)
        assert sum(each.calls for each in mine) == total[name]["count"]
    assert sum(each.device_ns for each in found.operations) == found.device_ns


# -- a made trace --------------------------------------------------------------------------------------------------------------------


class Made:
    """A trace of one thread: operators with their arguments, and kernels that they launch."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._correlation = 0

    def operator(self, name: str, start: int, end: int, *arguments: Sequence[Any]) -> None:
        """Each argument is dims, type, strides and concrete value; without any, no shapes are recorded."""
        keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
        args = {key: [each[place] for each in arguments] for place, key in enumerate(keys)} if arguments else {}
        self._add("cpu_op", name, start, end, args)

    def kernel(self, name: str, launched: int, start: int, duration: int) -> None:
        self._correlation += 1
        self._add("cuda_runtime", "cudaLaunchKernel", launched, launched + 1, {"correlation": self._correlation})
        args = {"correlation": self._correlation, "device": 0, "stream": 7, "grid": [4, 1, 1], "block": [64, 1, 1]}
        self._add("kernel", name, start, start + duration, args)

    def step(self, number: int, start: int, end: int) -> None:
        self.annotation(f"ProfilerStep#{number}", start, end)

    def annotation(self, text: str, start: int, end: int) -> None:
        self._add("user_annotation", text, start, end, {})

    def _add(self, category: str, name: str, start: int, end: int, args: dict[str, Any]) -> None:
        event = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": end - start}
        self.events.append({**event, "args": args})

    def write(self, folder: Path) -> Path:
        path = folder / "made.json.gz"
        gpu = [{"id": 0, "name": "GPU of the test", "computeMajor": 9, "computeMinor": 0}]
        path.write_bytes(gzip.compress(json.dumps({"deviceProperties": gpu, "traceEvents": self.events}).encode()))
        return path


def tensor(*dims: int, of: str = "float", strides: Sequence[int] | None = None) -> tuple[Any, ...]:
    dense = [1] * len(dims)
    for place in reversed(range(len(dims) - 1)):
        dense[place] = dense[place + 1] * dims[place + 1]
    return list(dims), of, list(strides or dense), ""


def scalar(value: str) -> tuple[Any, ...]:
    return [], "Scalar", [], value


NONE = ([], "", [], "")


def only(found: HotOperations) -> HotOperation:
    (operation,) = found.operations
    return operation


def test_an_operator_stands_for_the_one_within_it_that_launches(tmp_path: Path) -> None:
    made = Made()
    made.operator("aten::linear", 0, 100, tensor(8, 4), tensor(16, 4), tensor(16))
    made.operator("aten::t", 5, 10, tensor(16, 4))
    made.operator("aten::addmm", 20, 90, tensor(16), tensor(8, 4), tensor(4, 16, strides=(1, 4)), scalar("1"), scalar("1"))
    made.kernel("gemm", 30, 200, 50)
    operation = only(hot(made.write(tmp_path), tmp_path))
    assert (operation.name, operation.workload, operation.calls, operation.device_ns) == (
        "aten::linear",
        "aten_linear",
        1,
        50_000,
    )
    assert operation.forms[0].name == "8x4 16x4 16"
    # The bias is added in the product: 2 * 8 * 16 * 4 operations; read 32 + 64 + 16 numbers, write 128.
    assert operation.forms[0].work == (4 * 112, 4 * 128, 1024)
    chosen = hot(made.write(tmp_path), tmp_path, Choice(operator="aten::addmm"))
    assert only(chosen).forms[0].name == "16 8x4 4x16"


def test_an_operator_of_other_types_does_not_stand_for_the_one_within_it(tmp_path: Path) -> None:
    made = Made()
    made.operator("aten::linear", 0, 100, tensor(8, 4, of="c10::BFloat16"), tensor(16, 4), NONE)
    made.operator("aten::mm", 20, 90, tensor(8, 4, of="c10::BFloat16"), tensor(4, 16, of="c10::BFloat16", strides=(1, 4)))
    made.kernel("gemm", 30, 200, 50)
    operation = only(hot(made.write(tmp_path), tmp_path))
    assert (operation.name, operation.workload) == ("aten::mm", "aten_mm_bf16")


def test_an_operator_with_several_parts_is_its_parts(tmp_path: Path) -> None:
    made = Made()
    made.operator("aten::matmul", 0, 100, tensor(2, 8, 4), tensor(2, 4, 8))
    made.operator("aten::clone", 5, 30, tensor(2, 8, 4), NONE)
    made.kernel("copy", 10, 200, 5)
    made.operator("aten::bmm", 40, 90, tensor(2, 8, 4), tensor(2, 4, 8))
    made.kernel("gemm", 50, 300, 50)
    assert [each.name for each in hot(made.write(tmp_path), tmp_path).operations] == ["aten::bmm", "aten::clone"]
    whole = only(hot(made.write(tmp_path), tmp_path, Choice(operator="aten::matmul")))
    assert (whole.device_ns, len(whole.forms[0].kernels)) == (55_000, 2)


@pytest.mark.parametrize(
    ("name", "arguments", "least"),
    [
        # A row of 2 x 3 of a tensor of rows of 10: 6 numbers are read and 6 written, 13 are stored.
        ("aten::relu", (tensor(2, 3, strides=(10, 1)),), 4 * (6 + 6)),
        ("aten::_softmax", (tensor(2, 3, strides=(10, 1)), scalar("1"), scalar("False")), 4 * (6 + 6)),
        # Of 4 numbers that are stored, each twice, and of 8 in rows of 10; 8 are written.
        ("aten::add", (tensor(2, 4, strides=(0, 1)), tensor(2, 4, strides=(10, 1)), scalar("1")), 4 * (4 + 8 + 8)),
        # The first tensor is only written.
        ("aten::copy_", (tensor(2, 4), tensor(2, 4), scalar("False")), 4 * (8 + 8)),
        # The tensors tell the bytes: side by side in another order, and each twice.
        ("aten::relu", (tensor(2, 3, strides=(1, 2)),), 0),
        ("aten::relu", (tensor(2, 3, strides=(0, 1)),), 0),
    ],
)
def test_bytes_are_written_where_a_call_reads_less_than_it_is_given(
    name: str, arguments: tuple[Any, ...], least: int, tmp_path: Path
) -> None:
    made = Made()
    made.operator(name, 0, 100, *arguments)
    made.kernel("kernel", 10, 200, 50)
    (operation,) = written(made, tmp_path)
    (call,) = operation.calls
    assert operation.bytes(call) == least


def written(made: Made, folder: Path, *options: str) -> list[Any]:
    """The operations in the file that is written for a made trace, which can be loaded without PyTorch."""
    out = folder / "bench.py"
    done = run(str(made.write(folder)), "--data-dir", str(folder), *options, "--out", str(out))
    assert done.exit_code == 0, done.output
    names: dict[str, Any] = {}
    exec(compile(out.read_text(), str(out), "exec"), names)
    return [each for each in names.values() if isinstance(each, Operation | Chain)]


@pytest.mark.parametrize(
    ("times", "quick"),
    [([800, 100, 100], 1), ([799, 101, 100], 2), ([100, 100, 100, 100, 100], 4), ([50], 1), ([60, 30], 2)],
)
def test_the_hottest_forms_are_measured_by_default_and_all_with_the_set_full(
    times: list[int], quick: int, tmp_path: Path
) -> None:
    made = Made()
    for place, duration in enumerate(times):
        made.operator("aten::relu", 100 * place, 100 * place + 50, tensor(4, 4 + place))
        made.kernel("relu", 100 * place + 10, 10_000 * (1 + place), duration)
    out = tmp_path / "bench.py"
    done = run(str(made.write(tmp_path)), "--data-dir", str(tmp_path), "--out", str(out))
    left_out = f" ({quick} of {len(times)} forms, with most of the time; all with --set full)" if quick < len(times) else ""
    assert done.stdout.endswith(f"next: warpladder record {out}{left_out}\n")
    assert ("`record --set full` measures all" in out.read_text()) == bool(left_out)
    names: dict[str, Any] = {}
    exec(compile(out.read_text(), str(out), "exec"), names)
    hottest = [f"call=4x{4 + place}" for place in sorted(range(len(times)), key=lambda place: -times[place])]
    cases = names["aten_relu_bench"]._axes.cases
    assert [case.name for case in cases] == hottest and all("full" in case.sets for case in cases)
    assert [case.name for case in cases if "quick" in case.sets] == hottest[:quick]


def test_bytes_of_a_chain_are_without_the_tensors_between(tmp_path: Path) -> None:
    made = Made()
    made.operator("aten::relu", 0, 50, tensor(8, 6))
    made.kernel("relu", 10, 200, 10)
    made.operator("aten::add", 100, 150, tensor(8, 6), tensor(8, 6, strides=(12, 2)), scalar("1"))
    made.kernel("add", 110, 300, 20)
    (chain,) = written(made, tmp_path, "--together")
    assert chain.bytes(*chain.calls) == 4 * (48 + 48 + 48)


def test_calls_are_counted_a_step_and_forms_told_apart(tmp_path: Path) -> None:
    made = Made()
    for number in range(3):
        start = 1000 * number
        made.step(number, start, start + 900)
        for place in range(2):
            made.operator("aten::relu", start + 100 * place, start + 100 * place + 50, tensor(4, 4))
            made.kernel("relu", start + 100 * place + 10, start + 300 + 20 * place, 10)
        made.operator("aten::relu", start + 400, start + 450, tensor(4, 4, strides=(1, 4)))
        made.kernel("relu", start + 410, start + 500, 20)
    made.operator("aten::relu", 5000, 5050, tensor(4, 4))  # outside of the steps
    made.kernel("relu", 5010, 5100, 10)
    found = hot(made.write(tmp_path), tmp_path, Choice(apart=True))
    assert (found.steps, found.device_ns) == (3, 120_000)
    first, second = only(found).forms
    assert [(first.name, first.calls), (second.name, second.calls)] == [("4x4", 6), ("4x4 #2", 3)]


#: Operators with their arguments, and why each cannot be called again.
REFUSED: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("aten::relu", (), "no shapes: profile with record_shapes=True"),
    ("aten::embedding", (tensor(9, 4), tensor(3, of="long int"), scalar("-1")), "depends on the values"),
    ("aten::some_gather", (tensor(9, 4), tensor(3, of="long int")), "a tensor of int64"),
    ("aten::native_dropout", (tensor(9, 4), scalar("0.5"), scalar("True")), "its output is random"),
    ("aten::add", (tensor(4), tensor(4), scalar("1"), tensor(4)), "out="),
    ("aten::cat", (([], "TensorList", [], ""), scalar("0")), "the shapes of its lists of tensors"),
    ("aten::gelu", (tensor(4), NONE), "its argument approximate, which is a text, and the names of its kernels do not"),
    ("aten::mm", (tensor(4, 4), tensor(4, 4, of="c10::BFloat16")), "several types, which autocast converts"),
    ("aten::einsum", (NONE, tensor(4), NONE), "its argument equation, which is a text"),
    (
        "aten::scaled_dot_product_attention",
        (*[tensor(1, 2, 4, 4)] * 3, NONE, scalar("0.1"), scalar("False"), NONE, scalar("False")),
        "its output is random",
    ),
    ("aten::sum", (tensor(4), ([], "ScalarList", [], ""), scalar("True"), NONE), "a list of numbers"),
    ("mine::fused", (tensor(4),), "a custom operator of mine"),
    ("c10d::allreduce_", (tensor(4),), "a collective: import the ranks with --job"),
    ("triton_poi_fused_add_0", (tensor(4),), "a kernel that torch.compile made"),
    ("MyFunction", (tensor(4),), "no operator of PyTorch"),
)


@pytest.mark.slow
def test_what_cannot_be_called_again_has_the_reason(tmp_path: Path) -> None:
    made = Made()
    for place, (name, arguments, _) in enumerate(REFUSED):
        made.operator(name, 300 * place, 300 * place + 100, *arguments)
        made.kernel("kernel", 300 * place + 30, 300 * place + 200, 50)
    found = {operation.name: operation for operation in hot(made.write(tmp_path), tmp_path).operations}
    assert found.keys() == {name for name, _, _ in REFUSED}
    for name, _, reason in REFUSED:
        assert reason in found[name].reason, name
        assert (found[name].workload, found[name].device_ns) == ("", 50_000)
    refused = run(str(made.write(tmp_path)), "--data-dir", str(tmp_path), "--out", str(tmp_path / "bench.py"))
    assert refused.exit_code == 2
    assert "none of its operations can be called again" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_number_of_python_is_replaced_and_the_file_says_so(tmp_path: Path) -> None:
    made = Made()
    made.operator("aten::mul", 0, 100, tensor(4, 4), tensor(of="double"))
    made.kernel("mul", 30, 200, 50)
    out = tmp_path / "bench.py"
    assert run(str(made.write(tmp_path)), "--data-dir", str(tmp_path), "--out", str(out)).exit_code == 0
    text = out.read_text()
    assert "a number of Python whose value the trace lacks" in text
    assert 'tensor([4, 4], "float32", [4, 1]),\n            1.5,\n' in text
    assert "def aten_mul_as_called(x, call):" in text


@pytest.mark.parametrize(("number", "approximate"), [(1, "tanh"), (2, "none")])
def test_a_text_that_the_kernel_tells_is_taken_from_it(number: int, approximate: str, tmp_path: Path) -> None:
    of = f"GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{{lambda()#{number}}}::operator()() const"
    made = Made()
    made.operator("aten::gelu", 0, 100, tensor(4, 4), NONE)
    made.kernel(f"void at::native::vectorized_elementwise_kernel<4, at::native::{of}>(int)", 30, 200, 50)
    out = tmp_path / "bench.py"
    assert run(str(made.write(tmp_path)), "--data-dir", str(tmp_path), "--out", str(out)).exit_code == 0
    assert f"'{approximate}'," in out.read_text()
    made.operator("aten::mul", 110, 150, tensor(4, 4), tensor(4, 4))
    made.kernel("mul", 120, 300, 50)
    chained = only(hot(made.write(tmp_path), tmp_path, Choice(together=True)))
    assert chained.forms[0].arguments[0].arguments[1] == approximate


def test_names_of_a_trace_cannot_break_the_file(tmp_path: Path) -> None:
    made = Made()
    made.operator("aten::relu", 0, 100, tensor(4, 4))
    made.kernel('"""\nimport os\n\\', 30, 200, 50)
    made.operator('"""\nevil\n"""', 200, 300)
    made.kernel("other", 210, 400, 50)
    out = tmp_path / "bench.py"
    assert run(str(made.write(tmp_path)), "--data-dir", str(tmp_path), "--out", str(out)).exit_code == 0
    compile(out.read_text(), str(out), "exec")
    assert "\nimport os" not in out.read_text()
    assert "\nevil" not in out.read_text()


def chain(made: Made, start: int) -> None:
    """A product, and two point-wise operators on its output; the sum has another input of the same shape."""
    made.annotation("block", start, start + 300)
    made.operator("aten::mm", start, start + 50, tensor(8, 4), tensor(4, 6))
    made.kernel("gemm", start + 10, start + 500, 40)
    made.operator("aten::relu", start + 100, start + 150, tensor(8, 6))
    made.kernel("relu", start + 110, start + 600, 10)
    made.operator("aten::add", start + 200, start + 250, tensor(8, 6), tensor(8, 6), scalar("1"))
    made.kernel("add", start + 210, start + 700, 20)


def test_operators_that_follow_one_another_are_a_chain(tmp_path: Path) -> None:
    made = Made()
    chain(made, 0)
    chain(made, 1000)
    pointwise = only(hot(made.write(tmp_path), tmp_path, Choice(together=True)))
    assert (pointwise.name, pointwise.workload) == ("aten::relu, aten::add", "aten_relu_add")
    (form,) = pointwise.forms
    # Two times; the relu reads 48 numbers, and the sum 48 others; 48 are written.
    assert (form.calls, form.device_ns, form.work) == (2, 60_000, (2 * 4 * 48, 4 * 48, 0))
    assert [part.takes for part in form.arguments] == [None, 0]
    block = only(hot(made.write(tmp_path), tmp_path, Choice(within="block", together=True)))
    assert (block.workload, block.calls, block.device_ns) == ("aten_mm_relu_add", 2, 140_000)
    assert block.forms[0].work == (4 * (32 + 24 + 48), 4 * 48, 2 * 8 * 4 * 6)


def test_the_plain_call_has_chains_and_what_is_in_none_and_they_add_up(tmp_path: Path) -> None:
    made = Made()
    made.step(0, 0, 900)
    chain(made, 0)
    made.operator("aten::relu", 300, 350, tensor(8, 6))  # on its own in the second step
    made.kernel("relu", 310, 800, 5)
    made.step(1, 900, 2000)
    made.operator("aten::relu", 1000, 1050, tensor(8, 6))
    made.kernel("relu", 1010, 1100, 10)
    found = hot(made.write(tmp_path), tmp_path)
    # The relu after the sum ends the chain; the one of the next step is no part of it.
    assert {each.name: each.device_ns // 1000 for each in found.operations} == {
        "aten::mm": 40,
        "aten::relu, aten::add, aten::relu": 35,
        "aten::relu": 10,
    }
    assert sum(each.device_ns for each in found.operations) == found.device_ns
    apart = hot(made.write(tmp_path), tmp_path, Choice(apart=True))
    assert {each.name: each.device_ns // 1000 for each in apart.operations} == {
        "aten::mm": 40,
        "aten::relu": 25,
        "aten::add": 20,
    }
    # A benchmark has the same name whatever else is chosen.
    assert {each.name: each.workload for each in found.operations}["aten::relu"] == "aten_relu"


def test_a_chain_is_written_with_what_is_not_known(tmp_path: Path) -> None:
    made = Made()
    chain(made, 0)
    out = tmp_path / "bench.py"
    done = run(str(made.write(tmp_path)), "--data-dir", str(tmp_path), "--range", "block", "--together", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "The trace does not tell which tensor is which" in out.read_text()
    names: dict[str, Any] = {}
    exec(compile(out.read_text(), str(out), "exec"), names)
    (case,) = names["aten_mm_relu_add"].calls
    assert [(each.shape, each.dtype) for each in names["aten_mm_relu_add"].tensors(case)] == [
        ((8, 4), "float32"),
        ((4, 6), "float32"),
        ((8, 6), "float32"),
    ]
    assert names["aten_mm_relu_add"].flops(case) == 384


def test_ranges_of_emit_nvtx_are_ranked_and_refused_for_what_they_lack(tmp_path: Path) -> None:
    made = Made()
    for text, start, end in (
        ("aten::addmm, op_id = 7, seq = 5, sizes = [[16], [8, 4], [4, 16], [], []], input_op_ids = [(1,0)]", 0, 100),
        ("aten::t", 200, 250),
        ("aten::relu, seq = 6, sizes = [[8, 16]]", 300, 350),
        ("step one", 0, 400),
    ):
        made.annotation(text, start, end)
    made.kernel("gemm", 50, 500, 40)
    made.kernel("relu", 310, 600, 5)
    found = hot(made.write(tmp_path), tmp_path)
    assert {each.name: each.device_ns for each in found.operations} == {"aten::addmm": 40_000, "aten::relu": 5_000}
    assert all("emit_nvtx have no types, strides and numbers" in each.reason for each in found.operations)


# -- the command ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_file_lists_every_operation_and_imports_without_pytorch(tmp_path: Path) -> None:
    out = tmp_path / "bench_job.py"
    done = run(str(KINETO / "resnet18_train_h2d.json.gz"), "--data-dir", str(tmp_path), "--out", str(out), "--top", "3")
    assert done.exit_code == 0, done.output
    assert f"wrote {out}; next: warpladder record {out}" in done.stdout
    names: dict[str, Any] = {}
    exec(compile(out.read_text(), str(out), "exec"), names)
    benches = [each for name, each in names.items() if name.endswith("_bench")]
    assert len(benches) == 3
    assert all(bench.variants == ("as_called", "compiled") for bench in benches)
    operation = names["aten_convolution_backward"]
    first = next(iter(operation.calls.values()))
    assert (first.calls, first.flops, first.tensors[0].shape) == (4, 29_595_009_024, (64, 64, 56, 56))
    assert first.kernels[0][1] == (120, 1, 1)
    assert operation.allow_tf32 is True
    again = run(str(KINETO / "resnet18_train_h2d.json.gz"), "--data-dir", str(tmp_path), "--out", str(out))
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)


@pytest.mark.slow
def test_a_trace_is_imported_once_until_its_bytes_change(tmp_path: Path) -> None:
    trace, data = tmp_path / "step.json.gz", tmp_path / "data"

    def outcome() -> tuple[bool, int]:
        done = run(str(trace), "--data-dir", str(data))
        assert done.exit_code == 0, done.output
        return done.stdout.startswith("imported as "), len(list(data.iterdir()))

    trace.write_bytes((KINETO / "resnet18_train_h2d.json.gz").read_bytes())
    assert [outcome(), outcome()] == [(True, 1), (False, 1)]
    trace.write_bytes(gzip.compress(gzip.decompress(trace.read_bytes()), compresslevel=1))
    assert outcome() == (True, 2)


@pytest.mark.slow
def test_options_choose_operations(tmp_path: Path) -> None:
    trace = str(KINETO / "resnet18_train_h2d.json.gz")
    imported = run(trace, "--data-dir", str(tmp_path)).stdout.splitlines()[0].removeprefix("imported as ")

    def names(*options: str) -> set[str]:
        done = run(imported, "--data-dir", str(tmp_path), *options)
        assert done.exit_code == 0, done.output
        return {line.split()[0] for line in done.stdout.splitlines() if line.startswith("aten::")}

    assert names("--kernel", "dgrad") == {"aten::convolution_backward"}
    assert names("--op", "aten::cudnn_convolution") == {"aten::cudnn_convolution"}
    assert "aten::conv2d" not in names("--range", "Optimizer.step")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("{trace}", "--kernel", "("), "--kernel (: no regular expression"),
        (("{trace}", "--out", "bench.txt"), "--out bench.txt: no Python file"),
        (("{trace}", "--op", "aten::nothing"), "no operation with device work for --op aten::nothing"),
        (("{trace}", "--together"), "no operation with device work for --together"),
        (("{trace}", "--rank", "0"), "--rank names a rank of an imported job"),
        (("{trace}", "--check", "nowhere", "--out", "a.py"), "leave one out"),
        (("{text}",), "no trace of PyTorch's profiler"),
        (("{broken}",), "broken.json"),
    ],
)
def test_a_wrong_request_is_one_line(options: Sequence[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("text")
    (tmp_path / "broken.json").write_text('{"traceEvents": [{"ph": "X"')
    places = {
        "trace": KINETO / "graph_and_two_streams.json.gz",
        "text": tmp_path / "note.txt",
        "broken": tmp_path / "broken.json",
    }
    done = run(*(each.format(**places) for each in options), "--data-dir", str(tmp_path / "runs"))
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("options", [("nowhere",), (str(KINETO / "graph_and_two_streams.json.gz"), "--check", "nowhere")])
def test_an_unknown_run_is_named_with_those_there_are(options: Sequence[str], tmp_path: Path) -> None:
    done = run(*options, "--data-dir", str(tmp_path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("nowhere: no such run; known runs:")
