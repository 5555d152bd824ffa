"""The input sets of a case on the GPU, and the buffers that variants read, which are filled from one of them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import cupy
import numpy as np

from warpladder.workloads.api import Array

if TYPE_CHECKING:
    from warpladder.collectors.cuda.device import CudaDevice

#: The sets stay on the host if they would take more than this share of the free memory.
_MOST_OF_FREE: Final = 0.25


class InputSets:
    """The input sets of a case.

    Args:
        buffers: the arrays that variants read, by name. They hold the first set.
        first: the first set, on the host.

    Attributes:
        loaded: number of the set that the buffers hold; None if they hold other inputs.
        on_host: the inputs that the buffers hold, on the host.
    """

    def __init__(self, device: "CudaDevice", buffers: Mapping[str, Array], first: Mapping[str, np.ndarray]) -> None:
        self._device, self._buffers = device, buffers
        self._hosted: Sequence[Mapping[str, np.ndarray]] = (first,)
        self._sets: Sequence[Mapping[str, Array]] = ()
        self._new: Mapping[str, np.ndarray] = {}  # what `load` was given last, and its copy on the device
        self._new_on_device: Mapping[str, Array] = {}
        self._new_prints: Mapping[str, int] = {}
        self.loaded: int | None = 0
        self.on_host = first
        self._prints: list[dict[str, int]] = [self._fingerprints()]
        self._loaded_prints = self._prints[0]

    @property
    def count(self) -> int:
        return len(self._hosted)

    def keep(self, sets: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Keep these sets, on the device if they fit. The first is the one that is loaded."""
        self._hosted, self._prints = sets, []
        self._sets = _on_device(sets)
        for number in reversed(range(len(sets))):  # ends with the first
            self.enqueue(number)
            self._prints.insert(0, self._fingerprints())
        self._became(0)

    def use(self, number: int) -> None:
        """Fill the buffers from a set."""
        self.enqueue(number)
        self._became(number)

    def load(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Fill the buffers from inputs that do not belong to the sets. Each variant is given the same ones, one after another."""
        if inputs is not self._new:
            self._new, self._new_on_device = inputs, {}
            self._new_on_device = next(iter(_on_device([inputs])), {})
        self._fill(self._new_on_device, inputs)
        self._new_prints = self._loaded_prints = self._fingerprints()
        self.loaded, self.on_host = None, inputs

    def changed(self) -> tuple[str, ...]:
        """Return the names of the inputs whose buffer or copy on the device no longer holds what was loaded, and restore both.

        A kernel that writes past the end of a buffer may meet the copies, which the next variant would read.
        """
        held = [
            (self._buffers, self.on_host, self._loaded_prints),
            (self._new_on_device, self._new, self._new_prints),  # empty where none is kept
            *zip(self._sets, self._hosted, self._prints, strict=False),
        ]
        names = list[str]()
        for arrays, on_host, prints in held:
            damaged = [name for name, array in arrays.items() if self._device.fingerprint(array) != prints[name]]
            if damaged:
                self._set({name: on_host[name] for name in damaged}, arrays)
            names += damaged
        return tuple(dict.fromkeys(names))

    def close(self) -> None:
        """Free the memory."""
        self._buffers, self._sets, self._hosted, self._new, self._new_on_device = {}, (), (), {}, {}

    def enqueue(self, number: int) -> None:
        """Enqueue copies that fill the buffers from a set; a CUDA graph can hold them if the sets are on the device."""
        self._fill(self._sets[number] if self._sets else {}, self._hosted[number])

    def _fill(self, on_device: Mapping[str, Array], on_host: Mapping[str, np.ndarray]) -> None:
        """Fill the buffers from inputs on the device, or where they are not there, from those on the host."""
        if not on_device:
            self._set(on_host)
        for name, array in on_device.items():
            self._buffers[name].data.copy_from_device_async(array.data, array.nbytes, self._device.stream)

    def _set(self, inputs: Mapping[str, np.ndarray], arrays: Mapping[str, Array] | None = None) -> None:
        for name, array in inputs.items():
            (arrays or self._buffers)[name].set(array, self._device.stream)
        self._device.stream.synchronize()

    def _became(self, number: int) -> None:
        self.loaded, self.on_host, self._loaded_prints = number, self._hosted[number], self._prints[number]

    def _fingerprints(self) -> dict[str, int]:
        return {name: self._device.fingerprint(array) for name, array in self._buffers.items()}


def _on_device(sets: Sequence[Mapping[str, np.ndarray]]) -> Sequence[Mapping[str, Array]]:
    """Copies of input sets on the device; none where they would take too much of the free memory."""
    size_bytes = sum(array.nbytes for each in sets for array in each.values())
    if size_bytes > _MOST_OF_FREE * cupy.cuda.Device().mem_info[0]:
        return ()
    return [{name: cupy.asarray(array) for name, array in each.items()} for each in sets]
