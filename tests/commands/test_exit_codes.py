"""Exit codes of `record` and `versus`, and their table in docs/reference.md."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import warpladder
from tests.collectors.core.test_under_tool import fake_nsys
from tests.collectors.programs.recording import script
from warpladder import recording
from warpladder.__main__ import command
from warpladder.collectors import choice
from warpladder.collectors.nsight_systems import record as nsight_systems
from warpladder.data import store

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
app = command()
START = """
import warpladder

bench = warpladder.Benchmark("sums", n=[64])
bench.inputs(lambda n, rng: rng.random((n, n)))
bench.reference(lambda x: x.sum(axis=1))


@bench.variant(baseline=True)
def good(x):
    return x.sum(axis=1)
"""
VARIANTS = {
    "wrong": "@bench.variant\ndef wrong(x):\n    return 2 * x.sum(axis=1)\n",
    "raises": "@bench.variant\ndef raises(x):\n    raise ValueError('no such tile')\n",
    "dies": "@bench.variant\ndef dies(x):\n    import os\n    os.kill(os.getpid(), 9)\n",
    "peer": "@bench.variant(role='peer')\ndef peer(x):\n    return 2 * x.sum(axis=1)\n",
    "pitfall": "@bench.variant(role='specimen')\ndef pitfall(x):\n    return 2 * x.sum(axis=1)\n",
    "absent": "@bench.variant(requires=['no_such_module'])\ndef absent(x):\n    return x.sum(axis=1)\n",
}


def bench(folder: Path, *variants: str) -> Path:
    """A file with the right variant `good` and some of `VARIANTS`."""
    file = folder / "bench.py"
    file.write_text("\n\n".join([START, *(VARIANTS[name] for name in variants)]))
    return file


def record(file: Path, *options: str) -> Result:
    limits = ("--collector", "host_clock", "--max-rounds", "6", "--processes", "1")
    return CliRunner().invoke(app, ["record", str(file), *limits, "--data-dir", str(file.parent / "runs"), *options])


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("variants", "options", "said"),
    [
        (["wrong"], [], "not right: 1 of 2 cells, sums/wrong/n=64: wrong_result: "),
        (["raises"], ["--format", "json"], "not right: 1 of 2 cells, sums/raises/n=64: launch_error: "),
        (["dies"], ["--format", "csv"], "not right: 1 of 2 cells, sums/dies/n=64: out_of_memory: "),
        (["wrong", "raises"], ["--format", "markdown"], "not right: 2 of 3 cells, first sums/wrong/n=64: wrong_result: "),
        (["peer"], ["--variants", "good,peer"], "not right: 1 of 2 cells, sums/peer/n=64: wrong_result: "),
    ],
    ids=["wrong", "raises", "dies", "two", "a peer that is named"],
)
def test_a_recording_with_a_variant_that_is_not_right_ends_with_1(
    variants: list[str], options: list[str], said: str, tmp_path: Path
) -> None:
    done = record(bench(tmp_path, *variants), *options)
    assert done.exit_code == 1, done.output
    assert done.stderr.splitlines()[-1].startswith(said)
    assert done.stdout
    ((run,), _) = store.list_runs([tmp_path / "runs"])
    assert set(run.table("samples")["variant"]) == {"good"}
    again = record(tmp_path / "bench.py", "--if-none")
    assert (again.exit_code, again.stdout) == (0, f"{run.run_id}\n")


def test_work_that_was_not_done_ends_with_1_though_the_outputs_are_right(tmp_path: Path) -> None:
    file = bench(tmp_path)
    file.write_text(file.read_text().replace("n=[64])", "n=[64], flops=1e15)"))
    done = record(file)
    assert done.exit_code == 1, done.output
    assert done.stderr.splitlines()[-1].startswith("not right: 1 of 1 cells, sums/good/n=64: above_ceiling: operation hot: ")


@pytest.mark.thorough
def test_a_caught_specimen_and_what_cannot_run_here_and_a_peer_that_is_not_named_end_with_0(tmp_path: Path) -> None:
    done = record(bench(tmp_path, "pitfall", "absent", "peer"))
    assert done.exit_code == 0, done.output
    lines = done.stderr.splitlines()
    assert "1 ok, 1 wrong_result, 1 skipped" in {line.split(" (")[0] for line in lines}
    assert "specimens (known pitfalls, which the checks have to catch): 1 caught: pitfall" in lines
    assert not any(line.startswith("sums/pitfall") for line in lines)
    assert any(line.startswith("sums/peer/n=64: wrong_result: ") for line in lines)
    assert "not right" not in done.stderr
    named = record(tmp_path / "bench.py", "--variants", "good,pitfall,absent")
    assert named.exit_code == 0, named.output


@pytest.mark.thorough
@pytest.mark.parametrize(("variants", "code"), [(["wrong"], 1), ([], 0)], ids=["wrong", "right"])
def test_a_recording_under_a_tool_ends_with_the_code_of_its_run(
    variants: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording inside ends with 0, so that the tool does not take it for a program that failed."""
    fake_nsys(tmp_path, monkeypatch)
    monkeypatch.setattr(recording, "UNDER_TOOL", {"nsight_systems": ("host_clock", nsight_systems.record)})
    monkeypatch.setattr(choice, "choose", lambda name: (name, "asked for"))
    done = record(bench(tmp_path, *variants), "--collector", "nsight_systems")
    assert done.exit_code == code, done.output
    ((run,), _) = store.list_runs([tmp_path / "runs"])
    assert run.info["collector"] == "nsight_systems"
    assert done.stderr.count("not right: ") == code
    inside = record(tmp_path / "bench.py", "--no-summary")
    assert inside.exit_code == 0


