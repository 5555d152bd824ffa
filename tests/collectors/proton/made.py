"""A trace as Triton's profiler Proton writes it, of blocks that run for known times at a known clock."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

#: When the first block starts, in nanoseconds of the global timer.
FIRST_NS = 1_700_000_000_000_000_000
#: What Proton takes at the end of a block to write the records.
AFTERWARDS_NS = 320


class Block(NamedTuple):
    """A block: where and when it runs, in nanoseconds from the first, and the scopes of each warp: name, start and end in cycles."""

    number: int
    multiprocessor: int
    start_ns: int
    end_ns: int
    warps: Sequence[Sequence[tuple[str, int, int]]]


def trace(*launches: tuple[str, Sequence[Block]]) -> dict[str, Any]:
    """The trace of launches: a kernel with its blocks each."""
    events = [event for kernel, blocks in launches for event in _of_launch(kernel, blocks)]
    return {"displayTimeUnit": "ns", "traceEvents": events}


def _of_launch(kernel: str, blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    for block in sorted(blocks, key=lambda block: block.multiprocessor):
        args = {
            "Init Time (ns)": FIRST_NS + block.start_ns,
            "Post Final Time (ns)": FIRST_NS + block.end_ns + AFTERWARDS_NS,
            "Finalization Time (ns)": AFTERWARDS_NS,
            "Frequency (MHz)": 1000.0,
            "call_stack": ["ROOT", kernel],
        }
        first = min(start for scopes in block.warps for _, start, _ in scopes)
        for warp, scopes in enumerate(block.warps):
            for line, (scope, start, end) in enumerate(scopes):
                yield {
                    "args": args,
                    "cat": kernel,
                    "cname": "good",
                    "name": scope,
                    "ph": "X",
                    "pid": f"{kernel} Core{block.multiprocessor} CTA{block.number}",
                    "tid": f"warp {warp} (line {line})",
                    "ts": (start + block.start_ns - first) / 1000.0,
                    "dur": (end - start) / 1000.0,
                }
