"""What the machine lacks is said once, as the reason of the skip; and signals are as a shell gives them to what it waits for."""

import os
import signal

import pytest
from hypothesis import settings

from warpladder.collectors.choice import gpu_problem
from warpladder.collectors.core import plan
from warpladder.collectors.host.ceilings import SMALL_VARIABLE

#: What users get, before `pytest_configure` changes it.
_PROCESSES = plan.PROCESSES
# A machine that does other work too is no failure.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


#: Files whose tests take more than three seconds of a processor in all. `make test-fast` leaves them out.
SLOW = {
    "test_agreement",
    "test_app",
    "test_attribution_pages",
    "test_cells",
    "test_charts",
    "test_cheating",
    "test_cli",
    "test_cnn_conv",
    "test_compare",
    "test_compile_ahead",
    "test_counters",
    "test_counts",
    "test_damaged_runs",
    "test_deep_traces",
    "test_derived_schemas",
    "test_docs_own_kernel",
    "test_emulation",
    "test_examples",
    "test_export",
    "test_fuzz",
    "test_gan_tconv",
    "test_host",
    "test_hostile_links",
    "test_kernels",
    "test_large",
    "test_mlp_training",
    "test_train",
    "test_neighbours",
    "test_notebooks",
    "test_nsys_stats",
    "test_picked",
    "test_picker_page",
    "test_precision",
    "test_queries_overview",
    "test_queries_extras",
    "test_ranks",
    "test_record",
    "test_refusals",
    "test_roofline",
    "test_run",
    "test_runs",
    "test_salvage",
    "test_scaling_page",
    "test_server",
    "test_session",
    "test_signals",
    "test_trace_pages",
    "test_threads",
    "test_training",
    "test_trends",
    "test_under_tool",
    "test_watching",
    "test_what_is_told",
}


#: Groups of tests that one worker runs, the longest first. They start before all other tests, so that no worker waits for one at the end.
FIRST = ("browser", "specimens", "numba", "app", "walk", "signals")


def _start(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    if group is None:
        return len(FIRST) + 1
    name = group.args[0] if group.args else group.kwargs["name"]
    return FIRST.index(name) if name in FIRST else len(FIRST)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_start)
    for item in items:
        if item.path.stem in SLOW:
            item.add_marker("slow")
    marked = [item for item in items if item.get_closest_marker("gpu")]
    problem = gpu_problem() if marked else None
    if problem:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"needs an NVIDIA GPU: {problem}"))


def pytest_configure() -> None:
    """A shell has what it starts in the background ignore interrupts, and nohup hangups; the tests may run so, what they start may not.

    What the tests record has small ceilings: those of a processor take two seconds of it at each recording. And one process takes the
    rounds, where a test does not ask for more: each process starts and verifies by itself.
    """
    os.environ[SMALL_VARIABLE] = "1"
    plan.PROCESSES = 1  # type: ignore[misc]


@pytest.fixture
def usual_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many processes take the rounds as for users."""
    monkeypatch.setattr(plan, "PROCESSES", _PROCESSES)
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)
