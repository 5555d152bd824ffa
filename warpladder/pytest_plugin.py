"""The plugin of pytest: the fixture `warpladder`, whose verdict is the assertion. It fails closed: a cell without a verdict fails too. Nothing slow is imported before a test asks for it."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

if TYPE_CHECKING:
    from warpladder.comparing import Comparison
    from warpladder.dashboard.run.run import Run

_MARK: Final = "warpladder"
_R = TypeVar("_R", bound="Run")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("warpladder", "measured functions")
    group.addoption(
        "--warpladder-runs", metavar="FOLDER", help="keep the runs of the tests here, as a baseline for later sessions"
    )
    group.addoption(
        "--warpladder-baseline",
        metavar="FOLDER",
        help="fail where a test's run is slower, wrong or lost against its run in this folder",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{_MARK}(fail_above=0.02): a slowdown against the baseline fails only above this fraction"
    )


@pytest.fixture
def warpladder(request: pytest.FixtureRequest, tmp_path: Path) -> "Judge":
    """Records benchmarks and compares functions. A call fails the test where a result is wrong, or slower than in the session that
    `--warpladder-baseline` names."""
    option = request.config.getoption
    folder, baseline = option("--warpladder-runs"), option("--warpladder-baseline")
    label = re.sub(r"[^\w.-]+", " ", request.node.nodeid).strip()
    return Judge(
        label,
        Path(folder).resolve() if folder else tmp_path / "runs",
        Path(baseline).resolve() if baseline else None,
        _fail_above(request.node.get_closest_marker(_MARK)),
    )


def _fail_above(mark: pytest.Mark | None) -> float:
    """The slowdown above which a test fails, as its mark has it; 0 without a mark."""
    if mark is None:
        return 0.0
    fraction = mark.kwargs.get("fail_above")
    if mark.args or len(mark.kwargs) != 1 or not (isinstance(fraction, int | float) and 0 <= fraction < math.inf):
        given = ", ".join([*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())])
        pytest.fail(f"@pytest.mark.{_MARK}({given}): give fail_above as a fraction, such as fail_above=0.02", pytrace=False)
    return fraction


class Judge:
    """Measure in a test and judge the result: the fixture `warpladder`.

    Args:
        label: of the first run, which names the test; further runs of the test have their number after it.
        data_dir: folder for the runs.
        baseline: folder with the runs of an earlier session; None to verify only.
        fail_above: a slowdown fails only above this fraction.
    """

    def __init__(self, label: str, data_dir: Path, baseline: Path | None, fail_above: float = 0.0) -> None:
        self._label, self._data_dir, self._baseline, self._fail_above = label, data_dir, baseline, fail_above
        self._calls = 0

    def record(self, *declared: Any, **options: Any) -> "Run":
        """Record benchmarks as `warpladder.record` does, and judge the run."""
        from warpladder.api import record

        return self._judged(record, *declared, **options)

    def compare_functions(self, *functions: Callable[..., Any], **options: Any) -> "Comparison":
        """Compare functions as `warpladder.compare_functions` does, and judge the run."""
        from warpladder.comparing import compare_functions

        return self._judged(compare_functions, *functions, **options)

    def _judged(self, measure: Callable[..., _R], *measured: Any, **options: Any) -> _R:
        from warpladder.dashboard.text import summary

        self._data_dir.mkdir(parents=True, exist_ok=True)
        self._calls += 1
        label = options.get("label") or (self._label if self._calls == 1 else f"{self._label} {self._calls}")
        run = measure(*measured, **{"data_dir": self._data_dir, **options, "label": label})
        if line := summary.not_right(run._run):
            pytest.fail(line, pytrace=False)
        if self._baseline:
            self._against_baseline(run, label)
        return run

    def _against_baseline(self, run: "Run", label: str) -> None:
        from warpladder.dashboard.compare import changes
        from warpladder.dashboard.compare.between_runs import Recordings
        from warpladder.dashboard.core import run_data
        from warpladder.dashboard.text import compare
        from warpladder.data import store

        assert self._baseline
        try:
            before = store.find_run(label, [self._baseline])
        except store.StoreError:
            pytest.fail(
                f"{self._baseline} has no run of {label}; record one with --warpladder-runs {self._baseline}",
                pytrace=False,
            )
        a, b = run_data.load(before), run_data.load(run._run)
        history = Recordings([self._baseline, self._data_dir], b.info)
        try:
            comparison = changes.compare(changes.Side(a), changes.Side(b), changes.Options(), history)
        except changes.NotComparable as error:
            why = str(error).replace(", or add --any-device", "")  # which is no option of pytest
            pytest.fail(f"{why}; record the baseline again with --warpladder-runs {self._baseline}", pytrace=False)
        gate = compare.Gate(self._fail_above)
        if gate.failures(comparison) or gate.other_questions(comparison) or gate.unseen(comparison):
            pytest.fail(compare.render(comparison, a, b, gate, "table"), pytrace=False)
