"""Traces of ranks with streams that wait for each other: when everything happens follows from what waits for what."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_LAUNCH_US, _LATENCY_US, _GAP_US = 4.0, 3.0, 1.0
_BASE_NS = 1_711_964_646_000_000_000


class _Work(NamedTuple):
    """A kernel: its launch from `called`, and its `start` and `end`, as moments; `group` and `title` of a collective."""

    stream: int
    name: str
    called: int
    start: int
    end: int
    group: tuple[int, ...] = ()
    title: str = ""


class Ranks:
    """Ranks whose work is told in the order of their programs. A moment is the latest of others plus a time, in us."""

    def __init__(self, ranks: int) -> None:
        self._after: list[list[tuple[int, float]]] = []
        self._host = [self._moment() for _ in range(ranks)]
        self._tail: list[dict[int, int]] = [{} for _ in range(ranks)]
        self._awaited: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(ranks)]
        self._work: list[list[_Work]] = [[] for _ in range(ranks)]
        self._steps: list[list[list[int]]] = [[] for _ in range(ranks)]
        self._ends: dict[tuple[Any, ...], int] = {}
        self._count: Counter[tuple[Any, ...]] = Counter()

    def _moment(self, *after: tuple[int, float]) -> int:
        self._after.append(list(after))
        return len(self._after) - 1

    def _launch(self, rank: int, stream: int) -> tuple[int, int]:
        called = self._host[rank]
        self._host[rank] = self._moment((called, _LAUNCH_US))
        before = [*self._awaited[rank].pop(stream, []), *([self._tail[rank][stream]] if stream in self._tail[rank] else [])]
        return called, self._moment((called, _LATENCY_US), *((each, _GAP_US) for each in before))

    def kernel(self, rank: int, stream: int, name: str, lasts_us: float) -> None:
        called, start = self._launch(rank, stream)
        end = self._tail[rank][stream] = self._moment((start, lasts_us))
        self._work[rank].append(_Work(stream, name, called, start, end))

    def collective(self, rank: int, stream: int, group: list[int], lasts_us: float, title: str, after: int) -> None:
        """An all-reduce that begins after what the stream `after` has to do, and ends on all ranks at once."""
        self.wait(rank, stream, after)
        called, start = self._launch(rank, stream)
        key = (tuple(group), title, self._count[rank, title])
        self._count[rank, title] += 1
        end = self._tail[rank][stream] = self._ends.setdefault(key, self._moment() if key not in self._ends else 0)
        self._after[end].append((start, lasts_us))
        self._work[rank].append(_Work(stream, _REDUCE, called, start, end, tuple(group), title))

    def wait(self, rank: int, stream: int, other: int) -> None:
        """The next work of a stream begins after what another one has to do."""
        self._awaited[rank][stream].append(self._tail[rank][other])

    def begin(self, rank: int, step: int) -> None:
        self._steps[rank].append([step, self._host[rank]])

    def end(self, rank: int) -> None:
        """The host waits for the device."""
        self._host[rank] = self._moment((self._host[rank], 2.0), *((each, 2.0) for each in self._tail[rank].values()))
        self._steps[rank][-1].append(self._host[rank])

    def _times(self) -> list[float]:
        """When each moment is, in us."""
        followers: list[list[int]] = [[] for _ in self._after]
        for moment, after in enumerate(self._after):
            for cause, _ in after:
                followers[cause].append(moment)
        missing, times = [len(after) for after in self._after], [0.0] * len(self._after)
        ready = [moment for moment, count in enumerate(missing) if not count]
        for moment in ready:  # which grows
            times[moment] = max((times[cause] + delay for cause, delay in self._after[moment]), default=0.0)
            for follower in followers[moment]:
                missing[follower] -= 1
                if not missing[follower]:
                    ready.append(follower)
        return times

    def step_us(self) -> float:
        """The mean time from the end of a step's device work to that of the next."""
        times, ends = self._times(), Counter[int]()
        for steps, works in zip(self._steps, self._work, strict=True):
            for number, begin, end in steps:
                own = [times[each.end] for each in works if times[begin] <= times[each.called] < times[end]]
                ends[number] = max(ends[number], max(own))  # type: ignore[assignment]
        return (ends[max(ends)] - ends[0]) / max(ends)

    def write(self, folder: Path) -> Path:
        """Write `rank-N.json` for each rank. Returns the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        times = self._times()
        for rank in range(len(self._host)):
            document = {
                "schemaVersion": 1,
                "deviceProperties": [{"id": rank, "name": "NVIDIA H100", "computeMajor": 9, "computeMinor": 0, "numSms": 132}],
                "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": len(self._host)},
                "baseTimeNanoseconds": _BASE_NS,
                "traceEvents": self._events(rank, times),
            }
            (folder / f"rank-{rank}.json").write_text(json.dumps(document))
        return folder

    def _events(self, rank: int, times: list[float]) -> list[dict[str, Any]]:
        def event(category: str, name: str, begin: float, end: float, thread: int = 1, **arguments: Any) -> dict[str, Any]:
            span = {"ts": round(1000 + begin, 3), "dur": round(end - begin, 3)}
            process = rank if category == "kernel" else 1000 + rank
            return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, **span, "args": arguments}

        found = [
            event("user_annotation", f"ProfilerStep#{step}", times[begin], times[end]) for step, begin, end in self._steps[rank]
        ]
        for number, each in enumerate(self._work[rank]):
            called = times[each.called]
            of_collective = {
                "Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "BFloat16",
                "Group size": len(each.group), "Process Group Name": f"{each.title} {each.group}",
                "Process Group Description": each.title, "Process Group Ranks": str(list(each.group)),
            }  # fmt: skip
            arguments = {"device": rank, "stream": each.stream, **(of_collective if each.group else {})}
            found += [
                event("cuda_runtime", "cudaLaunchKernel", called, called + _LAUNCH_US - 1, correlation=number),
                event("kernel", each.name, times[each.start], times[each.end], each.stream, correlation=number, **arguments),
            ]
        return found
