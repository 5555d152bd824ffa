"""What the machine lacks is said once, as the reason of the skip; and signals are as a shell gives them to what it waits for."""

import signal

import pytest
from hypothesis import settings

from collectors.choice import gpu_problem

# A machine that does other work too is no failure.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("gpu")]
    problem = gpu_problem() if marked else None
    if problem:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"needs an NVIDIA GPU: {problem}"))


def pytest_configure() -> None:
    """A shell has what it starts in the background ignore interrupts, and nohup hangups; the tests may run so, what they start may not."""
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)
