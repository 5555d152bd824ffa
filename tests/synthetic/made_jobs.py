"""A job whose sums are counted by hand: 8 ranks of 4 iterations, of which rank 5 is late and rank 3 is broken.

In each iteration a rank computes, copies, and enters two collectives of all ranks. The late rank computes for 20 ms longer, so that the
others wait for it. All times of an iteration are multiples of 1 us.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tests.synthetic.made_runs import row, run_row, write_tables

RANKS: Final = 8
ITERATIONS: Final = 4
LATE: Final = 5
BROKEN: Final = 3
REASON: Final = "rank-3.json: cut off after 1,000 of 5,000 bytes"
REFUSED: Final = "clocks cannot be aligned: ends of matched collectives spread by 32.5 ms between ranks"
BEGIN_NS: Final = 1_700_000_000_000_000_000
EVERY_NS: Final = 100_000_000
US: Final = 1_000
TRANSFER_NS: Final = 5_000 * US
BYTES: Final = (4_000_000, 1_000_000)
UNCERTAINTY_NS: Final = 70.0
_REST: Final = {"memory_ns": 2_000 * US, "host_wait_ns": 4_000 * US, "kernel_wait_ns": 1_000 * US, "other_idle_ns": 500 * US}
_SUMMED: Final = ("span_ns", "busy_ns", "compute_ns", "communication_ns", "exposed_ns", *_REST)


def compute_ns(rank: int, iteration: int) -> int:
    """How long a rank computes in an iteration."""
    return (60_000 if rank == LATE else 40_000 + 100 * rank + 10 * iteration) * US


def wait_ns(rank: int, iteration: int) -> int:
    """How long a rank waits in an iteration, in both collectives together."""
    return compute_ns(LATE, iteration) - compute_ns(rank, iteration)


def _waits_ns(rank: int) -> int:
    return sum(wait_ns(rank, iteration) for iteration in range(ITERATIONS))


def write(
    data_dir: Path,
    run_id: str = "job",
    *,
    broken: Collection[int] = (BROKEN,),
    told: bool = True,
    iterations: int = ITERATIONS,
    further: Mapping[str, int] = MappingProxyType({}),
    gpus: int = 1,
) -> Path:
    """Write the job.

    Args:
        broken: ranks whose profile could not be imported.
        told: the clocks could be aligned, so that waits are known.
        iterations: 0 for profiles without numbered iterations, whose sums are those of `ITERATIONS`.
        further: times of each rank outside of the iterations.
        gpus: of each rank, which all do the same; only the tables by GPU have the others.

    Returns:
        The folder of the run.
    """
    good = [rank for rank in range(RANKS) if rank not in broken]
    cells = [(rank, iteration) for rank in good for iteration in range(ITERATIONS)]
    tables: dict[str, list[dict[str, Any]]] = {
        "ranks": [_rank(rank, good, told, further) if rank in good else _broken(rank) for rank in range(RANKS)],
        "iterations": [_iteration(*cell, told) for cell in cells if iterations],
        "rank_kernels": [each for cell in cells for each in _kernels(*cell)],
        "rank_devices": [_device(rank, gpu) for rank in good for gpu in range(gpus)],
        "idle": [_idle(rank, gpu) for rank in good for gpu in range(gpus)],
        "collectives": [each for cell in cells for each in _collectives(*cell, told)],
        "diagnostics": [row("diagnostics", severity="error", source="ranks", text=f"not imported: {REASON}") for _ in broken],
    }
    if not told:
        tables["diagnostics"].append(row("diagnostics", severity="warning", source="collectives", text=REFUSED))
    info = run_row(run_id, run_id) | {"kind": "job", "collector": "kineto", "source": "job", "device_count": len(good)}
    return write_tables(data_dir, info, {name: rows for name, rows in tables.items() if rows})


def _breakdown(rank: int, iteration: int) -> dict[str, int]:
    compute, exposed = compute_ns(rank, iteration), wait_ns(rank, iteration) + 2 * TRANSFER_NS
    busy = compute + exposed + _REST["memory_ns"]
    span = busy + sum(_REST[name] for name in ("host_wait_ns", "kernel_wait_ns", "other_idle_ns"))
    times = {"span_ns": span, "busy_ns": busy, "compute_ns": compute, "communication_ns": exposed, "exposed_ns": exposed}
    return {**times, **_REST}


def _sums(rank: int) -> dict[str, int]:
    each = [_breakdown(rank, iteration) for iteration in range(ITERATIONS)]
    return {name: sum(times[name] for times in each) for name in _SUMMED}


def _device(rank: int, gpu: int) -> dict[str, Any]:
    return row("rank_devices", rank=rank, device=gpu, **_sums(rank))


def _rank(rank: int, good: Collection[int], told: bool, further: Mapping[str, int]) -> dict[str, Any]:
    sums = {name: time + further.get(name, 0) for name, time in _sums(rank).items()}
    clock = {
        "collectives": 2 * ITERATIONS,
        "wait_ns": _waits_ns(rank),
        "last": 2 * ITERATIONS if rank == LATE else 0,
        "offset_ns": 1_000.0 * rank,
        "drift_ppm": 0.001,
        "offset_at_ns": BEGIN_NS + ITERATIONS * EVERY_NS // 2,
        "uncertainty_ns": UNCERTAINTY_NS,
        "wait_uncertainty_ns": 2 * ITERATIONS * UNCERTAINTY_NS,
        **(
            dict.fromkeys(("lateness_ns", "lateness_exposed_ns"), sum(_waits_ns(each) for each in good)) if rank == LATE else {}
        ),
        "late": rank == LATE,
        "cause": "compute" if rank == LATE else "",
    }
    about = {"status": "ok", "host": f"node{rank // 4}", "device_name": "NVIDIA H200 (synthetic)", "file": f"rank-{rank}.json"}
    return row("ranks", rank=rank, **about, bytes=5_000, events=7 * ITERATIONS, **sums, launches=7 * ITERATIONS) | {
        "late": False,
        **(clock if told else {}),
    }


def _broken(rank: int) -> dict[str, Any]:
    return row("ranks", rank=rank, status="broken", detail=REASON, file=f"rank-{rank}.json", late=False)


def _iteration(rank: int, iteration: int, told: bool) -> dict[str, Any]:
    times, start = _breakdown(rank, iteration), BEGIN_NS + iteration * EVERY_NS
    device = {"device_start_ns": start, "device_end_ns": start + times["span_ns"]}
    late = {"collectives": 2, "wait_ns": wait_ns(rank, iteration), "last": 2 if rank == LATE else 0} if told else {}
    return row("iterations", rank=rank, iteration=iteration, start_ns=start, end_ns=start + EVERY_NS, **device, **times, **late)


def _kernels(rank: int, iteration: int) -> list[dict[str, Any]]:
    times = _breakdown(rank, iteration)
    kernels = (
        ("gemm", "compute", 4, times["compute_ns"]),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "communication", 2, times["communication_ns"]),
        ("h2d", "memory", 1, times["memory_ns"]),
    )
    return [
        row(
            "rank_kernels", rank=rank, iteration=iteration, name=name, kind=kind, count=count, total_ns=total,
            least_ns=total // count, most_ns=total // count, square_ns2=count * (total / count) ** 2,
        )
        for name, kind, count, total in kernels
    ]  # fmt: skip


def _idle(rank: int, gpu: int) -> dict[str, Any]:
    gaps = {
        name.removesuffix("_idle_ns").removesuffix("_ns"): ITERATIONS * ns for name, ns in _REST.items() if name != "memory_ns"
    }
    columns = {f"{cause}_ns": ns for cause, ns in gaps.items()} | {f"{cause}_count": ITERATIONS for cause in gaps}
    return row("idle", rank=rank, device=gpu, stream=7, **columns, queued=14 * ITERATIONS, queue_mean=2.0, queue_most=4)


def _collectives(rank: int, iteration: int, told: bool) -> list[dict[str, Any]]:
    """Two collectives, which all ranks leave at the same moment on the job's clock."""
    start, wait, offset = BEGIN_NS + iteration * EVERY_NS, wait_ns(rank, iteration) // 2, 1_000 * rank
    rows = []
    for place, size in enumerate(BYTES):
        last = start + (place + 1) * (compute_ns(LATE, iteration) // 2) + place * TRANSFER_NS
        arrival, finish = last - wait, last + TRANSFER_NS
        aligned = {
            "match": 2 * iteration + place, "arrival_ns": arrival, "finish_ns": finish, "wait_ns": wait, "transfer_ns": TRANSFER_NS,
        }  # fmt: skip
        rows.append(
            row(
                "collectives", rank=rank, iteration=iteration, collective="all_reduce", kernel="ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                group="0", group_ranks=str(list(range(RANKS))), group_size=RANKS, number=2 * iteration + place, in_elements=size // 4,
                out_elements=size // 4, element_type="Float", bytes=size, stream=7, start_ns=arrival + offset, end_ns=finish + offset,
                **(aligned if told else {}),
            )
        )  # fmt: skip
    return rows
