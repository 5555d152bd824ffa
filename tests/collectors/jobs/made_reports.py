"""Makes a report of Nsight Systems of a small job, in which several processes or several GPUs of one process communicate."""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.collectors.nsight_systems import reports
from tests.collectors.nsight_systems.reports import call, kernel, nvtx, write

GEMM, ALL_REDUCE, SEND_RECV, LAUNCH = 1, 2, 3, 4
NAMES = {
    GEMM: "gemm(float*)",
    ALL_REDUCE: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    SEND_RECV: "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    LAUNCH: "cudaLaunchKernel_v7000",
}
#: The layouts that NCCL 2.27 registers, as Nsight Systems 2026.2 exports them.
INIT, REDUCES, GATHERS, SENDS = 1 << 24 | 2, 1 << 24 | 7, 1 << 24 | 4, 1 << 24 | 10
_COMMUNICATOR, _SIZE = ("NCCL communicator ID", 18, None), ("Message size [bytes]", 22, 8)
LAYOUTS = {
    INIT: (24, [_COMMUNICATOR, ("No. of ranks", 5, 8), ("Rank", 5, 12), ("CUDA device", 5, 16)]),
    REDUCES: (24, [_COMMUNICATOR, _SIZE, ("Reduction operation", 1 << 24 | 16, 16)]),
    GATHERS: (16, [_COMMUNICATOR, _SIZE]),
    SENDS: (24, [_COMMUNICATOR, _SIZE, ("Peer rank", 5, 16)]),
}
COMMUNICATOR = 0xF123_4567_89AB_CDEF
_US = 1000


def blob(schema: int, payload: bytes, domain: int = 1) -> bytes:
    return struct.pack("<4Q", domain, schema, len(payload), 32) + payload


def init(rank: int, ranks: int, device: int, communicator: int = COMMUNICATOR) -> bytes:
    return blob(INIT, struct.pack("<Q4i", communicator, ranks, rank, device, 0))


def message(schema: int, size: int, communicator: int = COMMUNICATOR) -> bytes:
    rest = b"" if schema == GATHERS else struct.pack("<2i", 1, 0)
    return blob(schema, struct.pack("<2Q", communicator, size) + rest)


@dataclass
class JobReport:
    """Ranks with `steps` iterations of a product of 100 us and an allreduce. `slow` multiplies the products of a rank.

    Attributes:
        places: process and GPU of each rank.
        numbers: NCCL's rank of each, if the ranges have payloads.
    """

    places: list[tuple[int, int]]
    steps: int = 4
    slow: dict[int, float] = field(default_factory=dict)
    numbers: list[int] | None = None
    grouped: bool = False
    first_process: int = 70

    def tables(self) -> reports.Tables:
        ranges: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        kernels: list[dict[str, Any]] = []
        if self.numbers:
            ranges += [
                nvtx("ncclCommInitRank", place, place + 1, tid=self._thread(place), domainId=1,
                     binaryData=init(number, len(self.places), self.places[place][1]))
                for place, number in enumerate(self.numbers)
            ]  # fmt: skip
        for process in {process for process, _ in self.places}:
            pid = process << 24 | 1 << 48
            ranges.append(nvtx("NCCL", 0, None, 75, pid, domainId=1))
            ranges += [
                nvtx(f"step {step}", self._begin(step), self._begin(step + 1), tid=pid | 1) for step in range(self.steps)
            ]
        for step in range(self.steps):
            ready = [
                self._begin(step) + 20 * _US + round(100 * _US * self.slow.get(place, 1)) for place in range(len(self.places))
            ]
            for place, (process, device) in enumerate(self.places):
                pid, begin = process << 24 | 1 << 48, self._begin(step) + place
                product, reduction = (1 + 2 * (step * len(self.places) + place) + more for more in (0, 1))
                where = {"pid": pid, "deviceId": device, "contextId": device + 1}
                tid = self._thread(place)
                ranges += self._of_call(begin + 1000, tid, 4096)
                calls += [
                    call(product, begin + 100, begin + 200, LAUNCH, tid),
                    call(reduction, begin + 1500, begin + 1600, LAUNCH, tid),
                ]
                kernels += [
                    kernel(product, self._begin(step) + 20 * _US, ready[place], **where, streamId=7 + place, demangledName=GEMM),
                    kernel(reduction, ready[place] + _US, max(ready) + 30 * _US, **where, streamId=20 + place, demangledName=ALL_REDUCE),
                ]  # fmt: skip
        tables: reports.Tables = {
            "StringIds": [{"id": number, "value": text} for number, text in NAMES.items()],
            "NVTX_EVENTS": ranges,
            "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
            "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
            "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_750_000_000_000_000_000, "utcTime": ""}],
        }
        return {**tables, **layouts()} if self.numbers else tables

    def write(self, path: Path) -> Path:
        return write(path, self.tables())

    def _thread(self, place: int) -> int:
        return self.places[place][0] << 24 | 1 << 48 | (10 + place)

    def _begin(self, step: int) -> int:
        return 1_000_000 + step * 500 * _US

    def _of_call(self, begin: int, tid: int, size: int) -> list[dict[str, Any]]:
        payload = message(REDUCES, size) if self.numbers else None
        if not self.grouped:
            return [nvtx("ncclAllReduce", begin, begin + 900, tid=tid, domainId=1, binaryData=payload)]
        opened = [nvtx("ncclGroupStart", begin, begin + 10, tid=tid, domainId=1)]
        calls = [nvtx("ncclAllReduce", begin + at, begin + at + 10, tid=tid, domainId=1, binaryData=payload) for at in (20, 40)]
        return [*opened, *calls, nvtx("ncclGroupEnd", begin + 100, begin + 900, tid=tid, domainId=1)]


def layouts() -> reports.Tables:
    return {
        "NVTX_PAYLOAD_SCHEMAS": [
            {"domainId": 1, "schemaId": schema, "name": None, "payloadSize": size} for schema, (size, _) in LAYOUTS.items()
        ],
        "NVTX_PAYLOAD_SCHEMA_ENTRIES": [
            {"domainId": 1, "schemaId": schema, "idx": place, "type": kind, "name": name, "offset": offset}
            for schema, (_, fields) in LAYOUTS.items()
            for place, (name, kind, offset) in enumerate(fields)
        ],
    }
