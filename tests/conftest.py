"""What the machine lacks is said once, as the reason of the skip; and signals are as a shell gives them to what it waits for."""

import functools
import gc
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from streamlit import config
from streamlit.components.v2 import manifest_scanner

from warpladder import recording
from warpladder.collectors.choice import gpu_problem
from warpladder.collectors.core import kernel_cache, plan
from warpladder.collectors.host.ceilings import SMALL_VARIABLE
from warpladder.dashboard import server  # noqa: F401 - it sets an option of pandas
from warpladder.workloads.declare import locate

_MAIN = sys.modules["__main__"]
count_frozen = gc.get_freeze_count
_own_modules = locate.own_modules
#: The name of the module whose test runs.
_running: list[str] = []
#: What users get, before `pytest_configure` changes it.
_PROCESSES = plan.PROCESSES
# A machine that does other work too is no failure.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


#: Groups of tests that one worker runs, the longest first. They start before all other tests, so that no worker waits for one at the end.
FIRST = (
    "browser",
    "specimens",
    "record",
    "tests/emulator/test_hopper.py",
    "tests/workloads/test_cnn_conv.py",
    "trees",
    "server",
    "tests/collectors/programs/test_runner.py",
    "numba",
    "tests/dashboard/test_app.py",
    "walk",
    "signals",
    "tests/test_comparing.py",
    "tests/recomputed/test_runs.py",
)


def _start(item: pytest.Item) -> int:
    (name,) = item.get_closest_marker("xdist_group").args  # type: ignore[union-attr]
    return FIRST.index(name) if name in FIRST else len(FIRST)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups there too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs a file: what its tests share is then made once, and not by each worker."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=_start)
    _sample(items)
    marked = [item for item in items if item.get_closest_marker("gpu")]
    problem = gpu_problem() if marked else None
    if problem:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"needs an NVIDIA GPU: {problem}"))


def _sample(items: list[pytest.Item]) -> None:
    """Mark as thorough what a test with the mark `sampled` leaves out: it keeps so many of its parameters, spread evenly over those that
    are not thorough already."""
    tests: dict[tuple[object, ...], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("thorough"):
            tests.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    for params in tests.values():
        (most,) = params[0].get_closest_marker("sampled").args  # type: ignore[union-attr]
        kept = {number * (len(params) - 1) // max(most - 1, 1) for number in range(most)}
        for number, item in enumerate(params):
            if number not in kept:
                item.add_marker("thorough")


def pytest_configure() -> None:
    """A shell has what it starts in the background ignore interrupts, and nohup hangups; the tests may run so, what they start may not.

    What the tests record has small ceilings: those of a processor take two seconds of it at each recording. One process takes the rounds,
    where a test does not ask for more: each process starts and verifies by itself. Time that few cases leave of a budget is not spent.
    What Numba compiles in this process and in recordings, it finds in one cache. Streamlit looks for components in all installed
    packages whenever a test opens a page, which takes longer than most pages: here it looks once. Nor does it collect garbage after each
    page, among all that the tests keep. Hypothesis would read the constants of all our files, for few tests that need none of them.
    Nor is garbage collected before all tests are there, since nearly all that is made until then stays.
    """
    gc.disable()
    providers.is_local_module_file = lambda file: False
    manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)
    config.set_option("runner.postScriptGC", False)
    kernel_cache.share_with_libraries()
    os.environ[SMALL_VARIABLE] = "1"
    plan.PROCESSES = 1  # type: ignore[misc]
    recording.SHARE_OF_HOST = 0.0  # type: ignore[misc]
    locate.own_modules = _modules_of_users
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


def _modules_of_users() -> Iterator[tuple[str, dict[str, Any]]]:
    """`locate.own_modules` without those of tests, but for the test that runs."""
    for file, namespace in _own_modules():
        if not namespace["__name__"].startswith("tests.") or namespace["__name__"] in _running:
            yield file, namespace


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end, so that no collection of garbage needs to look at their hundreds of thousands of objects.

    Nor does a measurement count them, which takes 0.1 s.
    """
    gc.collect()
    gc.freeze()
    gc.get_freeze_count = lambda: 1
    gc.set_threshold(10_000)
    gc.enable()


@pytest.fixture(autouse=True)
def _own_main(request: pytest.FixtureRequest) -> Iterator[None]:
    """Streamlit's tests leave a page as `__main__`, which spawned processes would run.

    And the search for the names of a user's object looks at no module of other tests, of which a user has none, and each worker 500.
    """
    _running[:] = [request.module.__name__]
    yield
    sys.modules["__main__"] = _MAIN


@pytest.fixture
def usual_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many processes take the rounds as for users."""
    monkeypatch.setattr(plan, "PROCESSES", _PROCESSES)
