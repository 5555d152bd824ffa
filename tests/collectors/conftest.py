"""What tests of collectors need of their machine."""

import pytest

from warpladder.collectors.ranks.launchers import gpus_here


@pytest.fixture
def two_gpus() -> None:
    """Two GPUs, which ranks take one of each; else the test is skipped."""
    if gpus_here() < 2:
        pytest.skip(f"needs two GPUs, one for each of its two ranks; this machine has {gpus_here()}")