def test_record_from_python_returns_the_run_of_a_wrong_variant(tmp_path: Path) -> None:
    run = warpladder.record(
        str(bench(tmp_path, "wrong")), collector="host_clock", max_rounds=6, processes=1, data_dir=tmp_path / "runs"
    )
    results = store.open_run(tmp_path / "runs" / run.id).table("results")
    assert dict(results.set_index("variant")["status"]) == {"good": "ok", "wrong": "wrong_result"}


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="programs are timed on Linux")
@pytest.mark.parametrize(
    ("program", "form", "said"),
    [
        ("./missing", "table", "vs missing/missing/whole: launch_error: missing: no such program; check its name"),
        ("false", "json", "vs false/false/whole: launch_error: exit code 1"),
        ("echo 1", "csv", "vs echo 1/echo 1/whole: wrong_result: its output differs from true"),
        ("sleep 9", "markdown", "vs sleep 9/sleep 9/whole: timeout: did not end within 0.5 s"),
    ],
)
def test_a_comparison_with_a_program_that_is_not_right_ends_with_1(program: str, form: str, said: str, tmp_path: Path) -> None:
    options = ("--same-output", "--runs", "1", "--timeout", "0.5", "--collector", "host_clock", "--format", form)
    done = CliRunner().invoke(app, ["versus", "true", program, *options, "--data-dir", str(tmp_path)])
    assert done.exit_code == 1, done.output
    assert done.stderr.splitlines()[-1].startswith(f"not right: 1 of 2 cells, true {said}")


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="programs are timed on Linux")
def test_a_slower_program_ends_with_0(tmp_path: Path) -> None:
    slow = script(tmp_path / "slow", "sleep 0.05")
    done = CliRunner().invoke(
        app, ["versus", "true", slow, "--runs", "6", "--collector", "host_clock", "--data-dir", str(tmp_path / "runs")]
    )
    assert done.exit_code == 0, done.output


def test_the_table_of_exit_codes_names_every_command() -> None:
    section = (ROOT / "docs" / "reference.md").read_text().partition("## Exit codes\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])} == set(app.commands)


@pytest.mark.parametrize(("code", "goes_on"), [(0, True), (1, True), (2, False), (130, False)])
def test_make_app_goes_on_where_a_variant_is_wrong(code: int, goes_on: bool) -> None:
    recipe = next(line for line in (ROOT / "Makefile").read_text().splitlines() if "record --if-none" in line).strip()
    command = re.sub(r"\$\(BIN\)/warpladder [^|]*", f"(exit {code}) ", recipe).replace("$$", "$")
    assert (subprocess.run(["/bin/sh", "-c", command], check=False).returncode == 0) == goes_on
