"""Launches of the rungs for few images: the dense layer, three layers in units of equal work, and the last layer."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from warpladder.workloads.api import MULTIPROCESSORS, Buffer, Case, Constants, Launch, Params, ceil_div
from warpladder.workloads.gan_tconv.problem import COLOURS, KERNEL_SIZE, Layer, channels_of, images_of, layers, side_of
from warpladder.workloads.ladder import launch, template

_OF: Final = Constants(Path(__file__).parent / "kernels" / "few_images.cuh")
_TAPS: Final = KERNEL_SIZE**2
_FLOAT: Final = 4
_MOST_PER_THREAD: Final = 5  # images
#: Blocks of a cluster -> clusters that run at once, one block a multiprocessor. Nsight Compute says so of an H200
#: (`launch__cluster_max_active`), where a cluster lies within a GPC. Of other numbers of blocks nothing was measured.
_AT_ONCE: Final[Mapping[int, int]] = {1: MULTIPROCESSORS, 2: MULTIPROCESSORS // 2, 3: 39, 4: 30, 6: 17, 8: 15}


@dataclass(frozen=True)
class Arithmetic:
    """How a rung multiplies.

    Attributes:
        kernel: gives the name expression of a layer, from images a thread, slices of a unit, and whether outputs are rounded.
        depth: channels of a step.
        stages: steps in shared memory.
        weights: images of a thread that take as long as reading a step's weights from shared memory.
        overhead: channels that take as long as the beginning and the end of a block.
        rounded: operands are rounded to TF32.
        most_channels: of a block, where its layer can be cut so: sums lose accuracy with each further one.
    """

    kernel: Callable[[int, int, bool], str]
    depth: int
    stages: int
    weights: int
    overhead: int
    rounded: bool = False
    most_channels: float = math.inf


@dataclass(frozen=True)
class Plan:
    """A layer in units.

    Attributes:
        per: images of a thread; a unit has twice as many.
        slices: blocks that share the channels of a unit.
        slice: channels of a block.
        units: units of all images.
    """

    per: int
    slices: int
    slice: int
    units: int


def plan(case: Case, layer: Layer, arithmetic: Arithmetic) -> Plan:
    """The plan with which the last block ends soonest."""
    squares, ranges = ceil_div(layer.side, _OF["kTile"]) ** 2, ceil_div(layer.out_channels, _OF["kColumns"])

    def plan_of(per: int, slices: int) -> Plan:
        channels = ceil_div(layer.channels, slices * arithmetic.depth) * arithmetic.depth
        return Plan(per, slices, channels, ceil_div(images_of(case), 2 * per) * squares * ranges)

    def cost(plan: Plan) -> tuple[bool, int, int]:
        rounds = ceil_div(plan.units, _AT_ONCE[plan.slices])
        time = rounds * (plan.slice * (plan.per + arithmetic.weights) + arithmetic.overhead * _MOST_PER_THREAD)
        return plan.slice > arithmetic.most_channels, time, -plan.per

    plans = [plan_of(per, slices) for per in range(1, _MOST_PER_THREAD + 1) for slices in _AT_ONCE]
    return min((plan for plan in plans if (plan.slices - 1) * plan.slice < layer.channels), key=cost)


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """`x0` to `x3`: pixels between layers, by [image][y][x][channel]."""
    images, side = images_of(case), side_of(case)
    buffers = {"x0": Buffer((images, side, side, channels_of(case)))}
    for layer in layers(case)[:-1]:
        buffers[f"x{layer.number}"] = Buffer((images, 2 * layer.side, 2 * layer.side, layer.out_channels))
    return buffers


def launches(case: Case, arithmetic: Arithmetic) -> Sequence[Launch]:
    """One operation. Each kernel asks L2 for the weights of the next layer."""
    *middle, last = layers(case)
    return [_dense(case, arithmetic.rounded), *(_layer(case, layer, arithmetic) for layer in middle), _last(case, last)]


def _dense(case: Case, rounded: bool) -> Launch:
    outputs, images = side_of(case) ** 2 * channels_of(case), images_of(case)
    grid = (ceil_div(outputs, _OF["kDenseRows"]), ceil_div(images, _OF["kDenseImages"]))
    args = ("z", "w0", "bn0", "x0", "w1", _weights(layers(case)[0]), images, outputs, channels_of(case))
    return launch(template("dense", rounded), grid, _OF["kThreads"], *args)


def _layer(case: Case, layer: Layer, arithmetic: Arithmetic) -> Launch:
    n, layer_plan = layer.number, plan(case, layer, arithmetic)
    following = layers(case)[n]
    rows = 2 * layer_plan.per * _OF["kHalo"] ** 2 + _TAPS * _OF["kColumns"]
    return launch(
        arithmetic.kernel(layer_plan.per, layer_plan.slices, arithmetic.rounded and not following.last),
        *(layer_plan.units * layer_plan.slices, _OF["kThreads"]),
        *(f"x{n - 1}", f"w{n}", f"b{n}", f"bn{n}", f"x{n}", f"w{n + 1}", _weights(following)),
        *(layer.side, images_of(case), layer.channels, layer.out_channels, layer_plan.slice),
        shared_bytes=arithmetic.stages * rows * arithmetic.depth * _FLOAT,
    )


def _last(case: Case, last: Layer) -> Launch:
    images, threads = images_of(case), _OF["kQuadThreads"]
    blocks = ceil_div(images * (last.side // 2) ** 2, threads // _OF["kQuadLanes"])
    args = ("x3", "w4", "b4", "images", last.side, last.channels, images)
    return launch("last_layer", blocks, threads, *args, shared_bytes=_TAPS * COLOURS * last.channels * _FLOAT)


def _weights(layer: Layer) -> int:
    return _TAPS * layer.out_channels * layer.channels


FMA: Final = Arithmetic(lambda per, slices, rounded: f"layer<{per}, {slices}>", depth=16, stages=4, weights=1, overhead=16)
TENSOR_CORES: Final = Arithmetic(
    lambda per, slices, rounded: template("layer", per, slices, rounded),
    depth=16,
    stages=4,
    weights=3,
    overhead=32,
    rounded=True,
)
#: Twice the products of TF32 leave less of a block's time to weights and to its ends: as much as multiply-adds. With sums in float32,
#: ten images took 97 µs on an H100, and with the plan of one product 104 µs. Tensor cores cut their sums off. Ten images, whose blocks have
#: up to 128 channels, had an error of 1.2e-6, and 100 images, whose blocks had 256, one of 3.1e-6.
CORRECTED: Final = replace(FMA, most_channels=128)
