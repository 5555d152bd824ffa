"""Inputs that each rank's host brings a piece of: what is copied where, and when a bench does so."""

import ctypes
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tests.collectors.cuda.fake_cuda import FakeCommunicator, install, install_events
from warpladder.collectors.core.bench import OneProcess
from warpladder.workloads import registry
from warpladder.workloads.api import Overlapped
from warpladder.workloads.gan_tconv.problem import make_case
from warpladder.workloads.gan_tconv.rungs import parts_of

GAN = registry.load("gan_tconv")
LARGE = ("w0", "w1", "w2")
GATHERED = replace(GAN.variant("v09_graph"), end_to_end=Overlapped(parts_of(512), gathered=LARGE))  # type: ignore[call-arg]
SMALL = make_case({"images": 300, "channels": 64})


@pytest.fixture
def log() -> list[object]:
    return []


def on_the_device(array: np.ndarray) -> SimpleNamespace:
    return SimpleNamespace(data=SimpleNamespace(ptr=array.ctypes.data))


def rank_of(size: int, rank: int) -> SimpleNamespace:
    return SimpleNamespace(size=size, rank=rank, broadcast=lambda value: value)


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("count", [1, 191, 192, 1000])
def test_every_rank_has_all_of_it_though_each_host_brought_a_piece(
    monkeypatch: pytest.MonkeyPatch, log: list[tuple[int, ...]], ranks: int, count: int
) -> None:
    cuda_nccl = install(monkeypatch, log, "allreduce")  # type: ignore[arg-type]
    copied: list[int] = []

    def memcpy(to: int, source: int, nbytes: int, kind: object, stream: int) -> None:
        ctypes.memmove(to, source, nbytes)
        copied.append(nbytes)

    cuda_nccl.runtime.memcpyAsync = memcpy
    source = np.arange(1, count + 1, dtype=np.float32)
    devices = [np.zeros_like(source) for _ in range(ranks)]
    gathered = [cuda_nccl.Gathered(on_the_device(device), source, rank_of(ranks, rank)) for rank, device in enumerate(devices)]
    for one in gathered:
        one.copy(SimpleNamespace(ptr=99))
    log.clear()
    for one in gathered:
        one.gather(SimpleNamespace(ptr=99))
    for _, to, nbytes, kind, _ in log:  # as NCCL does: the piece of rank r comes to lie in place r
        assert kind == 0  # bytes
        for rank, (piece, *_) in enumerate(log):
            ctypes.memmove(to + rank * nbytes, piece, nbytes)
    for device in devices:
        np.testing.assert_array_equal(device, source)
    assert sum(copied) <= source.nbytes + (ranks - 1) * ranks * 256  # what does not divide evenly, each rank brings
    assert len(log) in {0, ranks}  # all call NCCL, or none


def pieces(cuda_events: ModuleType, log: list[object], communicator: object) -> list[int]:
    """Bytes that ranks gather while the variant is prepared."""
    bench = cuda_events.CudaBench(GAN, SMALL, GAN.make_inputs(SMALL, np.random.default_rng(0)))
    bench.join(communicator)
    bench.prepare(GATHERED, {"tile": 128})
    return [call[2] for call in log if isinstance(call, tuple) and len(call) == 5]


def test_ranks_bring_half_of_the_large_weights_each(monkeypatch: pytest.MonkeyPatch, log: list[object]) -> None:
    """Once outside of the graph, as NCCL joins the GPUs at its first call, and once captured."""
    inputs, _ = GAN.buffers(SMALL)
    halves = [inputs[name].nbytes // 2 for name in LARGE]
    assert pieces(install_events(monkeypatch, log), log, FakeCommunicator(log)) == 2 * halves


def test_one_process_brings_all(monkeypatch: pytest.MonkeyPatch, log: list[object]) -> None:
    assert pieces(install_events(monkeypatch, log), log, OneProcess()) == []
