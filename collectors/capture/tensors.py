"""The memory of PyTorch's tensors."""

import math
from typing import Any

import numpy as np


class OfTorch:
    """The memory of a tensor of PyTorch, from its first element to its last."""

    def __init__(self, tensor: Any) -> None:
        extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        count = extent if math.prod(tensor.shape) else 0
        self._flat = tensor.detach().as_strided((count,), (1,))
        self.kind = str(tensor.dtype).removeprefix("torch.")
        self.shape = tuple(tensor.shape) if tensor.is_contiguous() else (count,)
        self.start = int(tensor.data_ptr())

    @property
    def nbytes(self) -> int:
        """Its size."""
        return int(self._flat.numel() * self._flat.element_size())

    def _bytes(self) -> Any:
        import torch

        return self._flat.view(torch.uint8)

    def read(self) -> np.ndarray:
        """A copy on the host, as bytes."""
        host: np.ndarray = self._bytes().cpu().numpy()
        return host.copy()

    def write(self, data: np.ndarray) -> None:
        """Fill it with bytes."""
        import torch

        self._bytes().copy_(torch.from_numpy(data))
