"""Memory that ranks write into each other's, on a CuPy that computes nothing."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.collectors.cuda.fake_cuda import CUDARuntimeError, FakeCommunicator, install
from warpladder.collectors.core.bench import ONE_PROCESS, Unavailable
from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.ranks.launchers import Launcher
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.workloads.api import Buffer, Launch, WorkloadError
from warpladder.workloads.declare.launches import PeerMemory

OWN = 1 << 32
EXCHANGE = Launch("exchange", (1, 1, 1), (32, 1, 1), ("x", PeerMemory("inbox"), "y"))
DECLARED = {"inbox": Buffer((2, 8), "uint32", zeroed=True), "y": Buffer((4,))}


class Together(FakeCommunicator):
    """Rank 1 of so many, whose handles name their ranks."""

    def __init__(self, ranks: int = 2, host: str = "") -> None:
        super().__init__([])
        self.size, self.host = ranks, host

    def of_all(self, value: Any) -> list[Any]:
        host, handle = value
        assert handle == b"own"
        return [(self.host or host, f"rank {rank}".encode()) for rank in range(self.size)]


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = install(monkeypatch, [], "peer_memory")
    runtime = module.runtime
    runtime.ipcGetMemHandle = lambda address: {OWN: b"own"}[address]
    runtime.ipcOpenMemHandle = lambda handle: {b"rank 0": 1000, b"rank 2": 2000}[handle]
    monkeypatch.setattr(module.cupy.cuda, "Memory", lambda nbytes: nbytes, raising=False)
    monkeypatch.setattr(
        module.cupy.cuda, "MemoryPointer", lambda memory, at: SimpleNamespace(ptr=OWN, nbytes=memory), raising=False
    )
    monkeypatch.setattr(
        module.cupy, "ndarray", lambda shape, dtype, memptr: SimpleNamespace(shape=shape, dtype=dtype, data=memptr)
    )
    return module


def test_a_single_process_has_its_scratch_and_no_others(peers: ModuleType) -> None:
    assert peers.shared([EXCHANGE], DECLARED, ONE_PROCESS) == {}
    structure = peers.argument(SimpleNamespace(data=SimpleNamespace(ptr=64)))
    assert (structure["of"].tolist(), structure["rank"], structure["ranks"]) == ([64, *[0] * 7], 0, 1)
    assert structure.nbytes == 72 and structure.shape == ()


def test_ranks_know_where_each_has_its_memory_which_is_as_large_for_each_sender(peers: ModuleType) -> None:
    made = peers.shared([EXCHANGE, EXCHANGE], DECLARED, Together(3))
    assert list(made) == ["inbox"]
    assert (made["inbox"].shape, made["inbox"].dtype, made["inbox"].data.nbytes) == ((3, 2, 8), "uint32", 2 << 20)
    structure = peers.argument(made["inbox"])
    assert (structure["of"].tolist(), structure["rank"], structure["ranks"]) == ([1000, OWN, 2000, *[0] * 5], 1, 3)
    peers.runtime.memset.assert_called_once_with(OWN, 0, 2 << 20)


def test_gpus_that_cannot_write_each_other_s_memory_are_told(peers: ModuleType) -> None:
    with pytest.raises(Unavailable, match="that of rank 0 is on another host"):
        peers.shared([EXCHANGE], DECLARED, Together(host="elsewhere"))
    with pytest.raises(Unavailable, match="at most 8 GPUs, and 9 share the case"):
        peers.shared([EXCHANGE], DECLARED, Together(9))

    def refuse(handle: bytes) -> int:
        raise CUDARuntimeError("no peer access")

    peers.runtime.ipcOpenMemHandle = refuse
    with pytest.raises(Unavailable, match="CUDA does not open that of rank 0: no peer access"):
        peers.shared([EXCHANGE], DECLARED, Together())


def test_memory_that_is_not_empty_at_first_is_refused(peers: ModuleType) -> None:
    with pytest.raises(WorkloadError, match="scratch inbox is written by all ranks; declare it zeroed"):
        peers.shared([EXCHANGE], {"inbox": Buffer((2, 8), "uint32")}, Together())


def test_a_launch_gives_its_kernel_the_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    launch, given = install(monkeypatch, [], "launch"), []
    inbox = SimpleNamespace(data=SimpleNamespace(ptr=64))
    bound = launch.bind(
        Launch("k", (1, 1, 1), (32, 1, 1), (PeerMemory("inbox"), np.int32(3))),
        lambda *all_of_it, **more: given.append(all_of_it[2]),
        {"inbox": inbox},
    )
    bound(None)
    assert given[0][0]["of"][0] == 64 and given[0][1] == 3


@pytest.mark.gpu
@pytest.mark.usefixtures("two_gpus")
def test_two_gpus_that_exchange_take_the_right_step_many_times(tmp_path: Path) -> None:
    wanted = Request(
        ["mlp_data_parallel_bf16"], cases=["batch=37", "batch=1600"], variants=["v01_nccl", "v02_peer_memory"], gpus=(1, 2)
    )
    limits = replace(LIMITS["quick"], seconds=0.2, budget_s=None)
    run_id, _ = Recorder(make_plan(wanted, limits), collector_of("cuda_events"), start_ranks=Launcher().start).record(
        tmp_path, "", []
    )
    run = store.open_run(tmp_path / run_id)
    failed = run.table("results").query("status != 'ok'")[["variant", "case", "status", "detail"]]
    assert failed.empty, "\n".join(map(str, failed.itertuples(index=False)))
    hot = run.table("samples").query("gpus == 2 and scope == 'device' and cache == 'hot' and case == 'batch=1600'")
    fastest = hot.groupby("variant")["duration_ns"].min()
    assert fastest["v02_peer_memory"] < fastest["v01_nccl"]
