"""The kinds of the events of a trace, from their categories, or from their lanes in a trace of XLA."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from warpladder.collectors.kineto.columns import Texts
from warpladder.collectors.kineto.events import Event
from warpladder.collectors.kineto.xla import Lanes
from warpladder.data.arrays import Int64s

LINKS: Final = "links"
#: Events of the allocator, which have no duration.
MEMORY: Final = "memory"
#: Categories of events, in lower case, and what they are. Older profilers write `Kernel`, `Memcpy` and `Memset`.
_KINDS: Final = {
    "kernel": "kernels",
    **dict.fromkeys(("gpu_memcpy", "memcpy"), "copies"),
    **dict.fromkeys(("gpu_memset", "memset"), "sets"),
    "user_annotation": "ranges",
    **dict.fromkeys(("cpu_op", "operator"), "operations"),
    "python_function": "functions",
    "cuda_sync": "synchronizations",
    "fwdbwd": LINKS,
    "cpu_instant_event": MEMORY,
}
#: Categories of calls, in lower case: of CUDA, HIP, XPU, MTIA, MUSA and custom backends, and of older profilers.
_CALLS: Final = re.compile(r"(\w+_)?(runtime|driver)")
#: What older profilers write as an operator, and newer ones as a range.
_STEP: Final = "ProfilerStep#"
_WHOLE: Final = "X"
#: Categories of what a device did that do not tell work from waits.
_UNTOLD: Final = ("mtia_ccp_events", "hpu_op")
#: What wrote a trace that is none of a profiler of GPUs, by words of its categories.
_WRITERS: Final = {
    "a browser": ("toplevel", "devtools", "blink", "v8", "cc", "navigation", "renderer", "ipc"),
    "eBPF": ("bpf", "ebpf"),
    "Linux or Android": ("sched", "ftrace", "irq", "cpufreq"),
    "Bazel": ("build phase marker", "action processing"),
    "Node.js": ("node.perf", "node.async_hooks"),
}


class Chosen(NamedTuple):
    """Events of a kind, with their places in the file."""

    events: list[Event]
    place: Int64s


class Kinds:
    """Sorts the events of a trace, piece by piece.

    Attributes:
        lanes: those of a trace of XLA.
        functions: how many functions of Python such a trace has, which are left out.
        events: number of events.
        left_out: numbers of events by category that the device did and that are not used.
    """

    def __init__(self) -> None:
        self.lanes = Lanes()
        self.functions = 0
        self.events = 0
        self.left_out = Counter[str]()
        self._has_kinds = False
        self._others, self._phases = Counter[str](), Counter[str]()

    @property
    def is_xla(self) -> bool:
        """Whether the trace is one of XLA."""
        return not self._has_kinds and bool(self.lanes)

    def of(self, events: Sequence[Event]) -> dict[str, Chosen]:
        """The events that are used, by what they are."""
        if not self._has_kinds:
            self.lanes.add(events)
        if self.is_xla:
            rows_of, functions = self.lanes.rows_of(events)
            self.functions += functions
        else:
            rows_of = self._rows_of(events)
        begin = self.events
        self.events += len(events)
        return {
            kind: Chosen([events[row] for row in rows], np.array(rows, np.int64) + begin)
            for kind, rows in rows_of.items()
            if rows
        }

    def _rows_of(self, events: Sequence[Event]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        categories = Texts()
        code = categories.codes([event.cat for event in events])
        for number, category in enumerate(categories.of):
            rows, kind = np.flatnonzero(code == number).tolist(), _kind(category.lower())
            if kind:
                found[kind] += rows if kind in (LINKS, MEMORY) else [row for row in rows if events[row].ph == _WHOLE]
            elif category in _UNTOLD and len(rows):
                self.left_out[category] += len(rows)
            elif not self._has_kinds:
                self._others[category] += len(rows)
        if not self._has_kinds:
            self._phases.update(str(event.ph) for event in events)
        steps = [row for row in found["operations"] if str(events[row].name).startswith(_STEP)]
        if steps:
            found["operations"] = sorted(set(found["operations"]) - set(steps))
            found["ranges"] += steps
        self._has_kinds |= any(rows for kind, rows in found.items() if kind not in (LINKS, MEMORY))
        return found

    def problem(self) -> str:
        """Why the trace is none of a profiler of GPUs; empty if it is one."""
        if self._has_kinds or self.lanes:
            return ""
        if not self.events:
            return "has no events; profile again, with work between the start and the stop of the profiler"
        if self._phases["B"] + self._phases["E"] > self.events / 2:
            why = "it has begins and ends of events (`ph` B and E), and theirs are whole (X)"
            return f"is no trace of PyTorch's profiler or JAX: {why}; give a file that export_chrome_trace of PyTorch's profiler wrote"
        named = [name for name, _ in self._others.most_common() if name]
        writer = next((each for each, marks in _WRITERS.items() if any(_is_of(name, marks) for name in named)), "")
        listed = ", ".join(f"`{name[:40]}`" for name in named[:3])
        what = f"is a trace of {writer}, not" if writer else "is no trace"
        count = "its one event" if self.events == 1 else f"its {self.events:,} events"
        why = f"{count}: {listed}" if listed else f"{count} without a category"
        return f"{what} of a profiler of GPUs ({why}); give a trace of PyTorch's profiler (export_chrome_trace) or of JAX"


def _kind(category: str) -> str:
    """The kind of the events of a category; empty for one that is not used."""
    return _KINDS.get(category) or ("calls" if _CALLS.fullmatch(category) else "")


def _is_of(category: str, marks: Sequence[str]) -> bool:
    """Whether one of the marks is a word of a category."""
    return any(re.search(rf"(?<![a-z]){re.escape(mark)}(?![a-z])", category.lower()) for mark in marks)
