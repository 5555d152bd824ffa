"""A case's inputs and outputs in page-locked memory, and small inputs side by side, which one copy brings to the device."""

from collections.abc import Mapping, Sequence
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime

from warpladder.workloads.api import Buffers


def pinned_like(array: np.ndarray) -> np.ndarray:
    """Allocate uninitialised page-locked host memory with the shape and type of an array."""
    memory = cupy.cuda.alloc_pinned_memory(array.nbytes)
    return np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)


class Together:
    """Inputs side by side in page-locked memory, and in the same order in their own memory on the device.

    Args:
        inputs: arrays on the host. All but the last have bytes that keep the next one aligned.

    Attributes:
        host, device: the inputs by name, as views of the two pieces of memory.
    """

    def __init__(self, inputs: Mapping[str, np.ndarray]) -> None:
        self._host = pinned_like(np.empty(sum(array.nbytes for array in inputs.values()), np.uint8))
        self._device = cupy.empty(self._host.shape, self._host.dtype)
        self.host: dict[str, np.ndarray] = {}
        self.device: dict[str, Any] = {}
        first = 0
        for name, array in inputs.items():
            self.host[name] = self._host[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
            self.device[name] = cupy.ndarray(array.shape, array.dtype, memptr=self._device.data + first)
            first += array.nbytes
        self.load(inputs)

    def load(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Take other values of the inputs, on the host."""
        for name, array in self.host.items():
            array[...] = inputs[name]

    def copy(self, stream: Any) -> None:
        """Enqueue the copy of all inputs to the device."""
        to, source = self._device.data.ptr, self._host.ctypes.data
        runtime.memcpyAsync(to, source, self._host.nbytes, runtime.memcpyHostToDevice, stream.ptr)


class PinnedBuffers:
    """Inputs and outputs in page-locked memory, allocated at the first use."""

    def __init__(self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]) -> None:
        self._inputs, self._outputs = inputs, outputs
        self._arrays: dict[str, np.ndarray] = {}
        self._together: dict[tuple[str, ...], Together] = {}

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """Copies of the inputs, and room for the outputs."""
        if not self._arrays:
            self._arrays = {name: pinned_like(array) for name, array in {**self._inputs, **self._outputs}.items()}
            self._fill()
        return self._arrays

    @property
    def outputs(self) -> Buffers:
        """Room for the outputs; empty if none was used yet."""
        return {name: array for name, array in self._arrays.items() if name in self._outputs}

    def together(self, names: Sequence[str]) -> Together:
        """Return inputs side by side, in this order."""
        key = tuple(names)
        if key not in self._together:
            self._together[key] = Together({name: self._inputs[name] for name in names})
        return self._together[key]

    def load(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Take other values of the inputs, unless they are those that it has."""
        if inputs is not self._inputs:
            self._inputs = inputs
            self._fill()
            for together in self._together.values():
                together.load(inputs)

    def _fill(self) -> None:
        for name, array in self._inputs.items():
            if name in self._arrays:
                self._arrays[name][...] = array
