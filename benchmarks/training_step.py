"""Profiles a training step of a model like Llama on one GPU, and times it without a profiler.

    python -m benchmarks.training_step --profile before.json.gz
    warpladder extract before.json.gz --top 6 --out bench_step.py && warpladder record bench_step.py
    python -m benchmarks.training_step                                # 41.2 ms a step without a profiler
    warpladder forecast before.json.gz RUN --step-time 41.2ms
    python -m benchmarks.training_step --replace gate --profile after.json.gz
    warpladder forecast before.json.gz RUN --after after.json.gz

The model has 194 million parameters in bfloat16: 10 layers of width 1024, 16 heads, a vocabulary of 32,000. A step takes `--texts` texts of
2048 words, and AdamW updates all parameters in one kernel. `--replace` compiles parts of it by `torch.compile`: the `gate` of the
feed-forward layers, the `norm`, and the `rotation` of positions.

It needs PyTorch.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.profiled_job import profiler

WORDS: Final = 32_000
WIDTH: Final = 1024
INNER: Final = 2816
HEADS: Final = 16
LAYERS: Final = 10
LENGTH: Final = 2048
WARM_UP, STEPS = 4, 4
EPSILON: Final = 1e-5


def norm(x: Tensor, weight: Tensor) -> Tensor:
    """Normalise by the root mean square, in float32."""
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)).to(x.dtype)


def rotation(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn pairs of elements by the angles of their positions."""
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat((-second, first), -1) * sine


def gate(x: Tensor, up: Tensor) -> Tensor:
    """The gate of a feed-forward layer."""
    return functional.silu(x) * up


PARTS: dict[str, Callable[..., Tensor]] = {"norm": norm, "rotation": rotation, "gate": gate}


class Norm(nn.Module):
    """A normalisation with weights."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return PARTS["norm"](x, self.weight)


class Layer(nn.Module):
    """A layer: attention, and a gated feed-forward layer."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_inner = Norm(), Norm()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        normal = self.before_attention(x)
        query, key, value = (
            each(normal).unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in (self.query, self.key, self.value)
        )
        query, key = (PARTS["rotation"](each, cosine, sine) for each in (query, key))
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(-2))
        normal = self.before_inner(x)
        return x + self.down(PARTS["gate"](self.gate(normal), self.up(normal)))


class Llama(nn.Module):
    """A model like Llama."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = Norm(), nn.Linear(WIDTH, WORDS, bias=False)
        half = WIDTH // HEADS // 2
        angles = torch.arange(LENGTH)[:, None] * 10_000.0 ** (-torch.arange(half) / half)
        self.register_buffer("cosine", angles.cos().repeat(1, 2))
        self.register_buffer("sine", angles.sin().repeat(1, 2))

    def forward(self, text: Tensor) -> Tensor:
        x = self.words(text)
        for layer in self.layers:
            x = layer(x, self.cosine[: text.shape[1]], self.sine[: text.shape[1]])
        return self.head(self.norm(x))


def training(texts: int, device: str) -> Callable[[], None]:
    """A step on one batch."""
    model = Llama().to(device, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    text = torch.randint(WORDS, (texts, LENGTH + 1), device=device)

    def step() -> None:
        loss = functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def profile(step: Callable[[], None], path: Path) -> None:
    """Write the trace of a few steps, with shapes."""
    with profiler(path, WARM_UP, 2, STEPS, acc_events=True) as profiling:
        for _ in range(WARM_UP + 2 + STEPS):
            step()
            profiling.step()


def step_ms(step: Callable[[], None], synchronize: Callable[[], object], steps: int = 20) -> float:
    """The time of a step without a profiler, in ms: mean of many after a few."""
    for _ in range(WARM_UP):
        step()
    synchronize()
    started = time.perf_counter()
    for _ in range(steps):
        step()
    synchronize()
    return 1e3 * (time.perf_counter() - started) / steps


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", type=Path, metavar="TRACE", help="profile it, and write the trace here")
    parser.add_argument("--replace", nargs="*", default=(), choices=tuple(PARTS), help="compile these parts")
    parser.add_argument("--texts", type=int, default=8, help="texts of a batch")
    parser.add_argument("--steps", type=int, default=20, help="timed steps")
    options = parser.parse_args()
    torch.manual_seed(0)
    on_gpu = torch.cuda.is_available()
    for part in options.replace:
        PARTS[part] = torch.compile(PARTS[part], dynamic=False)
    step = training(options.texts, "cuda" if on_gpu else "cpu")
    if options.profile:
        profile(step, options.profile)
    taken = step_ms(step, torch.cuda.synchronize if on_gpu else lambda: None, options.steps)
    print(f"{' '.join(options.replace) or 'as it is'}: {taken:.2f} ms a step without a profiler")


if __name__ == "__main__":
    main()
