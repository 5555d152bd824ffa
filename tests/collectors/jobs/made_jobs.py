"""Jobs of many ranks made of NumPy arrays, with known clocks, arrivals and waits."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpladder.data import job_tables
from warpladder.data.arrays import Floats, Int64s


@dataclass(frozen=True)
class MadeJob:
    """A job's collectives as the ranks' profiles have them, and the truth.

    Attributes:
        collectives: rows of `job_tables.COLLECTIVES`, without the columns from `match` on.
        event: for each row, the true event.
        arrival_ns: for each row, the true start.
        wait_ns: total wait of each rank; NaN for a missing rank.
        offset_ns, drift: the ranks' clocks.
    """

    collectives: pa.Table
    event: Int64s
    arrival_ns: Floats
    wait_ns: Floats
    offset_ns: Floats
    drift: Floats


def make_job(
    ranks: int = 16,
    *,
    collectives: int = 240,
    iterations: int = 4,
    tensor_ranks: int = 0,
    slower: dict[int, float] | None = None,
    jitter: float = 0.03,
    end_noise_ns: float = 200.0,
    end_at_random: bool = False,
    missing: tuple[int, ...] = (),
    same_clock: bool = False,
    late_once: dict[int, float] | None = None,
    seed: int = 1,
) -> MadeJob:
    """Simulate ranks that compute for 200 us and meet, again and again.

    Args:
        tensor_ranks: if above 0, every second collective is of a group of so many consecutive ranks, and the others of strided groups.
        slower: by rank, the factor of its compute time.
        jitter: mean share by which compute is longer at random.
        end_at_random: ends of a collective spread like its starts, as where the matched kernels are not the same collectives.
        missing: ranks without a profile.
        same_clock: the ranks' clocks have no offset and no drift.
        late_once: by rank, the time in ns by which it computes longer before the middle collective.
    """
    rng = np.random.default_rng(seed)
    speed = np.ones(ranks)
    for rank, factor in (slower or {}).items():
        speed[rank] = factor
    kinds = [[np.arange(ranks)]]
    if tensor_ranks:
        strided = [np.arange(first, ranks, tensor_ranks) for first in range(tensor_ranks)]
        consecutive = [np.arange(first, first + tensor_ranks) for first in range(0, ranks, tensor_ranks)]
        kinds = [strided, consecutive]
    start, end = np.empty((collectives, ranks)), np.empty((collectives, ranks))
    event, group = np.empty((collectives, ranks), np.int64), np.empty((collectives, ranks), np.int64)
    now = np.zeros(ranks)
    for number in range(collectives):
        start[number] = now + 200e3 * speed * (1 + jitter * rng.exponential(1.0, ranks))
        for rank, later in (late_once or {}).items() if number == collectives // 2 else ():
            start[number, rank] += later
        kind = number % len(kinds)
        for place, members in enumerate(kinds[kind]):
            common = start[number, members].max() + 30e3
            end[number, members] = common + end_noise_ns * rng.standard_normal(len(members))
            if end_at_random:
                end[number, members] = start[number, members] + 30e3 + 50e3 * rng.random(len(members))
            event[number, members], group[number, members] = number * ranks + place, place
        now = end[number]
    offset, drift = (spread * rng.standard_normal(ranks) * (not same_clock) for spread in (1e6, 1e-5))
    here = np.setdiff1d(np.arange(ranks), missing)
    wait = np.full(ranks, np.nan)
    wait[here] = _waits(start, event, here)
    table = _table(start, end, group, kinds, offset, drift, iterations, here)
    return MadeJob(table, event[:, here].T.ravel(), start[:, here].T.ravel(), wait, offset, drift)


def _waits(start: Floats, event: Int64s, here: Int64s) -> Floats:
    last = np.zeros(int(event.max()) + 1)
    np.maximum.at(last, event[:, here], start[:, here])
    waits: Floats = (last[event[:, here]] - start[:, here]).sum(0)
    return waits


def _table(
    start: Floats,
    end: Floats,
    group: Int64s,
    kinds: list[list[Int64s]],
    offset: Floats,
    drift: Floats,
    iterations: int,
    here: Int64s,
) -> pa.Table:
    """Lay out one rank after another."""
    collectives = len(start)
    rank = np.repeat(here, collectives)
    number = np.tile(np.arange(collectives), len(here))
    kind, place = number % len(kinds), group[number, rank]
    lists = [[str(members.tolist()) for members in groups] for groups in kinds]
    names = ("default_pg", "mesh_tp") if len(kinds) > 1 else ("default_pg",)

    def on_clock(time: Floats) -> pa.Array:
        clock = time + offset[:, None] + drift[:, None] * time
        return pa.array(1_700_000_000_000_000_000 + np.rint(clock[here]).astype(np.int64).ravel())

    values = {
        "rank": rank,
        "iteration": number * iterations // collectives,
        "collective": ["allreduce"] * len(rank),
        "kernel": ["ncclDevKernel_AllReduce"] * len(rank),
        "group": [names[of] for of in kind],
        "group_ranks": [lists[of][at] for of, at in zip(kind, place, strict=True)],
        "group_size": [len(kinds[of][at]) for of, at in zip(kind, place, strict=True)],
        "number": number // len(kinds),
        "sequence": number // len(kinds),
        "in_elements": 1000 + number,
        "out_elements": 1000 + number,
        "element_type": ["Float"] * len(rank),
        "bytes": 4 * (1000 + number),
        "stream": np.full(len(rank), 20),
        "start_ns": on_clock(start.T),
        "end_ns": on_clock(end.T),
    }
    return pa.table({c.name: pa.array(values.get(c.name, [None] * len(rank)), c.type) for c in job_tables.COLLECTIVES.columns})


def with_further_group(job: MadeJob, members: tuple[int, ...], *, scatter_ns: float, seed: int) -> MadeJob:
    """The job with a further group of some ranks, which meets 100 us before each collective, on a stream of its own.

    Args:
        scatter_ns: standard deviation of the arrivals of its ranks, whose mean difference is 0.
    """
    rng = np.random.default_rng(seed)
    rank, rows = job.collectives["rank"].to_numpy(), job.collectives
    count = int((rank == members[0]).sum())
    scatter = scatter_ns * rng.standard_normal((count, len(members)))
    arrivals = job.arrival_ns[rank == members[0]][:, None] - 100e3 + scatter - scatter.mean(axis=0)
    ends = arrivals.max(axis=1, keepdims=True) + 10e3 + 200 * rng.standard_normal(arrivals.shape)
    parts = [rows]
    for place, member in enumerate(members):
        own = rows.filter(pa.array(rank == member))
        for name, true in (("start_ns", arrivals[:, place]), ("end_ns", ends[:, place])):
            clock = true + job.offset_ns[member] + job.drift[member] * true
            times = pa.array(1_700_000_000_000_000_000 + np.rint(clock).astype(np.int64))
            own = own.set_column(own.schema.get_field_index(name), own.schema.field(name), times)
        for name, text in (("group", "embedding"), ("group_ranks", str(list(members)))):
            own = own.set_column(own.schema.get_field_index(name), own.schema.field(name), pa.array([text] * count))
        parts.append(own)
    return replace(job, collectives=pa.concat_tables(parts))


def with_whole_us(job: MadeJob) -> MadeJob:
    """The job with times in whole microseconds, as profilers before PyTorch 2.3 wrote them."""
    table = job.collectives
    for name in ("start_ns", "end_ns"):
        whole = pa.array(table[name].to_numpy() // 1000 * 1000)
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), whole)
    return replace(job, collectives=table)


def without(table: pa.Table, *names: str) -> pa.Table:
    """The table with nulls, or empty texts, in some columns."""
    for name in names:
        column = job_tables.COLLECTIVES.arrow.field(name)
        empty = None if column.nullable else ""
        table = table.set_column(table.schema.get_field_index(name), name, pa.array([empty] * len(table), column.type))
    return table


def with_values(table: pa.Table, name: str, where: npt.NDArray[np.bool_], value: object) -> pa.Table:
    """The table with a value in the chosen rows of a column."""
    at = table.schema.get_field_index(name)
    values = [value if chosen else old for chosen, old in zip(where, table[name].to_pylist(), strict=True)]
    return table.set_column(at, name, pa.array(values, table.schema.field(name).type))


def cut(table: pa.Table, event: Int64s, kept: npt.NDArray[np.bool_]) -> tuple[pa.Table, Int64s]:
    """The chosen rows, and their events."""
    return table.filter(pa.array(kept)), event[kept]


#: The columns of `iterations` that stragglers are found with.
OF_ITERATIONS = ("rank", "iteration", "device_start_ns", "device_end_ns", "host_wait_ns", "exposed_ns")
_LASTS_NS = 100_000_000


def profiles(
    ranks: int,
    iterations: int,
    *,
    late: int,
    kernels: dict[str, float] | None = None,
    counts: dict[str, int] | None = None,
    host: float = 1.0,
    exposed_ns: int = 0,
    between_ns: int = 0,
) -> tuple[pa.Table, pa.Table]:
    """Tables `iterations` and `rank_kernels` in which one rank differs from the others.

    Args:
        kernels: by name, the factor of the late rank's time an execution.
        counts: by name, its further executions.
        host: factor of its idle time in which it waits for the host.
        exposed_ns: exposed communication of the other ranks in an iteration.
        between_ns: time of the late rank between two iterations.
    """
    usual = {"gemm": (40, 500_000), "softmax": (20, 100_000), "norm": (20, 50_000), "adam": (4, 200_000), "h2d": (2, 400_000)}
    rng = np.random.default_rng(7)
    sums, idle = [], []
    for rank in range(ranks):
        is_late = rank == late
        for iteration in range(iterations):
            waited = round(3e6 * (host if is_late else 1.0) * rng.normal(1, 0.01))
            begin = iteration * (_LASTS_NS + (between_ns if is_late else 0))
            idle.append((rank, iteration, begin, begin + _LASTS_NS, waited, 0 if is_late else exposed_ns))
            names = dict.fromkeys([*usual, *(counts or {})] if is_late else usual)
            for name in names:
                count, each = usual.get(name, (0, 100_000))
                count += (counts or {}).get(name, 0) if is_late else 0
                time = count * each * ((kernels or {}).get(name, 1.0) if is_late else 1.0) * rng.normal(1, 0.002)
                kind = "memory" if name == "h2d" else "compute"
                sums.append((rank, iteration, name, kind, count, round(time)))
    return (
        pa.table(dict(zip(OF_ITERATIONS, zip(*idle, strict=True), strict=True))),
        pa.table(dict(zip(("rank", "iteration", "name", "kind", "count", "total_ns"), zip(*sums, strict=True), strict=True))),
    )
