"""Trains a model like GPT on several GPUs and leaves one profile a rank, with a planted straggler where one is asked for.

    torchrun --nproc-per-node 4 -m benchmarks.profiled_job profiles/ --parallel ddp --late 1
    for each rank: nsys profile -t cuda,nvtx -c cudaProfilerApi -o profiles/rank-N python -m benchmarks.profiled_job profiles/ --tool none

It needs PyTorch and its environment variables RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. The profiles are those of six steps after
three that warm up.
"""

import argparse
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.nn.parallel import DistributedDataParallel

WIDTH, HEADS, LAYERS, WORDS, LENGTH = 768, 12, 12, 32_768, 512
WARM_UP, STEPS = 3, 6
COPIED_BYTES = 256 << 20


class Block(nn.Module):
    """A layer: attention and a perceptron, each with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, _ = x.shape
        parts = self.mix(self.first(x)).view(rows, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))


class Model(nn.Module):
    """About 136 million parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, text: Tensor) -> Tensor:
        x = self.words(text)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def parallel(kind: str, model: nn.Module, device: int) -> nn.Module:
    """The model on all ranks: `ddp` or `fsdp`."""
    if kind == "ddp":
        return DistributedDataParallel(model, [device])
    for block in model.blocks:
        fully_shard(block)
    return fully_shard(model)


def train(folder: Path, kind: str, tool: str, batch: int, late: int, copies: int) -> None:
    """Train on this rank.

    Args:
        folder: of the profiles.
        kind: `ddp` or `fsdp`.
        tool: `pytorch` writes traces; `none` marks the steps for another tool.
        batch: texts of a rank in a step.
        late: rank that computes a tenth more; -1 for none.
        copies: rank that copies more from pageable memory in each step; -1 for none.
    """
    rank = int(os.environ["RANK"])
    device = int(os.environ.get("LOCAL_RANK", rank))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=torch.device("cuda", device))
    torch.manual_seed(rank)
    model = parallel(kind, Model().to(device, torch.bfloat16), device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    batch += batch // 10 if rank == late else 0
    text = torch.randint(WORDS, (batch, LENGTH + 1)).pin_memory()
    more = torch.empty(COPIED_BYTES, dtype=torch.uint8) if rank == copies else None
    path = folder / f"rank-{rank}.json.gz"
    with nullcontext() if tool == "none" else profiler(path, 1, WARM_UP - 1, STEPS) as profiling:
        for step in range(WARM_UP + STEPS):
            if tool == "none" and step == WARM_UP:
                torch.cuda.cudart().cudaProfilerStart()
            with torch.cuda.nvtx.range(f"step {step}") if tool == "none" else nullcontext():
                if more is not None:
                    more.to(device)
                inputs = text.to(device, non_blocking=True)
                loss = cross_entropy(model(inputs[:, :-1]).flatten(0, 1), inputs[:, 1:].flatten())
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            if profiling is not None:
                profiling.step()
        torch.cuda.synchronize()
        if tool == "none":
            torch.cuda.cudart().cudaProfilerStop()
    dist.destroy_process_group()


def profiler(path: Path, wait: int, warm_up: int, steps: int, **more: Any) -> torch.profiler.profile:
    """A profiler that writes the trace of some steps, with shapes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=wait, warmup=warm_up, active=steps),
        record_shapes=True,
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path)),
        **more,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parallel", choices=("ddp", "fsdp"), default="ddp")
    parser.add_argument("--tool", choices=("pytorch", "none"), default="pytorch")
    parser.add_argument("--batch", type=int, default=64, help="texts of a rank in a step; with 20, launching limits the steps")
    parser.add_argument("--late", type=int, default=-1, help="rank that computes a tenth more")
    parser.add_argument("--copies", type=int, default=-1, help="rank that copies more from the host")
    options = parser.parse_args()
    train(options.folder, options.parallel, options.tool, options.batch, options.late, options.copies)
