"""The bridge to PyTorch, on a PyTorch that only notes what it is asked for."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from warpladder.workloads import torch_bridge


@pytest.mark.parametrize("collects", [True, False])
def test_no_garbage_is_collected_while_a_graph_allocates_from_its_pool(collects: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # PyTorch ends the process if the pool of another graph is freed then.
    used: list[object] = []

    @contextmanager
    def use_mem_pool(pool: object) -> Iterator[None]:
        used.append(pool)
        yield

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(MemPool=object, use_mem_pool=use_mem_pool)))
    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        pool, allocating = torch_bridge.memory_of_a_graph()
        with pytest.raises(KeyError), allocating:
            assert used == [pool]
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()


def test_what_torch_compile_compiled_is_forgotten_where_it_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    torch_bridge.forget_compiled()
    resets: list[None] = []
    monkeypatch.setitem(sys.modules, "torch._dynamo", SimpleNamespace(reset=lambda: resets.append(None)))
    torch_bridge.forget_compiled()
    assert len(resets) == 1
