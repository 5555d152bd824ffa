"""`warpladder extract` and `forecast` with `--eager`: the operators of CUDA graphs come from a profile without them, where that is proven."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.commands.test_extract import KINETO, Made, tensor
from tests.commands.test_forecast import recording
from tests.doc_pages import ROOT
from warpladder.__main__ import command
from warpladder.collectors.kineto.parse import import_report
from warpladder.collectors.nsight_systems.parse import import_report as import_nsys
from warpladder.dashboard.core.operations.graphs import same_function
from warpladder.dashboard.core.operations.hot_operations import Choice, HotOperations, hot_operations
from warpladder.data import store

REAL = KINETO / "cuda_graph"
NSYS = ROOT / "tests" / "fixtures" / "nsight-systems-2025.3"


class Program(Made):
    """A program whose kernels are launched by operators, or by graphs."""

    def call(self, operator: str, kernels: tuple[str, ...], *shape: int, start: int = 0, stream: int = 7) -> None:
        """A call of 4 us in which kernels are launched, of 10 us each, which run from `start`."""
        self.operator(operator, start, start + 4, tensor(*shape))
        for number, name in enumerate(kernels):
            self.kernel(name, start + 1 + number, start + 10 + 10 * number, 10)
            self.events[-1]["args"]["stream"] = stream

    def graph(self, launched: int, *kernels: str | tuple[str, int], start: int) -> None:
        """A launch of a graph with kernels of 10 us that follow one another, each on stream 3 or on the one that is given."""
        for number, each in enumerate(kernels):
            name, stream = (each, 3) if isinstance(each, str) else each
            self.kernel(name, launched, start + 10 * number, 10)
            call, kernel = self.events[-2:]
            call |= {"name": "cudaGraphLaunch"}
            kernel["args"] |= {"stream": stream, "correlation": 1_000_000 + launched}
            call["args"] |= {"correlation": 1_000_000 + launched}
            if number:
                self.events.remove(call)


def opened(path: Path, folder: Path) -> store.Run:
    read = import_nsys if path.suffix == ".sqlite" else import_report
    return store.open_run(folder / read(path, folder, "", None, []))


def hot(graph: Path, folder: Path, *eager: Path, choice: Choice | None = None) -> HotOperations:
    run = opened(graph, folder)
    without = [opened(path, folder) for path in eager]
    return hot_operations(run, {}, choice or Choice(), without)


def forms(found: HotOperations) -> dict[tuple[str, str], tuple[float, tuple[Any, ...]]]:
    """Benchmark and case -> calls a step, and the kernels of a call."""
    return {
        (each.workload or each.name, form.name): (form.calls / found.steps, form.kernels)
        for each in found.operations
        for form in each.forms
    }


def write(made: Made, folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return made.write(folder / name)


def changed(path: Path, folder: Path, **changes: Any) -> Path:
    """The real graph with other arguments of the fifth piece of device work of each launch, a kernel."""
    trace = json.loads(gzip.decompress((REAL / "graph.json.gz").read_bytes()))
    device = [each for each in trace["traceEvents"] if each["cat"] in ("kernel", "gpu_memset")]
    for correlation in {each["args"]["correlation"] for each in device}:
        launch = sorted((each for each in device if each["args"]["correlation"] == correlation), key=lambda each: each["ts"])
        launch[3]["args"] |= changes
    changed = folder / path
    changed.write_bytes(gzip.compress(json.dumps(trace).encode()))
    return changed


# -- real profiles ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_real_graph_takes_the_operators_and_forms_of_the_program_without_it(tmp_path: Path) -> None:
    graph = hot(REAL / "graph.json.gz", tmp_path, REAL / "eager.json.gz")
    eager = hot(REAL / "eager.json.gz", tmp_path)
    assert (graph.steps, eager.steps) == (2, 1)
    assert forms(graph) == forms(eager)
    assert {each.name for each in graph.operations if not each.reason} >= {"aten::linear", "aten::gelu", "aten::layer_norm"}
    trace = json.loads(gzip.decompress((REAL / "graph.json.gz").read_bytes()))
    times = {
        name: sum(round(1000 * each["dur"]) for each in trace["traceEvents"] if name in each["name"])
        for name in ("layer_norm_kernel", "GeluCUDAKernel")
    }
    assert {each.name: each.device_ns for each in graph.operations if each.name in ("aten::layer_norm", "aten::gelu")} == {
        "aten::layer_norm": times["layer_norm_kernel"],
        "aten::gelu": times["GeluCUDAKernel"],
    }
    assert sum(each.device_ns for each in graph.operations) == graph.device_ns


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("changes"), [{"grid": [7, 1, 1]}, {"block": [7, 1, 1]}])
def test_a_real_graph_with_another_kernel_is_refused_with_the_first_that_differs(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    found = hot(changed(Path("other.json.gz"), tmp_path, **changes), tmp_path, REAL / "eager.json.gz")
    (operation,) = found.operations
    assert (operation.name, operation.device_ns) == ("[CUDA graph]", found.device_ns)
    assert "3 of 184 are as in the profile without it; then comes " in operation.reason
    assert "(7, 1, 1)" in operation.reason.split("and there")[0] and "(7, 1, 1)" not in operation.reason.split("and there")[1]


@pytest.mark.thorough
def test_of_two_profiles_the_one_that_matches_is_taken(tmp_path: Path) -> None:
    other = write(Program(), tmp_path, "other")
    made = Program()
    made.call("aten::relu", ("relu",), 4, 4)
    other = write(made, tmp_path, "relu")
    both = hot(REAL / "graph.json.gz", tmp_path, other, REAL / "eager.json.gz")
    assert forms(both) == forms(hot(REAL / "eager.json.gz", tmp_path))


def test_nodes_in_a_report_of_nsight_systems_take_operators_too(tmp_path: Path) -> None:
    made = Program()
    for number, (operator, kernel) in enumerate((("aten::mul", "scale"), ("aten::add", "shift"), ("aten::mul", "scale"))):
        name = kernel if kernel == "scale" else "void shift<float>(float*, float*, int)"
        made.call(operator, (name,), 256, 256, start=100 * number)
        made.events[-1]["args"] |= {"grid": [256, 1, 1], "block": [256, 1, 1]}
    found = hot(
        NSYS / "graph_traced_by_node" / "report.sqlite", tmp_path, write(made, tmp_path, "eager"), choice=Choice(apart=True)
    )
    assert {each.name: each.calls for each in found.operations if not each.reason} == {"aten::mul": 4, "aten::add": 2}


def test_graphs_in_a_report_that_lacks_their_nodes_are_refused_with_the_option(tmp_path: Path) -> None:
    found = hot(NSYS / "graph_traced_whole" / "report.sqlite", tmp_path, REAL / "eager.json.gz")
    (reason,) = (each.reason for each in found.operations if each.name == "[CUDA graph]")
    assert "nsys profile --cuda-graph-trace=node" in reason


@pytest.mark.parametrize(
    ("report", "trace"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<(int)4, at::native::<unnamed>::clamp(at::TensorIteratorBase &, T1)::"
            "[lambda() (instance 1)]::operator ()() const::[lambda(float) (instance 7)], std::array<char *, (unsigned long)2>>(int, T2)",
            "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::clamp(at::TensorIteratorBase&, "
            "float)::{lambda()#1}::operator()() const::{lambda(float)#7}, std::array<char*, 2ul> >(int, at::native::X)",
        ),
        ("void f<(bool)0, (int)-2, void g<float>(T1, T1)>(T1::Params)", "void f<false, -2, g<float>(float, float)>(P::Params)"),
        ("nvjet_tst_128x128_64x6_h_bz_TNT", "nvjet_tst_128x128_64x6_h_bz_TNT"),
    ],
)
def test_names_are_equal_however_a_tool_spells_them(report: str, trace: str) -> None:
    assert same_function(report) == same_function(trace)


def test_names_of_other_functions_differ() -> None:
    names = ["f<4>(int)", "f<8>(int)", "f<4, true>(int)", "g<4>(int)", "f<{lambda(int)#1}>(int)", "f<{lambda(int)#2}>(int)"]
    assert len(set(map(same_function, names))) == len(names)


# -- made profiles ---------------------------------------------------------------------------------------------------------------------


def eager_step(*calls: tuple[str, tuple[str, ...], int]) -> Program:
    """Calls of operators with their kernels, on a matrix with this number of rows."""
    made = Program()
    for number, (operator, kernels, rows) in enumerate(calls):
        made.call(operator, kernels, rows, 4, start=100 * number)
    return made


def test_graphs_beside_other_work_and_several_a_step(tmp_path: Path) -> None:
    eager = eager_step(
        ("aten::copy_", ("copy",), 4),
        ("aten::mm", ("gemm", "reduce"), 4),
        ("aten::relu", ("relu",), 4),
        ("aten::tanh", ("tanh",), 4),
        ("aten::sum", ("sum",), 4),
    )
    graph = Program()
    graph.call("aten::copy_", ("copy",), 4, 4)
    graph.graph(20, "gemm", "reduce", "relu", start=30)
    graph.graph(21, "tanh", start=70)
    found = hot(write(graph, tmp_path, "graph"), tmp_path, write(eager, tmp_path, "eager"))
    assert {each.name: (each.calls, each.device_ns) for each in found.operations} == {
        "aten::copy_": (1, 10_000),
        "aten::mm": (1, 20_000),
        "aten::relu": (1, 10_000),
        "aten::tanh": (1, 10_000),
    }


def test_a_kernel_with_the_graph_number_zero_is_in_none(tmp_path: Path) -> None:
    made = eager_step(("aten::relu", ("relu",), 4))
    made.events[-1]["args"] |= {"graph id": 0}
    assert [each.name for each in hot(made.write(tmp_path), tmp_path).operations] == ["aten::relu"]


LAYERS = (("aten::mm", ("gemm",), 4), ("aten::mm", ("gemm",), 8))


def test_launches_of_one_graph_take_the_places_in_order(tmp_path: Path) -> None:
    graph = Program()
    for launch in range(2):
        graph.graph(20 + launch, "gemm", start=30 + 100 * launch)
    graph.kernel("other", 22, 200, 10)
    eager = write(eager_step(*LAYERS), tmp_path, "eager")
    found = hot(write(graph, tmp_path, "graph"), tmp_path, eager)
    assert sorted(form.name for each in found.operations for form in each.forms if not each.reason) == ["4x4", "8x4"]


def test_places_with_different_operators_are_refused(tmp_path: Path) -> None:
    graph = Program()
    graph.graph(20, "gemm", start=30)
    found = hot(write(graph, tmp_path, "graph"), tmp_path, write(eager_step(*LAYERS), tmp_path, "eager"))
    (operation,) = found.operations
    assert (
        "its work is at 2 places of a step without it, with different operators, and at 1 of a step with it" in operation.reason
    )


def test_places_with_the_same_operators_are_one(tmp_path: Path) -> None:
    graph = Program()
    for launch in range(3):
        graph.graph(20 + launch, "gemm", "relu", start=30 + 100 * launch)
    eager = eager_step(*(("aten::mm", ("gemm",), 4), ("aten::relu", ("relu",), 4)) * 2)
    found = hot(write(graph, tmp_path, "graph"), tmp_path, write(eager, tmp_path, "eager"))
    assert {each.name: each.calls for each in found.operations} == {"aten::mm": 3, "aten::relu": 3}


def test_a_graph_that_cuts_a_call_is_refused(tmp_path: Path) -> None:
    graph = Program()
    graph.graph(20, "reduce", "relu", start=30)
    eager = eager_step(("aten::mm", ("gemm", "reduce"), 4), ("aten::relu", ("relu",), 4))
    (operation,) = hot(write(graph, tmp_path, "graph"), tmp_path, write(eager, tmp_path, "eager")).operations
    assert "its work begins or ends inside a call of aten::mm" in operation.reason


def two_streams(folder: Path) -> Path:
    made = Program()
    made.call("aten::mm", ("gemm", "reduce"), 4, 4)
    made.call("aten::relu", ("relu",), 4, 4, start=10, stream=9)
    return write(made, folder, "eager")


def test_streams_are_matched_whatever_their_numbers(tmp_path: Path) -> None:
    graph = Program()
    graph.graph(20, ("gemm", 31), ("relu", 32), ("reduce", 31), start=30)
    found = hot(write(graph, tmp_path, "graph"), tmp_path, two_streams(tmp_path))
    assert {each.name: (each.calls, each.device_ns) for each in found.operations} == {
        "aten::mm": (1, 20_000),
        "aten::relu": (1, 10_000),
    }


def test_one_stream_that_differs_refuses_the_whole_graph(tmp_path: Path) -> None:
    graph = Program()
    graph.graph(20, ("gemm", 31), ("tanh", 32), ("reduce", 31), start=30)
    (operation,) = hot(write(graph, tmp_path, "graph"), tmp_path, two_streams(tmp_path)).operations
    assert (operation.name, operation.device_ns) == ("[CUDA graph]", 30_000)
    assert "the first of 1, tanh<<<(4, 1, 1), (64, 1, 1)>>>, is not in the profile without it" in operation.reason


@pytest.mark.slow
def test_streams_with_equal_work_need_as_many_places(tmp_path: Path) -> None:
    graph = Program()
    graph.graph(20, ("relu", 31), ("relu", 32), start=30)
    path = write(graph, tmp_path, "graph")
    (operation,) = hot(path, tmp_path, write(eager_step(("aten::relu", ("relu",), 4)), tmp_path, "once")).operations
    assert "2 of its streams have the same work, which is at 1 places of a step without it" in operation.reason
    twice = hot(path, tmp_path, write(eager_step(*(("aten::relu", ("relu",), 4),) * 2), tmp_path, "twice"))
    assert {each.name: each.calls for each in twice.operations} == {"aten::relu": 2}


def test_graphs_of_torch_compile_have_its_kernels_and_the_operators_between_them(tmp_path: Path) -> None:
    eager = Program()
    eager.operator("Torch-Compiled Region: 0/0", 0, 300)
    eager.operator("triton_poi_fused_relu_0", 5, 30)
    eager.kernel("triton_poi_fused_relu_0", 10, 20, 10)
    eager.call("aten::mm", ("gemm",), 4, 4, start=100)
    graph = Program()
    graph.operator("Torch-Compiled Region: 0/0", 0, 50)
    graph.graph(20, "triton_poi_fused_relu_0", "gemm", start=30)
    path = write(graph, tmp_path, "graph")
    alone = hot(path, tmp_path)
    assert [(each.name, "--eager" in each.reason) for each in alone.operations] == [("[CUDA graph]", True)]
    found = {each.name: each.reason for each in hot(path, tmp_path, write(eager, tmp_path, "eager")).operations}
    assert found.keys() == {"aten::mm", "triton_poi_fused_relu_0"}
    assert not found["aten::mm"] and "a kernel that torch.compile made" in found["triton_poi_fused_relu_0"]


@pytest.mark.slow
def test_chains_and_ranges_are_those_of_the_profile_without_the_graph(tmp_path: Path) -> None:
    eager = eager_step(("aten::mm", ("gemm",), 4), ("aten::relu", ("relu",), 4), ("aten::tanh", ("tanh",), 4))
    eager.annotation("block", 90, 190)
    graph = Program()
    graph.graph(20, "gemm", "relu", "tanh", start=30)
    paths = write(graph, tmp_path, "graph"), tmp_path, write(eager, tmp_path, "eager")
    assert {each.name for each in hot(*paths, choice=Choice(together=True)).operations} == {"aten::relu, aten::tanh"}
    assert {each.name for each in hot(*paths, choice=Choice(within="block")).operations} == {"aten::relu"}


# -- the commands ----------------------------------------------------------------------------------------------------------------------


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command(), [*arguments, "--data-dir", str(folder)])


@pytest.mark.slow
def test_extract_writes_the_operators_of_a_graph(tmp_path: Path) -> None:
    out = tmp_path / "bench_graph.py"
    traces = (str(REAL / "graph.json.gz"), "--eager", str(REAL / "eager.json.gz"))
    done = run(tmp_path, "extract", *traces, "--top", "2", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "warpladder extract graph.json.gz --top 2 --eager eager.json.gz" in out.read_text()
    compile(out.read_text(), str(out), "exec")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((str(REAL / "graph.json.gz"),), "give --eager a profile of the program without its CUDA graphs"),
        ((str(REAL / "eager.json.gz"), "--eager", str(REAL / "eager.json.gz")), "has no CUDA graph; leave --eager out"),
        ((str(REAL / "graph.json.gz"), "--eager", str(REAL / "graph.json.gz")), "has no operators of PyTorch"),
        ((str(REAL / "graph.json.gz"), "--eager", "nowhere"), "nowhere"),
        (
            (str(REAL / "graph.json.gz"), "--eager", str(ROOT / "docs" / "examples" / "training_step.json.gz")),
            "has no kernels to find those of a CUDA graph in",
        ),
    ],
)
def test_wrong_requests_are_one_line(arguments: tuple[str, ...], part: str, tmp_path: Path) -> None:
    done = run(tmp_path, "extract", *arguments)
    assert done.exit_code == 2
    assert part in done.stderr.splitlines()[0]


def steps_with_graph(folder: Path, name: str, relu: str, relu_us: int) -> tuple[Path, Path]:
    """Three steps, each a graph of a relu and a product, and a step without the graph."""
    graph, eager = Program(), Program()
    for number in range(3):
        graph.step(number, 1000 * number, 1000 * number + 900)
        graph.graph(1000 * number + 1, relu, "gemm", start=1000 * number + 6)
        first, second = [each for each in graph.events if each["cat"] == "kernel"][-2:]
        first["dur"], second["ts"], second["dur"] = relu_us, first["ts"] + relu_us + 1, 20
    eager.call("aten::relu" if relu == "relu" else "mine::relu", (relu,), 4, 4)
    eager.call("aten::mm", ("gemm",), 4, 4, start=100)
    return write(graph, folder, f"{name}-graph"), write(eager, folder, name)


@pytest.mark.thorough
def test_a_forecast_of_a_graph_stands_beside_the_later_profile(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    graph, eager = steps_with_graph(tmp_path, "before", "relu", 10)
    after, after_eager = steps_with_graph(tmp_path, "after", "mine", 5)
    done = run(tmp_path, "forecast", str(graph), "recorded", "--eager", str(eager))
    assert done.exit_code == 0, done.output
    line = next(line for line in done.stdout.splitlines() if line.startswith("aten::relu"))
    assert line.split()[1:3] == ["mine", "2.00"]
    only_one = run(tmp_path, "forecast", str(graph), "recorded", "--eager", str(eager), "--after", str(after))
    assert (only_one.exit_code, only_one.stderr.count("\n")) == (2, 1)
    assert "what was replaced is not known of kernels of a CUDA graph: " in only_one.stderr
    both = ("--eager", str(eager), "--eager", str(after_eager))
    done = run(tmp_path, "forecast", str(graph), "recorded", *both, "--after", str(after))
    assert done.exit_code == 0, done.output
    assert "forecast with aten::relu replaced: " in done.stdout
    changes = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.startswith(("aten::", "mine::"))}
    assert changes["mine::relu"][-2:] == ["5.00", "µs"] and changes["aten::relu"][4:6] == ["0", "ns"]
