"""The tables of a job: its ranks, their iterations, kernels and idle times, and the collectives that they share."""

from typing import Any, Final

import pyarrow as pa

from warpladder.data.columns import DEVICE, END, FAR, START, STREAM, Column, Table, identifier, integer, real, text, time, work

RANK_STATUSES: Final = ("ok", "broken", "missing")
#: What device work does. Communication is kernels with a `collective`, memory is copies and sets, a graph is a CUDA graph that was traced as a
#: whole, so that what it does is not known; compute is every other kernel.
WORK_KINDS: Final = ("compute", "communication", "memory", "graph")

_RANK = integer("rank", "number of the process in the job", bits=32, least=0)
_ITERATION = integer("iteration", "number of the step", nullable=True, least=0)


def _lasts(name: str, meaning: str, **more: Any) -> Column:
    return integer(name, meaning, "ns", least=0, most=FAR, **more)


#: Columns that break the time of a rank, a GPU or an iteration down. They count all device work, whenever it was launched.
BREAKDOWN: Final = (
    _lasts("span_ns", "from the start of the first device work to the end of the last; of several GPUs, times their number"),
    _lasts("busy_ns", "time of the span in which any device work ran; this and the following are sums over the GPUs"),
    _lasts("compute_ns", "time in which compute ran"),
    _lasts("communication_ns", "time in which communication ran"),
    _lasts("memory_ns", "time in which copies or sets ran"),
    _lasts("exposed_ns", "time in which communication ran, and neither compute nor such a graph"),
    _lasts(
        "host_wait_ns", "time of the span without device work, where the next work had not been launched when the last ended"
    ),
    _lasts("kernel_wait_ns", "the same, where it had been launched, and less than 30 us passed"),
    _lasts("other_idle_ns", "the rest of the span without device work"),
    _lasts(
        "graph_ns",
        "time in which CUDA graphs ran that were traced as a whole, and no compute. What ran in them is not known, so that compute, communication "
        "and exposed communication are those outside of them",
    ),
    *(
        _lasts(f"{name}_ns", f"the part of `{of}` {meaning}")
        for name, of, meaning in (
            ("long_wait", "host_wait_ns", "in waits of more than 100 us each"),
            ("untold", "other_idle_ns", "before work whose launch is not in the profile"),
            ("managed", "untold_ns", "before managed memory migrates to the host, as the host uses it"),
        )
    ),
)

COLLECTIVES = Table(
    "collectives",
    "Collectives of a trace or of the ranks of a job: one row a collective and rank, from the start of its first kernel to the end of its last. "
    "Where the ranks of a group could be matched, times are also on the job's clock: a rank arrives when its first kernel starts, and waits "
    "until the last rank arrives.",
    (
        _RANK,
        _ITERATION,
        text("collective", "what it does, e.g. `allreduce`; as the trace names it, or from the kernel's name"),
        text("kernel", "full name of the first kernel"),
        text("group", "name of the process group; `stream N` or `communication stream N` where the trace lacks it"),
        text("group_ranks", "ranks of the group as JSON; empty where the trace lacks them"),
        integer("group_size", "ranks of the group", bits=32, nullable=True, least=0),
        integer("number", "which collective of its group on this rank, from 0", bits=32, least=0),
        integer("sequence", "number that the process group gave it", nullable=True),
        integer("in_elements", "elements of the input", nullable=True, least=0),
        integer("out_elements", "elements of the output", nullable=True, least=0),
        text("element_type", "type of the elements; empty where the trace lacks it"),
        work("bytes", "the larger of input and output; 0 where the trace lacks the elements", "B"),
        integer("kernels", "kernels that it took", bits=32, least=1),
        integer("device", "CUDA device ordinal of the first kernel", bits=32, nullable=True),
        STREAM,
        START,
        END,
        identifier(
            "match", "the collective of the job that this one is a part of; null where it was not matched", nullable=True
        ),
        time("arrival_ns", "start on the job's clock; null where it was not matched", nullable=True),
        time("finish_ns", "end on the job's clock; likewise", nullable=True),
        _lasts("wait_ns", "from its arrival to the arrival of the last rank; likewise", nullable=True),
        integer(
            "transfer_ns",
            "from the arrival of the last rank to its own end; likewise",
            "ns",
            nullable=True,
            least=-FAR,
            most=FAR,
        ),
        text("group_title", "the program's own name for the group; null where the trace lacks it", nullable=True),
        text(
            "sends_to",
            "ranks that a message goes to, with commas between them; null for collectives",
            nullable=True,
        ),
        text("receives_from", "ranks that a message comes from; likewise", nullable=True),
        text(
            "in_splits",
            "rows that it sends to each rank of the group as JSON; null where the trace lacks them",
            nullable=True,
        ),
        text("out_splits", "rows that it receives from each; likewise", nullable=True),
        _lasts(
            "held_ns",
            "time up to its end in which no kernel computed on its GPU, so that the rank waited for it; null where it is of no iteration",
            nullable=True,
        ),
        time(
            "ready_ns",
            "when it could begin: its start, or if it queued behind the row before it on its stream, the later one of its launch and the end of the "
            "kernels that were launched before it and compute; likewise",
            nullable=True,
        ),
        *(
            _lasts(f"next_{name}", f"{meaning}; null where it is of no iteration", nullable=True)
            for name, meaning in (
                (
                    "ns",
                    "from when it is ready to when the next row of the rank in its iteration is, or to the end of the iteration",
                ),
                ("compute_ns", "time of that in which compute ran"),
                ("host_ns", "time of that without device work, where the next work had not been launched"),
                ("other_ns", "time of that with copies or whole graphs only, and of other idle time"),
                ("after_ns", "time of these three that is after its own end"),
            )
        ),
    ),
    spans=(("start_ns", "end_ns"),),
)


