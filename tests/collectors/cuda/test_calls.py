"""Calls into GPU libraries that cannot be made ready."""

from typing import Any

import pytest

from tests.collectors.cuda.fake_cuda import install_events
from tests.collectors.cuda.test_copied_inputs import bench_of
from warpladder.collectors.core.bench import Unavailable
from warpladder.workloads import registry
from warpladder.workloads.api import LibraryVariant


def test_a_library_that_is_installed_but_cannot_be_imported_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an extension module that was built for another driver."""

    def prepare(*arguments: Any) -> Any:
        raise ImportError("_driver.so: undefined symbol: cuArrayCreate_v2")

    bench = bench_of(install_events(monkeypatch, []), registry.load("gan_tconv").case("images=3"))
    with pytest.raises(Unavailable, match=r"installed but cannot be imported: _driver\.so: undefined symbol: cuArrayCreate_v2"):
        bench.prepare(LibraryVariant("broken", "Broken", "peer", prepare=prepare), {})
