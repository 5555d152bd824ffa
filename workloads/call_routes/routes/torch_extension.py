"""PyTorch's cpp_extension."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Array, NotInstalled
from warpladder.workloads.call_routes.routes.extension import CACHE_VARIABLE, compute_capability, folder_for, nvcc
from warpladder.workloads.call_routes.routes.route import Route, kernel_text
from warpladder.workloads.call_routes.rungs import NAME

_MODULE: Final = "transpose_torch"
#: Variable of the environment that PyTorch takes the architectures from.
_ARCHITECTURES: Final = "TORCH_CUDA_ARCH_LIST"
#: What follows the kernel's text in the file that nvcc compiles; it reads none of PyTorch's headers.
_LAUNCH: Final = """
void launch(const float* x, float* y, int height, int width, cudaStream_t stream) {
  const dim3 grid((width + kTile - 1) / kTile, (height + kTile - 1) / kTile), block(kTile, kRowsAtOnce);
  transpose<<<grid, block, 0, stream>>>(x, y, height, width);
}
"""
_BINDING: Final = """
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

void launch(const float* x, float* y, int height, int width, cudaStream_t stream);

static void transpose(at::Tensor x, at::Tensor y) {
  launch(x.data_ptr<float>(), y.data_ptr<float>(), (int)x.size(0), (int)x.size(1), c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("transpose", &transpose); }
"""


class TorchExtension(Route):
    """A module in C++ that takes tensors, built by PyTorch.

    Idea: PyTorch writes the build, finds the compilers and loads the module. The function takes tensors and PyTorch's current stream.
    Bottleneck: The build reads PyTorch's headers, which takes most of its time. A call unwraps two tensors.
    Next: The same without PyTorch: `pybind11`.
    Source: torch.utils.cpp_extension.load of PyTorch 2.11.
    """

    interface = "DLPack"
    caches = (CACHE_VARIABLE,)

    def start(self) -> None:
        import torch
        from torch.utils import cpp_extension

        self._torch, self._extension = torch, cpp_extension
        if not (cpp_extension.is_ninja_available() and shutil.which("g++")):
            raise NotInstalled("needs ninja and g++ on PATH, which torch.utils.cpp_extension builds with: pip install ninja")
        toolkit = str(Path(nvcc()).resolve().parent.parent)
        cpp_extension.CUDA_HOME = cpp_extension.CUDA_HOME or toolkit

    def compile(self) -> None:
        arch = "{}.{}".format(*compute_capability())
        kernel = kernel_text() + _LAUNCH
        folder = folder_for(kernel, _BINDING, arch, self._torch.__version__)
        files = {folder / "binding.cpp": _BINDING, folder / "kernel.cu": kernel}
        for file, text in files.items():
            if not file.exists():  # a file that is written anew is compiled anew
                file.write_text(text)
        before = os.environ.get(_ARCHITECTURES)
        os.environ[_ARCHITECTURES] = arch  # else for every GPU that is there
        try:
            module = self._extension.load(_MODULE, [str(file) for file in files], build_directory=str(folder), with_cuda=True)
        finally:
            os.environ.pop(_ARCHITECTURES)
            if before is not None:
                os.environ[_ARCHITECTURES] = before
        self._transpose = getattr(module, NAME)

    def hand_over(self, array: Array) -> Any:
        return torch_bridge.as_tensor(array)

    def address_of(self, handle: Any) -> int:
        return int(handle.data_ptr())

    def launcher(self, x: Any, y: Any) -> Callable[[], object]:
        torch_bridge.use_current_stream()
        transpose = self._transpose
        return lambda: transpose(x, y)
