"""The generator: its layers, its cases, its buffers and its random weights.

z (100) x dense -> 4x4 pixels of `channels` channels; four transposed convolutions, each doubling both sides: channels -> /2 -> /4
-> /8 -> 3. Batch normalisation and ReLU follow all but the last, tanh the last. Pixels are stored as the student report's: rows,
columns, channels (NHWC); weights of a transposed convolution as its W[r, s, k, c], k being the output channel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, CaseSet, Params, Part, split_evenly
from warpladder.workloads.ladder import counted

LATENT: Final = 100
KERNEL_SIZE: Final = 5
REPORT_SIDE: Final = 4
COLOURS: Final = 3
EPSILON: Final = 1e-5  # of batch normalisation
REPORT_CHANNELS: Final = 512
RESIDENT: Final = "resident"

_REPORT_IMAGES: Final = (10, 100, 880, 1000, 2224, 2512, 4856, 5248)  # table 4


@dataclass(frozen=True)
class Layer:
    """A transposed convolution of `side` x `side` pixels to twice as many in both directions."""

    number: int
    side: int
    channels: int
    out_channels: int

    @property
    def last(self) -> bool:
        return self.number == 4

    @property
    def outputs(self) -> int:
        """Numbers that an image has after this layer."""
        return 4 * self.side**2 * self.out_channels

    @property
    def products(self) -> int:
        """Multiply-adds of an image, without those by a zero. Along one direction an even output has two inputs and an odd one
        three. The near edge has one less and the far edge two less, which makes 5 side - 3 in all."""
        return (5 * self.side - 3) ** 2 * self.channels * self.out_channels


def images_of(case: Case) -> int:
    """Images that the case generates."""
    return int(case.params["images"])


def channels_of(case: Case) -> int:
    """Channels of the first 4x4 pixels: the student report's 512, or those of a smaller network."""
    return int(case.params.get("channels", REPORT_CHANNELS))


def side_of(case: Case) -> int:
    """Rows and columns of the first pixels: the student report's 4, or those of a smaller network. Images have 16 times as
    many."""
    return int(case.params.get("side", REPORT_SIDE))


def layers(case: Case) -> tuple[Layer, ...]:
    """The four transposed convolutions."""
    channels = channels_of(case)
    widths = (channels, channels // 2, channels // 4, channels // 8, COLOURS)
    return tuple(Layer(n + 1, side_of(case) << n, widths[n], widths[n + 1]) for n in range(4))


def buffers(case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    """Inputs and outputs. `bn0` to `bn3` have four rows: scale, shift, mean and variance of each channel."""
    images, channels, side = images_of(case), channels_of(case), side_of(case)
    inputs = {
        "z": Buffer((images, LATENT)),
        "w0": Buffer((side**2 * channels, LATENT)),
        "bn0": Buffer((4, channels)),
    }
    for layer in layers(case):
        inputs[f"w{layer.number}"] = Buffer((KERNEL_SIZE, KERNEL_SIZE, layer.out_channels, layer.channels))
        inputs[f"b{layer.number}"] = Buffer((layer.out_channels,))
        if not layer.last:
            inputs[f"bn{layer.number}"] = Buffer((4, layer.out_channels))
    return inputs, {"images": Buffer((images, 16 * side, 16 * side, COLOURS))}


def make_case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case with its operations (the products of the definition that are not by a zero) and bytes (weights and all). With
    `weights=resident` only z is copied to the device."""
    case = Case(params, 0, 0, sets, size_rank)
    products = LATENT * side_of(case) ** 2 * channels_of(case) + sum(layer.products for layer in layers(case))
    inputs, _ = buffers(case)
    resident = tuple(name for name in inputs if name != "z") if params.get("weights") == RESIDENT else ()
    return counted(replace(case, resident=resident), 2 * images_of(case) * products, buffers(case))


def shares(case: Case, ranks: int) -> Sequence[Part]:
    """The part of each rank: images that follow one another. Sizes differ by one at most. Every rank has all weights.

    Raises:
        NotShareable: there are fewer images than ranks.
    """
    spans = split_evenly(images_of(case), ranks, "images")
    return [Part(make_case({**case.params, "images": images}), first) for first, images in spans]


def cases() -> tuple[Case, ...]:
    """Two small networks for a quick look, the student report's eight numbers of images, and an odd one."""
    small = tuple(make_case({"images": n, "channels": 64}, ("quick",), rank) for rank, n in enumerate((4, 16)))
    full = tuple(
        make_case({"images": images}, ("report", "full"), rank) for rank, images in enumerate(_REPORT_IMAGES, start=len(small))
    )
    return (*small, *full, make_case({"images": 3}, ("report", "full")))


def emulation_cases() -> tuple[Case, ...]:
    """Networks small enough for the CPU emulator: one whose channels do not fill a vector, and one whose channels fill
    vectors."""
    return (make_case({"images": 3, "channels": 8, "side": 2}), make_case({"images": 5, "channels": 32, "side": 1}))


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Random weights. They keep the outputs of every layer near one in size, so that neither ReLU nor tanh hides an error."""
    inputs, _ = buffers(case)
    arrays: dict[str, np.ndarray] = {}
    for name, buffer in inputs.items():
        if name.startswith("bn"):
            _, channels = buffer.shape
            lowest, highest = [0.5, -0.5, -0.5, 0.5], [1.5, 0.5, 0.5, 1.5]
            values: np.ndarray = rng.uniform(lowest, highest, (channels, 4)).T
        elif name.startswith("w"):
            # An output has 25/4 taps of each channel, on average; the dense layer has one.
            terms = buffer.shape[-1] * (KERNEL_SIZE**2 / 4 if len(buffer.shape) == 4 else 1)
            values = rng.standard_normal(buffer.shape, np.float32) / np.float32(np.sqrt(terms))
        else:
            values = rng.standard_normal(buffer.shape, np.float32)
        arrays[name] = np.ascontiguousarray(values, buffer.dtype)
    return arrays
