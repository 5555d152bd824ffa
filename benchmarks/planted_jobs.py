"""Runs jobs of several GPUs with one planted cause each, times their steps with the cause and without it, and profiles those with it.

    torchrun --nproc-per-node 4 -m benchmarks.planted_jobs planted/
    torchrun --nproc-per-node 2 -m benchmarks.planted_jobs planted/ --only gpipe,tensor
    for each case: warpladder import --job planted/CASE && warpladder forecast RUN

A step is timed without the profiler, the median of fifteen, on the slowest rank. `planted/steps.json` has a row for each case: the cause, the
step with it and without it in ms, and the change of `warpladder forecast` that takes the cause away. It needs PyTorch. On a machine without
a GPU, the jobs run on CPUs with `gloo`, smaller and without profiles.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from benchmarks.profiled_job import profiler

WARM_UP, TIMED, PROFILED = 5, 15, 3
ON_GPU: Final = torch.cuda.is_available()
WIDTH, ROWS = (2048, 4096) if ON_GPU else (32, 16)
TYPE: Final = torch.bfloat16 if ON_GPU else torch.float32
Step = Callable[[], None]


class Block(nn.Module):
    """A norm and a perceptron with a residual connection."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm(x))))


def _rank() -> int:
    return dist.get_rank()


def _device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device()) if ON_GPU else torch.device("cpu")


