"""Writes small traces of the ranks of a training job as PyTorch's profiler does, with known waits, offsets and causes."""

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

BASE_NS = 1_711_964_646_000_000_000
_GEMM = "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16>(Params)"
_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@dataclass(frozen=True)
class Job:
    """A job in which each iteration has a few products, each followed by an all-reduce of all ranks, and an all-gather of half of them.

    Attributes:
        ranks: number of ranks.
        iterations: of each trace.
        slow: rank -> factor of the time of its products.
        offset_us: rank -> how far its clock is ahead.
        products: of an iteration.
        seed: of the jitter of the products.
        product_us: time of a product of a rank that is not slow.
        ahead: the host launches all of an iteration when it begins, and waits for its end; else it launches each kernel just before it
            starts.
    """

    ranks: int = 4
    iterations: int = 3
    slow: dict[int, float] = field(default_factory=dict)
    offset_us: dict[int, float] = field(default_factory=dict)
    products: int = 4
    seed: int = 1
    product_us: float = 200.0
    ahead: bool = False

    def write(self, folder: Path, *, zipped: bool = True) -> np.ndarray:
        """Write `rank-N.json.gz` for each rank. Returns the time in us that each rank waits in collectives."""
        rng = np.random.default_rng(self.seed)
        folder.mkdir(parents=True, exist_ok=True)
        factor = np.array([self.slow.get(rank, 1.0) for rank in range(self.ranks)])
        events: list[list[dict[str, Any]]] = [[] for _ in range(self.ranks)]
        now, waited = np.full(self.ranks, 1000.0), np.zeros(self.ranks)
        halves = [list(range(self.ranks // 2)), list(range(self.ranks // 2, self.ranks))]
        correlation = 1
        for iteration in range(self.iterations):
            began = now.copy()
            for product in range(self.products):
                lasts = self.product_us * factor * (1 + 0.02 * rng.random(self.ranks))
                groups = halves if product == self.products - 1 else [list(range(self.ranks))]
                arrival = now + lasts
                finish = np.zeros(self.ranks)
                for members in groups:
                    finish[members] = arrival[members].max() + 50 + 0.1 * rng.random(len(members))
                    waited[members] += arrival[members].max() - arrival[members]
                for rank in range(self.ranks):
                    group = next(members for members in groups if rank in members)
                    name, kind, number = (_GATHER, "_allgather_base", "1") if groups is halves else (_REDUCE, "allreduce", "0")
                    of_group = {
                        "Collective name": kind,
                        "In msg nelems": 1 << 20,
                        "Out msg nelems": (1 << 20) * (len(group) if groups is halves else 1),
                        "Group size": len(group),
                        "dtype": "Float",
                        "Process Group Name": number,
                        "Process Group Ranks": str(group),
                    }
                    called = began[rank] + 20 * (product - 1) if self.ahead else now[rank]
                    events[rank] += self._operator(rank, called, correlation, _GEMM, "aten::mm", now[rank], lasts[rank], {})
                    events[rank] += self._operator(
                        rank,
                        called + (10 if self.ahead else 20),
                        correlation + 1,
                        name,
                        f"c10d::{kind}",
                        arrival[rank],
                        finish[rank] - arrival[rank],
                        of_group,
                    )
                correlation += 2
                now = finish
            for rank in range(self.ranks if self.ahead else 0):
                launched = began[rank] + 20 * self.products
                lasts_us = now[rank] + 10 - launched
                arguments = {"correlation": correlation}
                events[rank].append(self._event(rank, "cuda_runtime", "cudaDeviceSynchronize", launched, lasts_us, arguments))
            correlation += self.ahead
            for rank in range(self.ranks):
                events[rank].append(
                    self._event(
                        rank, "user_annotation", f"ProfilerStep#{iteration}", began[rank] - 30, now[rank] - began[rank], {}
                    )
                )
            now = now + 60
        for rank in range(self.ranks):
            document = {
                "schemaVersion": 1,
                "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "computeMajor": 9, "computeMinor": 0, "numSms": 132}],
                "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": self.ranks},
                "baseTimeNanoseconds": BASE_NS,
                "traceEvents": events[rank],
            }
            text = json.dumps(document).encode()
            path = folder / f"rank-{rank}.json{'.gz' if zipped else ''}"
            path.write_bytes(gzip.compress(text, 1) if zipped else text)
        return waited

    def _operator(
        self,
        rank: int,
        called: float,
        correlation: int,
        kernel: str,
        name: str,
        start: float,
        lasts: float,
        group: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """An operator, the call in it, and the kernel that it launches."""
        device = {
            "device": 0,
            "context": 1,
            "stream": 20 if group else 7,
            "correlation": correlation,
            "grid": [8, 1, 1],
            "block": [128, 1, 1],
        }
        return [
            self._event(rank, "cpu_op", name, called - 8, 7.5, {"External id": correlation}),
            self._event(rank, "cuda_runtime", "cudaLaunchKernel", called - 6, 4.0, {"correlation": correlation}),
            self._event(rank, "kernel", kernel, start, lasts, {**device, **group}),
        ]

    def _event(
        self, rank: int, category: str, name: str, start: float, lasts: float, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        shift = self.offset_us.get(rank, 0.0)
        return {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": 100,
            "tid": 100,
            "ts": round(start + shift, 3),
            "dur": round(lasts, 3),
            "args": arguments,
        }
