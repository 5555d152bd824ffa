"""The plugin of pytest, in a project of its own."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

import warpladder
from tests.synthetic import made_runs
from warpladder.dashboard.run.run import Run
from warpladder.dashboard.text import summary
from warpladder.pytest_plugin import Judge

pytest_plugins = ["pytester"]

#: A project whose function takes so many steps of about 0.1 ms.
PROJECT: Final = """
import time

import numpy as np


def reference(x):
    time.sleep(0.002)
    return 2 * x


def mine(x):
    time.sleep(STEPS / 10_000)
    return 2 * x if STEPS > 1 else 3 * x


def test_mine_is_right_and_no_slower(warpladder):
    run = warpladder.compare_functions(reference, mine, args=(np.ones(1000),), seconds=0.5)
    assert run.table()["status"].tolist() == ["ok", "ok"]
"""


def _ran(pytester: pytest.Pytester, steps: int, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_mine=PROJECT.replace("STEPS", str(steps)))
    return pytester.runpytest_subprocess("-p", "warpladder.pytest_plugin", "-p", "no:cacheprovider", *options)


@pytest.mark.slow
def test_a_right_function_passes_and_a_wrong_one_fails_with_its_cell(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_wrong=PROJECT.replace("STEPS", "1"))
    wrong = _ran(pytester, 10)
    wrong.assert_outcomes(passed=1, failed=1)
    assert re.search(r"not right: 1 of 2 cells, .*mine.*wrong_result", wrong.stdout.str())


@pytest.mark.thorough
def test_a_function_that_became_slower_fails_against_the_baseline_with_its_ratio(pytester: pytest.Pytester) -> None:
    _ran(pytester, 10, "--warpladder-runs", "before").assert_outcomes(passed=1)
    _ran(pytester, 10, "--warpladder-baseline", "before").assert_outcomes(passed=1)
    slower = _ran(pytester, 40, "--warpladder-baseline", "before")
    slower.assert_outcomes(failed=1)
    assert re.search(r"slower\s.*mine", slower.stdout.str())
    missing = _ran(pytester, 10, "--warpladder-baseline", "elsewhere")
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(
        ["*has no run of test_mine.py test_mine_is_right_and_no_slower; record one with --warpladder-runs*"]
    )


def judged(folder: Path, workloads: Sequence[str], **options: Any) -> list[str]:
    """The labels of the runs of a test that records each workload by a call of its own."""
    judge, labels = Judge("test_mine", folder, folder.parent / "before"), []

    def measure(workload: str, *, label: str, data_dir: Path) -> Run:
        labels.append(label)
        return warpladder.open_run(
            made_runs.write_host_run(data_dir, label.replace(" ", "-"), label=label, workloads=[workload])
        )

    for workload in workloads:
        judge._judged(measure, workload, **options)
    return labels


def test_each_call_in_a_test_is_compared_with_the_same_call_of_the_session_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "not_right", lambda run: "")  # the made runs have a cell that failed
    of_calls = {"test_mine": "conv2d", "test_mine 2": "tensor_transpose", "by the user": "conv2d"}
    for label, workload in of_calls.items():
        made_runs.write_host_run(tmp_path / "before", label.replace(" ", "-"), label=label, workloads=[workload])
    assert judged(tmp_path / "now", ["conv2d", "tensor_transpose"]) == ["test_mine", "test_mine 2"]
    assert judged(tmp_path / "named", ["conv2d"], label="by the user") == ["by the user"]
    with pytest.raises(
        pytest.fail.Exception, match=r"have no cell in common.*; record the baseline again with --warpladder-runs"
    ):
        judged(tmp_path / "other", ["tensor_transpose"])
    made_runs.write(tmp_path / "before", "on-a-gpu", label="test_gpu", workloads=["conv2d"])
    with pytest.raises(pytest.fail.Exception, match="record both on one device; record the baseline again with"):
        judged(tmp_path / "gpu", ["conv2d"], label="test_gpu")
    with pytest.raises(pytest.fail.Exception, match="has no run of test_mine 3"):
        judged(tmp_path / "more", ["conv2d", "tensor_transpose", "conv2d"])


@pytest.mark.parametrize("given", ["fail_abov=0.05", "fail_above='5%'", "0.05", "fail_above=-1", ""])
def test_a_mark_that_is_not_valid_is_one_line(pytester: pytest.Pytester, given: str) -> None:
    pytester.makepyfile(
        test_marked=f"import pytest\n\n@pytest.mark.warpladder({given})\ndef test_mine(warpladder): pass\n\ndef test_other(warpladder): pass\n"
    )
    ran = pytester.runpytest("-p", "warpladder.pytest_plugin", "-p", "no:cacheprovider")
    ran.assert_outcomes(errors=1, passed=1)
    ran.stdout.fnmatch_lines(
        [f"@pytest.mark.warpladder({given.replace('[', '[[]')}): give fail_above as a fraction, such as fail_above=0.02"]
    )
    assert "Judge" not in ran.stdout.str()
