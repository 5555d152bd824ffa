"""The command line: its answers, and one clear line with exit code 2 for a mistake."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import forked
from warpladder.__main__ import command
from warpladder.collectors import choice
from warpladder.commands.common import axes_of, cases_of, split
from warpladder.data import store

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
MISBEHAVING = ROOT / "tests" / "collectors" / "core" / "misbehaving.py"
NO_FOLDER = '--data-dir "": names no folder; write --data-dir . for the working directory'


def collectors(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return forked.warpladder(*arguments, env={**os.environ, "COLUMNS": "120"})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["record", "no_such"],
            "no_such: no such workload; known: call_routes, cnn_conv, cnn_conv_bf16, conv2d, gan_tconv, gan_tconv_bf16, gemm_bf16, gemm_fp16, gemm_fp8, mlp_data_parallel",
        ),
        (
            ["record", "conv2d", "--variants", "v99_magic"],
            "v99_magic: no such variant in conv2d, whose variants are v01_copy, v02_naive_global",
        ),
        (
            ["record", "conv2d", "--case", "n=-1"],
            "n=-1: no case of conv2d: n=-1 is not a whole number; its axes are n (1 to 32,768)",
        ),
        (["record", "conv2d", "--axis", "m=3,4"], "m=3: no case of conv2d: there is no axis m; its axes are n (1 to 32,768)"),
        (["record", "conv2d", "--axis", "n"], "--axis n is not NAME=VALUE,VALUE...; write for instance --axis n=1000,2000"),
        (["record", "conv2d", "--format", "xml"], "--format xml: no such format; choose table, markdown, csv, json"),
        (
            ["record", "docs/examples/row_sum.py", "--case", "rows=7"],
            "rows=7: no such case in row_sum, which has rows=1000",
        ),
        (["record", "conv2d", "--set", "some"], "some: no such set of cases; choose quick, report, full"),
        (["record", "conv2d", "--collector", "guess"], "guess: no such collector; choose auto"),
        (["record", "absent.py"], "absent.py: no such file"),
        (["record", "README.md"], "README.md: not a Python file"),
        (["record", "pyproject.toml"], "pyproject.toml: not a Python file"),
        (["record", "collectors/core/journal.py"], "collectors/core/journal.py: declares no Benchmark"),
        (["record", "conv2d", "--data-dir", "/dev/null/runs"], "/dev/null/runs: cannot be written"),
        (["record", "conv2d", "--data-dir", ""], NO_FOLDER),
        (["profile", "--data-dir", " ", "--", "true"], NO_FOLDER),
        (["import", "--data-dir", "", "absent.sqlite"], NO_FOLDER),
        (["runs", "--data-dir", ""], NO_FOLDER),
        (["list", "no_such"], "no_such: no such workload"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner(env={"COLUMNS": "120"}).invoke(command(), arguments)
    assert done.exit_code == 2, done.exception
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("collector ")]
    assert len(lines) == 1, done.stderr
    assert said in lines[0]
    assert done.stdout == ""


def test_a_mistake_is_one_line_and_exit_code_2_from_the_shell_too() -> None:
    done = collectors("record", "no_such")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("no_such: no such workload")


@pytest.mark.thorough
def test_asking_for_a_gpu_where_there_is_none_is_one_line() -> None:
    if choice.gpu_problem() is None:
        pytest.skip("this machine has a GPU, and the message is for one without")
    done = collectors("record", "conv2d", "--collector", "cuda_events")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cuda_events: needs a GPU" in done.stderr


@pytest.mark.thorough
def test_the_run_id_is_the_last_line_of_stdout_and_names_the_run(tmp_path: Path) -> None:
    done = collectors(
        *("record", str(MISBEHAVING), "--variants", "good", "--case", "n=1000", "--label", "First Try"),
        *("--processes", "1", "--max-rounds", "6", "--data-dir", str(tmp_path)),
    )
    assert done.returncode == 0, done.stderr
    run = store.open_run(tmp_path / done.stdout.splitlines()[-1])
    assert "first-try" in run.run_id
    again = CliRunner().invoke(command(), ["record", "--if-none", "--data-dir", str(tmp_path)])
    assert again.stdout.strip() == run.run_id
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.thorough
def test_in_a_file_a_recording_says_of_each_job_how_long_it_took(tmp_path: Path) -> None:
    done = collectors(
        *("record", str(MISBEHAVING), "--variants", "good", "--case", "n=1000", "--processes", "2"),
        *("--data-dir", str(tmp_path)),
    )
    jobs = [line for line in done.stderr.splitlines() if re.match(r"\d/\d ", line)]
    of = [f"{number + 1}/3 misbehaving n=1000, process {number} of 2: " for number in (1, 2)]
    assert [re.sub(r"[\d.]+ s$", "", line) for line in jobs] == ["1/3 ceilings of this machine: ", *of]


def test_list_names_workloads_variants_and_cases() -> None:
    done = collectors("list", "conv2d")
    assert done.returncode == 0
    assert "variant v02_naive_global" in done.stdout
    assert "case    n=8192" in done.stdout


@pytest.mark.thorough
def test_an_argument_that_is_a_python_file_is_a_workload_of_ones_own(tmp_path: Path) -> None:
    listed = collectors("list", str(MISBEHAVING))
    assert "misbehaving: " in listed.stdout and "tensor_transpose" not in listed.stdout
    done = collectors(
        *(
            "record",
            str(MISBEHAVING),
            "--variants",
            "good",
            "--case",
            "n=1000",
            "--max-rounds",
            "6",
            "--data-dir",
            str(tmp_path),
        )
    )
    run = store.open_run(tmp_path / done.stdout.splitlines()[-1])
    assert run.info["command"].startswith("warpladder record misbehaving.py ")
    missing = collectors("record", "nowhere/bench.py")
    assert missing.returncode == 2 and missing.stderr.count("\n") == 1 and "nowhere/bench.py: no such file" in missing.stderr
    assert "declares a Benchmark" in missing.stderr and "WORKLOAD" not in missing.stderr


def test_doctor_says_how_to_get_what_is_missing() -> None:
    done = collectors("doctor")
    assert done.returncode == 0
    assert "Python" in done.stdout and "Chromium" in done.stdout


def test_auto_times_by_events_whatever_else_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "problem_of", lambda name: None)
    monkeypatch.setattr(choice, "gpu_problem", lambda: None)
    assert choice.choose("auto")[0] == "cuda_events"
    monkeypatch.setattr(choice, "gpu_problem", lambda: "nvidia-ml-py is not installed")
    monkeypatch.setattr(choice, "has_nvidia_driver", lambda: True)
    assert choice.choose("auto") == ("host_clock", "nvidia-ml-py is not installed")
    monkeypatch.setattr(choice, "has_nvidia_driver", lambda: False)
    assert choice.choose("auto") == ("host_clock", "this machine has no NVIDIA driver")


def test_help_has_every_command_on_a_line_of_its_own_with_a_whole_sentence() -> None:
    lines = [line for line in CliRunner().invoke(command(), ["--help"]).output.splitlines() if line.startswith("  ")]
    rows = {words[0]: line for line in lines if (words := line.split()) and words[0] in command().commands}
    assert rows.keys() == command().commands.keys()
    assert {name: line for name, line in rows.items() if not line.endswith(".") or line.endswith("...")} == {}


@pytest.mark.thorough
def test_help_and_the_list_of_workloads_load_nothing_that_they_do_not_need() -> None:
    for arguments in (["--help"], ["list", "conv2d"]):
        code = (
            "import sys; from warpladder.__main__ import command; command()(sys.argv[1:], standalone_mode=False);"
            "print([m for m in ('pandas', 'pyarrow', 'numba', 'multiprocessing') if m in sys.modules], file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stderr.strip() == "[]", arguments


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["record", "--gpus", "1,2", "--ranks", "2"],
            "--gpus --ranks: either GPUs share a case, or processes without a GPU; leave",
        ),
        (
            ["record", "gan_tconv", "--gpus", "2", "--collector", "host_clock"],
            "--gpus 2: the collector host_clock uses no GPU; write --ranks, for processes that share a case",
        ),
        (
            ["record", "conv2d", "--ranks", "2"],
            "--ranks 2: conv2d cannot be shared among processes; record one that can: gan_tconv",
        ),
        (
            ["record", "gan_tconv", "--ranks", "none"],
            "--ranks none: none is not a number of processes; write for instance --ranks 1,2,4",
        ),
    ],
)
def test_what_is_gone_names_what_took_its_place(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(command(), arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--max-rounds", "--seconds", "--processes"])
def test_no_number_stands_for_the_default(option: str) -> None:
    done = CliRunner().invoke(command(), ["record", "conv2d", option, "0"])
    assert done.exit_code == 2 and option in done.stderr


def test_lists_take_commas_and_repetition_alike() -> None:
    assert split(["a,b", " c ,,d"]) == ["a", "b", "c", "d"]
    assert cases_of(["n=1,n=2", "n=3,perm=210,n=4,perm=012"]) == ["n=1", "n=2", "n=3,perm=210", "n=4,perm=012"]
    assert axes_of(["n=1,2", "m=3", "n=4"]) == axes_of(["n=1,2,4,m=3"]) == ["n=1,2,4", "m=3"]
    assert axes_of(["n"]) == ["n"] and axes_of(["n="]) == ["n="]


def test_a_run_that_there_is_not_is_answered_by_the_known_ones_one_a_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(command(), ["compare", "H200 conv2", "H100 conv2d"])
    first, *known = done.stderr.splitlines()
    assert (done.exit_code, first) == (2, "H200 conv2: no such run; known runs:")
    assert known[0] == "  H200 conv2d" and all(line.startswith("  ") for line in known)


@pytest.mark.slow
def test_what_variants_print_is_kept_with_the_run_and_one_line_tells_where(tmp_path: Path) -> None:
    """A file that prints while it is imported, and a variant that prints in each call as a library does, to the descriptor."""
    bench = tmp_path / "noisy.py"
    bench.write_text(
        "import os\nimport numpy as np\nimport warpladder\n"
        "os.write(2, b'imported\\n')\nprint('imported, too')\n"
        "bench = warpladder.Benchmark('noisy', n=[64])\n"
        "@bench.inputs\ndef inputs(n):\n    return np.random.rand(n)\n"
        "@bench.variant(baseline=True)\n@bench.reference\ndef plain(x):\n    return np.sqrt(x)\n"
        "@bench.variant\ndef loud(x):\n    os.write(2, b'called\\n')\n    return np.sqrt(x)\n"
    )
    words = ["record", str(bench), "--max-rounds", "1", "--processes", "1", "--quiet", "--format", "json"]
    done = forked.warpladder(*words, "--data-dir", "runs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (log,) = (tmp_path / "runs").glob("*/output.log")
    lines = log.read_text().splitlines()
    assert {"imported", "imported, too", "called"} == set(lines)
    assert json.loads(done.stdout)[0]["workload"] == "noisy"
    assert done.stderr.splitlines()[0] == f"variants and libraries printed {len(lines)} lines: {log.relative_to(tmp_path)}"
    assert not {*lines} & {*done.stderr.splitlines()}


def test_why_without_a_variant_or_a_case_tells_where_their_names_are(tmp_path: Path) -> None:
    kernel = tmp_path / "mine.cu"
    kernel.touch()
    for arguments, words in (
        (["conv2d"], "conv2d: --variant and --case missing; warpladder list conv2d has its variants and cases"),
        (["conv2d", "--variant", "v01_naive"], "conv2d: --case missing; "),
        ([str(kernel)], "mine.cu: not a Python file; give the path of a .py file"),
    ):
        done = CliRunner().invoke(command(), ["why", *arguments])
        assert done.exit_code == 2 and words in done.stderr


@pytest.mark.parametrize("number", ["nan", "inf", "0", "-1"])
@pytest.mark.parametrize(
    "arguments",
    [["record", "conv2d", "--seconds"], ["why", "conv2d", "--variant", "a", "--case", "n=1", "--seconds"], ["mcp", "--memory"]],
)
def test_a_number_that_is_none_above_0_is_refused(arguments: list[str], number: str) -> None:
    done = CliRunner().invoke(command(), [*arguments, number])
    assert done.exit_code == 2 and f"Error: Invalid value for '{arguments[-1]}': " in done.stderr
