"""The handwritten digits that the network learns: 1,797 real ones of 8x8 pixels, scaled to 28x28 (data/ATTRIBUTION.md)."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

SIDE: Final = 28
PIXELS: Final = SIDE**2
CLASSES: Final = 10
DEV: Final = 300  # digits held back; the other 1,497 are for training

_FILE: Final = Path(__file__).resolve().parent / "data" / "digits.npz"
_SPLIT_SEED: Final = 213
_LARGEST: Final = 16


@dataclass(frozen=True)
class Digits:
    """Images, float32 of shape (n, 784) with values of 0 to 1, and their labels 0 to 9 of shape (n,)."""

    images: np.ndarray
    labels: np.ndarray


@cache
def training_and_dev() -> tuple[Digits, Digits]:
    """The digits for training and those held back. The split has a fixed seed."""
    with np.load(_FILE, allow_pickle=False) as file:
        pixels, labels = file["pixels"], file["labels"]
    images = enlarged(pixels)
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(labels))
    dev, training = order[:DEV], order[DEV:]
    return Digits(images[training], labels[training]), Digits(images[dev], labels[dev])


def enlarged(pixels: np.ndarray) -> np.ndarray:
    """Square images of values 0 to 16 -> (n, 784) float32 of 0 to 1, by linear interpolation between the pixels' centres.

    Beyond the outermost centres the outermost pixels continue.
    """
    small = pixels.shape[1]
    centres = np.clip((np.arange(SIDE) + 0.5) * small / SIDE - 0.5, 0, small - 1)
    low = np.minimum(centres.astype(int), small - 2)
    weights = np.zeros((SIDE, small))
    weights[np.arange(SIDE), low] = 1 - (centres - low)
    weights[np.arange(SIDE), low + 1] = centres - low
    large = weights @ pixels.astype(np.float64) @ weights.T / _LARGEST
    return large.reshape(len(pixels), PIXELS).astype(np.float32)


def one_hot(labels: np.ndarray) -> np.ndarray:
    """Labels -> float32 of shape (n, 10)."""
    return np.asarray(np.eye(CLASSES, dtype=np.float32)[labels])
