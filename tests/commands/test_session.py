"""Recording from scripts and from this process: what measures, what the file does meanwhile, and what is refused."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpladder
from warpladder import declared
from warpladder.collectors.core import plan
from warpladder.collectors.core.environment import CollectorError
from warpladder.data import store
from warpladder.data.names import Source
from warpladder.errors import Error
from warpladder.workloads import registry
from warpladder.workloads.api import WorkloadError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
DECLARED = """
import os
import sys

import numpy as np
import warpladder


def declare(name, columns=10):
    bench = warpladder.Benchmark(name, n=[10, 1000])

    @bench.inputs
    def inputs(n, rng):
        return rng.random((n, columns), np.float32)

    @bench.reference
    def reference(x):
        return x.sum(axis=1)

    @bench.variant
    def total(x):
        with open("processes", "a") as file:
            print(os.getpid(), file=file)
        return x.sum(axis=1)

    return bench


OPTIONS = {"data_dir": "runs", "max_rounds": 6, "seconds": 0.05, "collector": "host_clock"}
"""


def start(folder: Path, text: str, *arguments: str) -> "subprocess.Popen[str]":
    (folder / "bench.py").write_text(DECLARED + text)
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "bench.py", *arguments]
    return subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes)


def run_script(folder: Path, text: str, *arguments: str) -> tuple[int, str, str]:
    process = start(folder, text, *arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def runs_in(folder: Path) -> list[store.Run]:
    return store.list_runs([folder / "runs"])[0]


def measured_by(folder: Path) -> set[str]:
    return set((folder / "processes").read_text().split())


def test_a_script_that_records_at_its_top_level_is_loaded_by_the_child_up_to_there(tmp_path: Path) -> None:
    text = 'bench = declare("sums")\nrun = bench.record(label="mine", **OPTIONS)\nprint(os.getpid(), run.id)\n'
    code, out, err = run_script(tmp_path, text)
    assert code == 0, err
    (run,) = runs_in(tmp_path)
    pid, run_id = out.split()
    assert (run.run_id, run.info["label"]) == (run_id, "mine")
    assert set(run.table("results")["status"]) == {"ok"} and len(run.table("samples"))
    assert pid not in measured_by(tmp_path)
    assert run.info["command"].startswith("warpladder record bench.py")
    lines = err.splitlines()
    assert lines[0] == "collector host_clock: asked for"
    assert lines[-2:] == [f"run {run_id}: 2 ok", "one process took all samples: how far processes differ is not known"]
    assert any(line.startswith("3/3 sums n=10") for line in lines)


@pytest.mark.thorough
def test_the_command_records_such_a_file_once(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(DECLARED + 'bench = declare("sums")\nbench.record(**OPTIONS)\nraise AssertionError\n')
    command = [sys.executable, "-m", "warpladder", "record", "bench.py", "--data-dir", "runs", "--seconds", "0.05"]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (run,) = runs_in(tmp_path)
    assert set(run.table("results")["status"]) == {"ok"}


@pytest.mark.thorough
def test_the_child_finds_the_script_s_arguments_and_what_stands_after_a_guard_is_not_run(tmp_path: Path) -> None:
    text = (
        'bench = declare("sums", int(sys.argv[1]))\n'
        'if __name__ == "__main__":\n    run = bench.record(axis={"n": [20, 30]}, **OPTIONS)\n    print(list(run.table()["n"]))\n'
    )
    code, out, err = run_script(tmp_path, text, "7")
    assert code == 0, err
    assert out == "[20, 30]\n"
    (run,) = runs_in(tmp_path)
    assert list(run.table("cases")["h2d_bytes"]) == [4 * 7 * 20, 4 * 7 * 30]


@pytest.mark.thorough
def test_what_a_function_declares_is_measured_in_this_process(tmp_path: Path) -> None:
    text = 'def main():\n    declare("sums").record(**OPTIONS)\n    print(os.getpid())\n\n\nmain()\n'
    code, out, err = run_script(tmp_path, text)
    assert code == 0, err
    assert measured_by(tmp_path) == {out.strip()}
    assert "in this process, because sums is at the top level of no file" in err


def test_a_run_tells_the_call_that_only_this_process_can_repeat(tmp_path: Path) -> None:
    run = benchmark().record(cases=["n=20"], data_dir=tmp_path, max_rounds=2, collector="host_clock")
    assert run.info["command"] == "warpladder.record(sums, cases=['n=20'], max_rounds=2)"


@pytest.mark.thorough
def test_what_is_declared_after_a_recording_is_measured_in_this_process(tmp_path: Path) -> None:
    text = (
        'first, second = declare("first"), declare("second")\nfirst.record(**OPTIONS)\nos.remove("processes")\nsecond.record(**OPTIONS)\n'
        'third = declare("third")\nassert str(os.getpid()) not in open("processes").read().split()\nthird.record(**OPTIONS)\n'
        "assert str(os.getpid()) in open('processes').read().split()\n"
        "@first.variant\ndef late(x):\n    return x.sum(axis=1)\n\n\nprint(len(first.record(**OPTIONS).table()))\n"
    )
    code, out, err = run_script(tmp_path, text)
    assert code == 0, err
    assert out == "4\n"
    assert err.count("in this process, because the script first recorded before it had declared all of") == 2
    assert len(runs_in(tmp_path)) == 4


@pytest.mark.thorough
def test_ctrl_c_ends_a_script_and_keeps_what_was_measured(tmp_path: Path) -> None:
    text = 'bench = declare("sums")\nbench.record(data_dir="runs", seconds=60, max_rounds=10**6, collector="host_clock")\nprint("on")\n'
    process = start(tmp_path, text)
    deadline = time.monotonic() + 60
    while not (tmp_path / "processes").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 130) and "KeyboardInterrupt" in err and not out
    (run,) = runs_in(tmp_path)
    assert Source.INTERRUPTED in set(run.table("diagnostics")["source"])


@pytest.mark.thorough
def test_a_file_and_a_workload_that_ships_are_recorded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench.py").write_text(DECLARED + 'bench = declare("sums")\n')
    run = warpladder.record(
        tmp_path / "bench.py",
        "mlp_elementwise",
        variants=["total", "numpy"],
        data_dir=tmp_path / "runs",
        max_rounds=3,
        seconds=0.05,
        collector="host_clock",
    )
    assert run.workloads == ("sums", "mlp_elementwise")
    assert set(run.table()["variant"]) == {"total", "numpy"}
    assert run.path.parent == tmp_path / "runs"


def benchmark() -> warpladder.Benchmark:
    bench = warpladder.Benchmark("sums", n=[10])
    bench.inputs(lambda n, rng: rng.random((n, 4), np.float32))
    bench.reference(lambda x: x.sum(axis=1))
    bench.variant(lambda x: x.sum(axis=1), name="total")
    return bench


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"processes": 3}, plan.PlanError, "processes=3: there is one process, because sums is at the top level of no file"),
        ({"cases": "n=x"}, WorkloadError, "n=x: no case of sums"),
        ({"cases": ["fast"]}, WorkloadError, "fast: no case of sums"),
        ({"axis": {"m": [1]}}, WorkloadError, "no case of sums"),
        ({"axis": {"n": []}}, plan.PlanError, "--axis n= is not NAME=VALUE"),
        ({"variants": "totel"}, plan.PlanError, "totel: no such variant in sums, whose variants are total"),
        ({"collector": "nsight_systems"}, CollectorError, "run `warpladder record FILE --collector nsight_systems`"),
        ({"collector": "stopwatch"}, CollectorError, "no such collector"),
        ({"seconds": 0}, plan.PlanError, "seconds=0: give a number above 0"),
        ({"max_rounds": -1}, plan.PlanError, "max_rounds=-1: give a number above 0"),
        ({"label": "\udc80"}, Error, "not valid UTF-8"),
        ({"data_dir": ""}, store.StoreError, "names no folder"),
    ],
)
def test_what_cannot_be_recorded_is_said_in_one_line(
    options: dict[str, Any], error: type[Exception], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as raised:
        benchmark().record(**{"data_dir": tmp_path, **options})
    assert said in str(raised.value) and "\n" not in str(raised.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "said"), [((), "nothing to record"), ((3,), "int 3: not a workload"), (("conv4d",), "no such workload")]
)
def test_what_is_no_workload_is_refused(given: tuple[Any, ...], said: str) -> None:
    with pytest.raises((plan.PlanError, WorkloadError), match=said):
        warpladder.record(*given)


@pytest.mark.thorough
def test_what_functions_print_is_kept_apart_and_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = benchmark()

    @bench.variant
    def talks(x: Any) -> Any:
        print("hello")
        print("y" * 3000)
        return x.sum(axis=1)

    run = bench.record(data_dir=tmp_path, max_rounds=6, seconds=0.05, collector="host_clock")
    assert set(run.table()["status"]) == {"ok"}
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = (line for line in printed.err.splitlines() if line.startswith("printed by the functions: "))
    assert "hello | yyy" in line and line.endswith(" …") and len(line) < 400


def test_the_random_generators_of_this_process_go_on_as_before(tmp_path: Path) -> None:
    random.seed(5)
    np.random.seed(5)
    expected = random.random(), np.random.random()
    random.seed(5)
    np.random.seed(5)
    benchmark().record(data_dir=tmp_path, max_rounds=2, collector="host_clock")
    assert (random.random(), np.random.random()) == expected


def test_a_request_is_that_of_the_command() -> None:
    assert declared.request_of().arguments() == plan.Request().arguments()
    assert declared.request_of("full", variants="a", seconds=1.5).arguments()[-2:] == ["--variants=a", "--seconds=1.5"]
    swept = declared.request_of(axis={"n": [1, 2], "m": 3})
    assert list(swept.cases) == plan.sweep_of(["n=1,2", "m=3"]) == ["n=1,m=3", "n=2,m=3"]


def test_a_file_that_records_declares_what_stands_above(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(DECLARED + 'inner = declare("inner")\ninner.record(**OPTIONS)\nraise AssertionError\n')
    (tmp_path / "bench.py").write_text(
        'from helper import declare, inner\nouter = declare("outer")\ntry:\n    outer.record()\nexcept Exception:\n    raise\nnone = 1 / 0\n'
    )
    assert [each.name for each in registry.load_file(tmp_path / "bench.py")] == ["inner", "outer"]
    assert not (tmp_path / "runs").exists()


@pytest.mark.thorough
def test_a_workload_that_the_child_does_not_find_is_told_with_its_cure(tmp_path: Path) -> None:
    text = (
        'other = declare("other")\nif __name__ == "__main__":\n    bench = declare("sums")\n'
        '    print(bench.record(**OPTIONS).table()["detail"][0])\n'
    )
    code, out, err = run_script(tmp_path, text)
    assert code == 0, err
    assert "bench.py: " in out and "top level of the file" in out


def test_importing_warpladder_loads_nothing_slow() -> None:
    slow = ("pandas", "numpy", "plotly", "streamlit", "pyarrow", "cupy", "click", "IPython")
    code = f"import sys, warpladder; warpladder.record, warpladder.open_run; print([m for m in {slow!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