def _blocks(count: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(*(Block() for _ in range(count))).to(_device(), TYPE)
    return model, torch.optim.SGD(model.parameters(), lr=1e-5)


def _rows(rows: int, *, needs_gradient: bool = False) -> Tensor:
    return torch.randn(rows, WIDTH, device=_device(), dtype=TYPE, requires_grad=needs_gradient)


def gpipe(blocks: list[int], micro_batches: int, rows: int, group: Any = None, after: Step | None = None) -> Step:
    """A pipeline that runs all micro-batches forward, then all backward, with blocking messages.

    Args:
        blocks: of each stage.
        rows: of a micro-batch.
        group: ranks of the pipeline in the order of stages; None for all.
        after: what follows the last backward.
    """
    ranks = dist.get_process_group_ranks(group) if group else list(range(dist.get_world_size()))
    stage = ranks.index(_rank())
    first, last = stage == 0, stage == len(ranks) - 1
    model, optimizer = _blocks(blocks[stage])

    def step() -> None:
        kept = []
        for _ in range(micro_batches):
            x = _rows(rows, needs_gradient=True)
            if not first:
                dist.recv(x.data, ranks[stage - 1], group=group)
            y = model(x)
            if not last:
                dist.send(y.detach(), ranks[stage + 1], group=group)
            kept.append((x, y))
        for x, y in kept:
            gradient = torch.ones_like(y)
            if not last:
                dist.recv(gradient, ranks[stage + 1], group=group)
            y.backward(gradient)
            if not first and x.grad is not None:
                dist.send(x.grad, ranks[stage - 1], group=group)
        if after:
            after()
        optimizer.step()
        optimizer.zero_grad()

    return step


def one_forward_one_backward(blocks: list[int], micro_batches: int, rows: int) -> Step:
    """A pipeline that alternates forward and backward (1F1B), with batched messages."""
    stage, stages = _rank(), dist.get_world_size()
    first, last = stage == 0, stage == stages - 1
    model, optimizer = _blocks(blocks[stage])

    def exchange(to: int, sent: Tensor | None, other: int, received: Tensor | None) -> None:
        operations = [] if sent is None else [dist.P2POp(dist.isend, sent, to)]
        operations += [] if received is None else [dist.P2POp(dist.irecv, received, other)]
        for request in dist.batch_isend_irecv(operations) if operations else []:
            request.wait()

    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        x.requires_grad_(True)
        return x, model(x)

    def backward(x: Tensor, y: Tensor, gradient: Tensor) -> Tensor:
        y.backward(gradient)
        return torch.zeros_like(x) if x.grad is None else x.grad

    def received(rank: int) -> Tensor:
        tensor = _rows(rows)
        exchange(rank, None, rank, tensor)
        return tensor

    def step() -> None:
        kept: list[tuple[Tensor, Tensor]] = []
        ahead = min(stages - stage - 1, micro_batches)
        for _ in range(ahead):
            x, y = forward(_rows(rows) if first else received(stage - 1))
            exchange(stage + 1, y.detach(), stage + 1, None)
            kept.append((x, y))
        left = micro_batches - ahead
        source = _rows(rows) if first or not left else received(stage - 1)
        for turn in range(left):
            x, y = forward(source)
            gradient = torch.ones_like(y)
            if not last:
                exchange(stage + 1, y.detach(), stage + 1, gradient)
            kept.append((x, y))
            back = backward(*kept.pop(0), gradient)
            more = turn < left - 1
            source = _rows(rows)
            if not first:
                exchange(stage - 1, back, stage - 1, source if more else None)
        for _ in range(ahead):
            gradient = received(stage + 1)
            back = backward(*kept.pop(0), gradient)
            if not first:
                exchange(stage - 1, back, stage - 1, None)
        optimizer.step()
        optimizer.zero_grad()

    return step


def tensor(layers: int, sleeps_s: float, group: Any = None) -> Step:
    """Layers whose halves are summed over the ranks. The host of rank 1 sleeps before each step."""
    share = dist.get_world_size(group)
    weights = [
        (
            torch.randn(WIDTH, 4 * WIDTH // share, device=_device(), dtype=TYPE),
            torch.randn(4 * WIDTH // share, WIDTH, device=_device(), dtype=TYPE),
        )
        for _ in range(layers)
    ]

    @torch.no_grad()
    def step() -> None:
        if _rank() == 1 and sleeps_s:
            time.sleep(sleeps_s)
        x = _rows(ROWS)
        for wide, narrow in weights:
            y = nn.functional.gelu(x @ wide) @ narrow
            dist.all_reduce(y, group=group)
            x = x + y * 1e-3

    return step


def wide_sums(layers: int, kind: torch.dtype) -> Step:
    """Layers with small products and all-reduces of a large tensor, which nothing hides."""
    weight, large = _rows(WIDTH), torch.ones(16 * ROWS, WIDTH, device=_device(), dtype=kind)

    @torch.no_grad()
    def step() -> None:
        x = _rows(ROWS)
        for _ in range(layers):
            x = nn.functional.normalize(x @ weight)
            dist.all_reduce(large, op=dist.ReduceOp.MAX)

    return step


def data(layers: int, rows: list[int]) -> Step:
    """Data parallel: each rank takes its rows, and the gradients are summed at the end."""
    model, optimizer = _blocks(layers)
    own = rows[_rank()]

    def step() -> None:
        model(_rows(own)).float().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()

    return step


def experts(layers: int, of_first: float, group: Any = None, after: Step | None = None) -> Step:
    """Layers of experts: rows go to the ranks of their experts and back. Rank 0 gets a part of all rows, the others equal parts of the rest."""
    ranks = dist.get_world_size(group)
    first = int(ROWS * of_first)
    splits = [first, *[(ROWS - first) // (ranks - 1)] * (ranks - 1)]
    splits[-1] += ROWS - sum(splits)
    own = splits[_rank()]
    weights = [
        (
            torch.randn(WIDTH, 4 * WIDTH, device=_device(), dtype=TYPE),
            torch.randn(4 * WIDTH, WIDTH, device=_device(), dtype=TYPE),
        )
        for _ in range(layers)
    ]

    @torch.no_grad()
    def step() -> None:
        x = _rows(ROWS)
        for wide, narrow in weights:
            routed = _rows(own * ranks)
            dist.all_to_all_single(routed, x, [own] * ranks, splits, group=group)
            y = nn.functional.gelu(routed @ wide) @ narrow
            back = _rows(ROWS)
            dist.all_to_all_single(back, y, splits, [own] * ranks, group=group)
            x = x + back * 1e-3
        if after:
            after()

    return step


def pipeline_of_data(blocks: list[int]) -> Step:
    """Two stages of data-parallel ranks: on four GPUs, stage 0 is ranks 0 and 1. On two, there is one rank a stage."""
    half = dist.get_world_size() // 2
    pipelines = [dist.new_group([place, place + half], group_desc="pp") for place in range(half)]
    replicas = [dist.new_group(list(range(stage * half, (stage + 1) * half)), group_desc="dp") for stage in range(2)]
    pipeline, replica = pipelines[_rank() % half], replicas[_rank() // half]
    gradients = torch.ones(ROWS, WIDTH, device=_device(), dtype=TYPE)
    return gpipe(blocks, 4, ROWS, pipeline, lambda: dist.all_reduce(gradients, group=replica))


def experts_and_data(of_first: float) -> Step:
    """Layers of experts, and gradients that are summed in a group of its own."""
    every = list(range(dist.get_world_size()))
    of_experts, of_data = dist.new_group(every, group_desc="ep"), dist.new_group(every, group_desc="dp")
    gradients = torch.ones(2 * ROWS, WIDTH, device=_device(), dtype=TYPE)
    return experts(6, of_first, of_experts, lambda: dist.all_reduce(gradients, group=of_data))


class Case(NamedTuple):
    """A job.

    Attributes:
        planted, without: the step with the cause and without it.
        cause: in words.
        change: which change of `warpladder forecast` takes the cause away.
    """

    planted: Callable[[], Step]
    without: Callable[[], Step]
    cause: str
    change: str


def cases() -> dict[str, Case]:
    """The jobs by name."""
    ranks = dist.get_world_size()
    stage = max(ranks - 2, 0)
    uneven = [4 + (ranks if each == stage else 0) for each in range(ranks)]  # blocks of each stage
    even = [sum(uneven) // ranks] * ranks
    rows = [ROWS] * ranks
    later = [*rows[:-1], ROWS + ROWS // 4]
    most = 0.75 if ranks == 2 else 0.5
    less = torch.bfloat16 if ON_GPU else torch.float32
    more = f"stage {stage} has more blocks"
    few = "two micro-batches in place of eight, of four times the rows"
    host, uneven_rows = "the host paces it, though stages are uneven", "the last rank has a quarter more rows"
    sleeps, of_first = "the host of rank 1 sleeps 4 ms a step", "the second stage has 8 blocks, the first 4"
    bytes_twice, routed = "all-reduces of twice the bytes, exposed", "rank 0 gets most rows"
    stages, experts_level, median = "stages levelled", "experts levelled", "rank as the median"
    every = {
        "gpipe": (lambda: gpipe(uneven, 8, ROWS), lambda: gpipe(even, 8, ROWS), more, stages),
        "gpipe-few": (lambda: gpipe(even, 2, 2 * ROWS), lambda: gpipe(even, 8, ROWS // 2), few, "eight micro-batches"),
        "gpipe-host": (lambda: gpipe(uneven, 8, 64), lambda: gpipe(even, 8, 64), host, stages),
        "1f1b": (
            *(lambda: one_forward_one_backward(uneven, 8, ROWS), lambda: one_forward_one_backward(even, 8, ROWS)),
            *(more, stages),
        ),
        "tensor": (lambda: tensor(12, 0.004), lambda: tensor(12, 0.0), sleeps, median),
        "sums": (lambda: wide_sums(8, torch.float32), lambda: wide_sums(8, less), bytes_twice, "communication twice as fast"),
        "data": (lambda: data(8, later), lambda: data(8, rows), uneven_rows, median),
        "experts": (lambda: experts(8, most), lambda: experts(8, 1 / ranks), routed, experts_level),
        "hybrid-stages": (lambda: pipeline_of_data([4, 8]), lambda: pipeline_of_data([6, 6]), of_first, stages),
        "hybrid-experts": (lambda: experts_and_data(most), lambda: experts_and_data(1 / ranks), routed, experts_level),
    }
    return {name: Case(*each) for name, each in every.items()}


def _wait() -> None:
    if ON_GPU:
        torch.cuda.synchronize()


def timed(step: Step) -> float:
    """The median time of a step on the slowest rank, in ms. A step ends when its device work has ended, as where the loss is read."""
    times = []
    for number in range(WARM_UP + TIMED):
        _wait()
        dist.barrier()
        _wait()
        begin = time.perf_counter()
        step()
        _wait()
        slowest = torch.tensor([1e3 * (time.perf_counter() - begin)], device=_device())
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        if number >= WARM_UP:
            times.append(slowest.item())
    return statistics.median(times)


def profiled(step: Step, path: Path) -> None:
    """Write the trace of a few steps of this rank."""
    with profiler(path, 1, 2, PROFILED) as profiling:
        for _ in range(3 + PROFILED):
            step()
            _wait()
            profiling.step()
        _wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="names of cases, with commas between them")
    arguments = parser.parse_args()
    if ON_GPU:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        dist.init_process_group("nccl", device_id=_device())
    else:
        dist.init_process_group("gloo")
    every = cases()
    rows = []
    for name in arguments.only.split(",") if arguments.only else every:
        case = every[name]
        torch.manual_seed(_rank())
        planted = case.planted()
        row = {
            "case": name,
            "cause": case.cause,
            "change": case.change,
            "ranks": dist.get_world_size(),
            "planted_ms": timed(planted),
        }
        if ON_GPU:
            profiled(planted, arguments.folder / name / f"rank-{_rank()}.json.gz")
        del planted
        row["without_ms"] = timed(case.without())
        rows.append(row)
        if _rank() == 0:
            print(
                f"{name}: {row['planted_ms']:.3f} ms, without the cause {row['without_ms']:.3f} ms ({case.cause})", flush=True
            )
            arguments.folder.mkdir(parents=True, exist_ok=True)
            (arguments.folder / "steps.json").write_text(json.dumps(rows, indent=1) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
