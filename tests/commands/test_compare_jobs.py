"""`warpladder compare` of two jobs: what it prints, and its exit codes."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from tests.synthetic.made_compared_jobs import MadeJob
from tests.synthetic.made_runs import run_row, write_tables
from warpladder.__main__ import command

JOB = MadeJob(ranks=(0, 1, 2, 3), iterations=(1, 2, 3, 4))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    JOB.write(folder, "main")
    replace(JOB, seed=2).write(folder, "same")
    replace(JOB, seed=3).slower("kernel_05", 1.05).slower("kernel_11", 1.2, rank=2).write(folder, "slow")
    replace(JOB, ranks=(7, 8)).write(folder, "elsewhere")
    replace(JOB, seed=2, ranks=(0, 1, 2)).write(folder, "without rank 3")
    write_tables(folder, {**run_row("recorded", "recorded"), "kind": "recording"}, {})
    return folder


def compare(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command(), ["compare", *arguments, "--data-dir", str(folder)])


@pytest.mark.slow
def test_equal_code_passes(folder: Path) -> None:
    done = compare(folder, "main", "same")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "compared: 4 ranks and 4 iterations, matched by number" in done.stdout
    assert "slower" not in done.stdout


@pytest.mark.slow
def test_slow_kernels_fail_and_are_named(folder: Path) -> None:
    done = compare(folder, "main", "slow")
    assert done.exit_code == 1
    named = {tuple(line.split()[1:3]) for line in done.stdout.splitlines() if line.startswith("slower")}
    assert {("kernel_05", "all"), ("kernel_11", "2")} <= named
    assert compare(folder, "main", "slow", "--fail-above", "30%").exit_code == 0
    assert r"| slower | kernel\_05 | all |" in compare(folder, "main", "slow", "--format", "markdown").stdout


def test_a_gate_that_could_not_see_ends_with_3(folder: Path) -> None:
    done = compare(folder, "main", "same", "--detect", "0.01%")
    assert done.exit_code == 3 and "could not have shown 0.01 %: iteration, device span" in done.stdout
    assert "NOT SEEN" in compare(folder, "main", "same", "--detect", "0.01%", "--format", "markdown").stdout
    content = json.loads(compare(folder, "main", "same", "--detect", "0.01%", "--format", "json").stdout)
    hidden = {each["name"] for each in content["changes"] if each["unseen"]}
    assert "iteration" in hidden and content["gate"]
    suite = ElementTree.fromstring(compare(folder, "main", "same", "--detect", "0.01%", "--format", "junit").stdout)
    assert int(suite.attrib["errors"]) == len(hidden) == len(suite.findall("testcase/error"))


def test_a_rank_without_a_profile_in_b_is_not_seen(folder: Path) -> None:
    done = compare(folder, "main", "without rank 3")
    assert done.exit_code == 3
    assert "NOT SEEN: B has no profile of 1 rank of A (3); where that is meant, add --partial" in done.stdout
    suite = ElementTree.fromstring(compare(folder, "main", "without rank 3", "--format", "junit").stdout)
    assert int(suite.attrib["errors"]) == len(suite.findall("testcase/error")) == 1
    assert compare(folder, "main", "without rank 3", "--partial").exit_code == 0
    assert compare(folder, "without rank 3", "main").exit_code == 0, "a rank more is no loss"


def test_json_and_junit_have_every_row(folder: Path) -> None:
    content = json.loads(compare(folder, "main", "slow", "--format", "json").stdout)
    failed = {(each["name"], each["rank"]) for each in content["changes"] if each["failed"]}
    assert {("kernel_05", None), ("kernel_11", 2)} <= failed
    suite = ElementTree.fromstring(compare(folder, "main", "slow", "--format", "junit").stdout)
    assert int(suite.attrib["tests"]) == len(content["changes"]) == len(suite)
    assert int(suite.attrib["failures"]) == len(failed) == len(suite.findall("testcase/failure"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("main", "recorded"),
            "main is a job, recorded is a run with cells, such as a recording; compare two runs of one kind",
        ),
        (("main", "elsewhere"), "main and elsewhere have no rank in common: 0, 1, 2 … and 7, 8"),
        (("main", "same", "--scope", "device", "--absolute"), "--scope, --absolute: is about the cells of recordings"),
    ],
)
def test_what_cannot_be_compared_is_one_line(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = compare(folder, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
