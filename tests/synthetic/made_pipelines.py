"""Writes the traces of a job that is split into pipeline stages, tensor groups and data replicas, as PyTorch's profiler does."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_GEMM = "void cutlass::Kernel2<gemm>(Params)"
_MESSAGE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
_SUM = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
BASE_NS = 1_711_964_646_000_000_000


@dataclass(frozen=True)
class Pipelines:
    """A job of pipelines that run all micro-batches forward, then backward. Rank = (stage * replicas + replica) * tensor + place in the tensor group. Times are us.

    Attributes:
        forward_us: compute of a micro-batch forward of each stage; backward takes twice as long.
        transfer_us: of a message or an all-reduce of a tensor group.
        weights_later: a stage sends the gradients of its inputs on before it computes those of its weights, half of its backward pass.
        late_host_us: rank -> how much later its host launches the first work of a step.
    """

    forward_us: tuple[float, ...] = (100.0, 100.0)
    micro_batches: int = 4
    tensor: int = 1
    replicas: int = 1
    steps: int = 3
    transfer_us: float = 10.0
    weights_later: bool = False
    late_host_us: tuple[tuple[int, float], ...] = ()

    @property
    def ranks(self) -> int:
        return len(self.forward_us) * self.replicas * self.tensor

    def write(self, folder: Path) -> Path:
        """Write `rank-N.json` for each rank."""
        folder.mkdir(parents=True, exist_ok=True)
        events: list[list[dict[str, Any]]] = [[] for _ in range(self.ranks)]
        now = [1000.0] * self.ranks
        for step in range(self.steps):
            begun, now = now, [time + 2.0 for time in now]
            for rank, later in self.late_host_us:
                now[rank] += later
            for replica in range(self.replicas):
                self._step(events, now, replica)
            for first in range(self.ranks if self.replicas > 1 else 0):
                place, stage = first % self.tensor, first // (self.tensor * self.replicas)
                if first // self.tensor % self.replicas == 0:
                    ranks = [(stage * self.replicas + replica) * self.tensor + place for replica in range(self.replicas)]
                    self._sum(events, now, ranks, "data_parallel")
            for rank in range(self.ranks):
                events[rank].append(
                    _event("user_annotation", f"ProfilerStep#{step}", begun[rank] + 0.1, now[rank] - begun[rank] - 0.2, {}, 1)
                )
        for rank, own in enumerate(events):
            trace = {
                "deviceProperties": [
                    {"id": each, "name": "NVIDIA H100", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
                    for each in range(self.ranks)
                ],
                "distributedInfo": {"rank": rank, "world_size": self.ranks, "backend": "nccl"},
                "baseTimeNanoseconds": BASE_NS,
                "traceEvents": own,
            }
            (folder / f"rank-{rank}.json").write_text(json.dumps(trace))
        return folder

    def _step(self, events: list[list[dict[str, Any]]], now: list[float], replica: int) -> None:
        """All micro-batches of a replica forward, then backward. A receive begins when its rank is free, and a send waits for its receive."""
        stages = [
            [(stage * self.replicas + replica) * self.tensor + place for place in range(self.tensor)]
            for stage in range(len(self.forward_us))
        ]
        sent: dict[tuple[int, int], float] = {}
        for backward in (False, True):
            order = list(range(len(stages)))[:: -1 if backward else 1]
            for micro in range(self.micro_batches):
                for place, stage in enumerate(order):
                    ranks = stages[stage]
                    for own, rank in enumerate(ranks):
                        if place:
                            source = stages[order[place - 1]][own]
                            end = max(now[rank], sent[source, micro]) + self.transfer_us
                            self._message(events[rank], rank, now[rank], end, "recv", source)
                            self._message(
                                events[source],
                                source,
                                sent[source, micro],
                                sent[source, micro] + self.transfer_us,
                                "send",
                                rank,
                            )
                            now[rank] = end
                        lasts = self.forward_us[stage] * (2 if backward and not self.weights_later else 1)
                        events[rank] += _launched(rank, 7, _GEMM, now[rank], lasts, {})
                        now[rank] += lasts
                    if self.tensor > 1:
                        self._sum(events, now, ranks, "tensor_parallel")
                    for rank in ranks if place + 1 < len(order) else ():
                        sent[rank, micro] = now[rank]
                        now[rank] += self.transfer_us
                    for rank in ranks if backward and self.weights_later else ():
                        events[rank] += _launched(rank, 7, _GEMM, now[rank], self.forward_us[stage], {})
                        now[rank] += self.forward_us[stage]
                if micro + 1 == self.micro_batches:
                    sent.clear()

    def _message(self, events: list[dict[str, Any]], rank: int, begin: float, end: float, kind: str, other: int) -> None:
        more = {"Collective name": kind, "Dst Rank" if kind == "send" else "Src Rank": other, "Process Group Name": "pp"}
        events += _launched(rank, 19, _MESSAGE, begin, end - begin, self._arguments(list(range(self.ranks))) | more)

    def _sum(self, events: list[list[dict[str, Any]]], now: list[float], ranks: list[int], title: str) -> None:
        """An all-reduce, which ends on all ranks together."""
        end = max(now[rank] for rank in ranks) + self.transfer_us
        for rank in ranks:
            more = {
                "Collective name": "allreduce",
                "Process Group Name": f"{title} {ranks[0]}",
                "Process Group Description": title,
            }
            events[rank] += _launched(rank, 20, _SUM, now[rank], end - now[rank], self._arguments(ranks) | more)
            now[rank] = end

    @staticmethod
    def _arguments(ranks: list[int]) -> dict[str, Any]:
        return {
            "In msg nelems": 1024,
            "Out msg nelems": 1024,
            "dtype": "BFloat16",
            "Group size": len(ranks),
            "Process Group Ranks": str(ranks),
        }


_NUMBER = iter(range(1, 1 << 40))


def _event(category: str, name: str, begin: float, lasts: float, arguments: dict[str, Any], thread: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": thread,
        "ts": round(begin, 3),
        "dur": round(lasts, 3),
        "args": arguments,
    }


def _launched(rank: int, stream: int, name: str, begin: float, lasts: float, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """A kernel, and its launch, a microsecond of the host before it starts."""
    number = next(_NUMBER)
    of_device = {"device": rank, "stream": stream, "correlation": number, "External id": number, **arguments}
    call = _event("cuda_runtime", "cudaLaunchKernel", begin - 0.8, 0.5, {"correlation": number}, 1)
    return [call, _event("kernel", name, begin, lasts, of_device, stream)]