def peers_of(text: str) -> list[int]:
    """The ranks in `sends_to` or `receives_from`."""
    return [int(each) for each in text.split(",") if each.strip().lstrip("-").isdigit()]


RANKS = Table(
    "ranks",
    "One row a rank of a job. A rank that is broken or missing has the reason, and nothing else.",
    (
        _RANK,
        text("status", "whether its profile was imported", values=RANK_STATUSES),
        text("detail", "why it was not"),
        text("host", "machine that it ran on; empty where the profile lacks it"),
        text("device_name", "name of its GPU; likewise"),
        text("file", "name of its profile"),
        integer("bytes", "size of that file", "B", least=0),
        integer("events", "events in it", least=0),
        *BREAKDOWN,
        integer("launches", "kernels, copies and sets whose launch is in the profile", least=0),
        _lasts("launch_ns", "time of the calls that launched them"),
        _lasts("copy_calls_ns", "time of the host in calls that copy"),
        _lasts("waiting_calls_ns", "the same, and in calls that wait for a device"),
        _lasts("delay_ns", "time from the end of such a call to the start of its work, in sum"),
        integer("delayed", "launches with a delay of more than 100 us", least=0),
        integer("short_kernels", "kernels that are shorter than the call that launched them", least=0),
        integer("collectives", "collectives that were matched with those of other ranks", least=0),
        _lasts("wait_ns", "time that it waited in them for other ranks; null where none was matched", nullable=True),
        integer("last", "how often it came last", nullable=True, least=0),
        real(
            "offset_ns",
            "its clock less the job's at the middle of the job; null where clocks could not be aligned",
            "ns",
            nullable=True,
        ),
        time("offset_at_ns", "the middle of the job on the job's clock; likewise", nullable=True),
        real("drift_ppm", "how much faster its clock is; likewise", "ppm", nullable=True),
        real(
            "uncertainty_ns",
            "how far its aligned ends are from those of the other ranks, as a standard deviation; likewise",
            "ns",
            nullable=True,
        ),
        real(
            "wait_uncertainty_ns",
            "standard deviation of `wait_ns` where it is compared with the wait of another rank; likewise",
            "ns",
            nullable=True,
        ),
        integer(
            "lateness_ns",
            "how much longer other ranks wait than it in the collectives that they share, in sum over the ranks and groups where that is "
            "beyond the uncertainty; null where clocks could not be aligned",
            "ns",
            nullable=True,
            least=0,
            most=FAR,
        ),
        integer(
            "lateness_exposed_ns",
            "the part of it in which nothing else ran on the GPU of the rank that waits; likewise",
            "ns",
            nullable=True,
            least=0,
            most=FAR,
        ),
        real(
            "lateness_limit_ns",
            "how much longer the median of those ranks has to wait for it to be late; null without such ranks",
            "ns",
            nullable=True,
        ),
        Column("late", pa.bool_(), "the ranks that share collectives with it wait for it, beyond the uncertainty"),
        text(
            "cause", "why the other ranks wait for it: `compute`, `work`, `host`, `copies` or `clock`; empty where they do not"
        ),
    ),
    ("rank",),
)

ITERATIONS = Table(
    "iterations",
    "One row an iteration and rank. Device work belongs to the iteration in which it was launched. An iteration lasts on the devices until all "
    "work that was launched before its end has ended, and begins with its first work, but not before earlier work has ended. No two overlap.",
    (
        _RANK,
        integer("iteration", "number of the step; numbers that start again in the trace are counted on", least=0),
        START,
        END,
        time("device_start_ns", "when it begins on the devices, on the trace's clock; null without device work", nullable=True),
        time("device_end_ns", "when it ends there; likewise", nullable=True),
        *BREAKDOWN,
        integer("collectives", "collectives that were matched with those of other ranks", least=0),
        _lasts("wait_ns", "time that it waited in them for other ranks; null where none was matched", nullable=True),
        integer("last", "how often it came last", nullable=True, least=0),
    ),
    ("rank", "iteration"),
    (("start_ns", "end_ns"), ("device_start_ns", "device_end_ns")),
)

RANK_KERNELS = Table(
    "rank_kernels",
    "Executions of each kernel by rank and iteration; copies and sets are named by their kind.",
    (
        _RANK,
        _ITERATION,
        text("name", "short name of the kernel", not_empty=True),
        text("kind", "what it does", values=WORK_KINDS),
        integer("count", "executions", least=1),
        _lasts("total_ns", "their time"),
        _lasts("least_ns", "time of the shortest"),
        _lasts("most_ns", "time of the longest"),
        real("square_ns2", "sum of the squares of their times", "ns^2", least=0),
    ),
)

RANK_DEVICES = Table(
    "rank_devices",
    "One row a GPU of a rank, from the start of the rank's first device work to the end of its last. The times of a rank are sums over its GPUs.",
    (_RANK, DEVICE, *BREAKDOWN),
    ("rank", "device"),
)

IDLE = Table(
    "idle",
    "Gaps between the device work of a stream, by cause, and the work that waits in it.",
    (
        _RANK,
        DEVICE,
        STREAM,
        *(
            column
            for cause, meaning in (
                ("host_wait", "gaps whose next work was not launched when the last ended"),
                ("kernel_wait", "gaps below 30 us whose next work had been launched"),
                ("other", "all other gaps"),
            )
            for column in (integer(f"{cause}_count", meaning, least=0), _lasts(f"{cause}_ns", "their time"))
        ),
        integer("queued", "changes of the number of launched and not started kernels", least=0),
        real("queue_mean", "mean of that number over the changes; null without one", nullable=True),
        integer("queue_most", "the largest number; likewise", nullable=True),
    ),
)
