"""Profiles real programs on one GPU, with one operation replaced by a faster one where that is asked for.

    python -m benchmarks.real_programs gpt before.json.gz
    warpladder extract before.json.gz --top 8 --out bench_gpt.py && warpladder record bench_gpt.py
    python -m benchmarks.real_programs gpt after.json.gz --replace layer_norm_backward
    warpladder forecast before.json.gz RUN --after after.json.gz

    python -m benchmarks.real_programs inference eager.json.gz
    python -m benchmarks.real_programs inference graph.json.gz --graph
    warpladder extract graph.json.gz --eager eager.json.gz

| program | what it does in a step |
|---|---|
| gpt | trains a model like GPT of 98 million parameters in bfloat16 |
| resnet | trains ResNet-18 on images of 224x224 pixels, in channels-last order, under autocast |
| inference | the forward pass of the same GPT; `--graph` replays it as a CUDA graph |

It needs PyTorch.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.profiled_job import LENGTH, WIDTH, Block, profiler

WORDS, LAYERS = 8192, 12
WARM_UP, STEPS = 5, 6
DEVICE: Final = "cuda"


class Gpt(nn.Module):
    """A model like GPT."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, text: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.words(text))))


class Residual(nn.Module):
    """A block of ResNet-18."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outer) for _ in range(3))
        self.short = nn.Conv2d(inner, outer, 1, stride, bias=False) if stride > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        short = x if self.short is None else self.norms[2](self.short(x))
        return functional.relu(short + self.norms[1](self.second(functional.relu(self.norms[0](self.first(x))))))


class ResNet(nn.Module):
    """ResNet-18."""

    def __init__(self) -> None:
        super().__init__()
        widths = (64, 64, 128, 256, 512)
        sizes = [each for a, b in pairwise(widths) for each in ((a, b, 1 + (b > a)), (b, b, 1))]
        self.first, self.norm = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.blocks, self.last = nn.Sequential(*(Residual(*size) for size in sizes)), nn.Linear(512, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu(self.norm(self.first(x))), 3, 2, 1)
        return self.last(self.blocks(x).mean((2, 3)))


def gpt(batch: int, *, graph: bool) -> Callable[[], object]:
    """A training step of the model like GPT."""
    model = Gpt().to(DEVICE, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    text = torch.randint(WORDS, (batch, LENGTH + 1), device=DEVICE)

    def step() -> None:
        loss = functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def resnet(batch: int, *, graph: bool) -> Callable[[], object]:
    """A training step of ResNet-18."""
    model = ResNet().to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9)
    images = torch.randn(batch, 3, 224, 224, device=DEVICE).to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (batch,), device=DEVICE)

    def step() -> None:
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def inference(batch: int, *, graph: bool) -> Callable[[], object]:
    """A forward pass of the model like GPT."""
    model = Gpt().to(DEVICE, torch.bfloat16).eval().requires_grad_(False)
    text = torch.randint(WORDS, (batch, LENGTH), device=DEVICE)
    if not graph:
        return partial(model, text)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            model(text)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        model(text)
    return captured.replay


PROGRAMS: Final = {"gpt": (gpt, 96), "resnet": (resnet, 512), "inference": (inference, 128)}


@torch.compile
def _layer_norm(x: Tensor, shape: list[int], weight: Tensor, bias: Tensor, epsilon: float = 1e-5) -> Tensor:
    return torch.layer_norm(x, shape, weight, bias, epsilon)


_LAYER_NORM_BACKWARD: Final = torch.compile(torch.ops.aten.native_layer_norm_backward)
_BATCH_NORM: Final = torch.compile(torch.ops.aten.native_batch_norm)


class _LayerNorm(torch.autograd.Function):
    """Layer normalisation with a compiled backward pass."""

    @staticmethod
    def forward(context: Any, x: Tensor, shape: list[int], weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
        out, mean, deviation = torch.ops.aten.native_layer_norm(x, shape, weight, bias, epsilon)
        context.save_for_backward(x, mean, deviation, weight, bias)
        context.shape = shape
        return out

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        x, mean, deviation, weight, bias = context.saved_tensors
        of = _LAYER_NORM_BACKWARD(gradient, x, context.shape, mean, deviation, weight, bias, [True, True, True])
        return of[0], None, of[1], of[2], None


class _BatchNorm(torch.autograd.Function):
    """Batch normalisation with a compiled forward pass."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, *how: float) -> Tensor:
        out, of_batch, deviation = _BATCH_NORM(x, weight, bias, mean, variance, True, *how)
        context.save_for_backward(x, weight, mean, variance, of_batch, deviation)
        context.epsilon = how[1]
        return out

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        of = torch.ops.aten.native_batch_norm_backward(
            gradient, *context.saved_tensors, True, context.epsilon, [True, True, True]
        )
        return *of, None, None, None, None


def _with_backward(x: Tensor, shape: Any, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    return _LayerNorm.apply(x, list(shape), weight, bias, eps)


def _batch_norm(x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor, _: bool, *how: float) -> Tensor:
    return _BatchNorm.apply(x, weight, bias, mean, variance, *how)


#: Operation -> the function of torch.nn.functional that has it, and the one that takes its place.
REPLACEMENTS: Final[dict[str, tuple[str, Callable[..., Tensor]]]] = {
    "layer_norm": ("layer_norm", _layer_norm),
    "layer_norm_backward": ("layer_norm", _with_backward),
    "batch_norm": ("batch_norm", _batch_norm),
}


@contextmanager
def replaced(operation: str) -> Iterator[None]:
    """Replace an operation of PyTorch by one that `torch.compile` has made; an empty name replaces none."""
    if not operation:
        yield
        return
    name, function = REPLACEMENTS[operation]
    original = getattr(functional, name)
    setattr(functional, name, function)
    yield
    setattr(functional, name, original)


def profile(step: Callable[[], object], path: Path) -> None:
    """Write the trace of a few steps, with shapes."""
    with profiler(path, WARM_UP, 2, STEPS) as profiling:
        for _ in range(WARM_UP + 2 + STEPS):
            step()
            profiling.step()


def step_us(step: Callable[[], object], steps: int = 50) -> float:
    """Mean time of a step on the GPU, without a profiler, in us."""
    for _ in range(5):
        step()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(steps):
        step()
    end.record()
    end.synchronize()
    return 1e3 * begin.elapsed_time(end) / steps


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--replace", default="", choices=("", *REPLACEMENTS))
    parser.add_argument("--graph", action="store_true", help="replay a CUDA graph; inference alone")
    options = parser.parse_args()
    torch.manual_seed(0)
    make, batch = PROGRAMS[options.program]
    with replaced(options.replace):
        step = make(batch, graph=options.graph)
        profile(step, options.trace)
        print(f"{options.program} {options.replace or 'as it is'}: {step_us(step):.1f} us a step without a profiler")
