"""An extension module of pybind11, built by nvcc."""

import importlib.util
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from warpladder.workloads.api import Array, NotInstalled
from warpladder.workloads.call_routes.routes.extension import CACHE_VARIABLE, compute_capability, folder_for, nvcc
from warpladder.workloads.call_routes.routes.route import Route, address_by_interface, current_stream, kernel_text
from warpladder.workloads.call_routes.rungs import NAME

_MODULE: Final = "transpose_pybind11"
#: What follows the kernel's text. Addresses and the stream come as numbers.
_BINDING: Final = """
#include <cstdint>
#include <stdexcept>
#include <pybind11/pybind11.h>

static void launch(uintptr_t x, uintptr_t y, int height, int width, uintptr_t stream) {
  const dim3 grid((width + kTile - 1) / kTile, (height + kTile - 1) / kTile), block(kTile, kRowsAtOnce);
  transpose<<<grid, block, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<float*>(y), height, width);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

PYBIND11_MODULE(transpose_pybind11, module) { module.def("transpose", &launch); }
"""


class PybindExtension(Route):
    """A module in C++ that launches the kernel by `<<<>>>`, with pybind11 between Python and C++.

    Idea: nvcc compiles the kernel and the launch ahead; Python calls a function of five numbers.
    Bottleneck: Before the first call a compiler of C++ has to run. A call converts five numbers.
    Next: The same with PyTorch's tensors: `torch_ext`.
    Source: pybind11 3.1; the report's section 0.3.1, which gave this route up for the conversions of its arrays.
    """

    interface = "__cuda_array_interface__"
    caches = (CACHE_VARIABLE,)

    def start(self) -> None:
        import pybind11

        self._headers = pybind11.get_include()
        self._compiler = nvcc()
        if not Path(sysconfig.get_paths()["include"], "Python.h").is_file():
            raise NotInstalled("needs Python's headers, which are not installed: apt-get install python3-dev")

    def compile(self) -> None:
        text = kernel_text() + _BINDING
        suffix, arch = sysconfig.get_config_var("EXT_SUFFIX"), "sm_{}{}".format(*compute_capability())
        folder = folder_for(text, suffix, arch, self._compiler, self._headers)
        self._file = folder / f"{_MODULE}{suffix}"
        if self._file.exists():
            return
        source, made = folder / f"{_MODULE}.cu", folder / f"made-{_MODULE}{suffix}"
        source.write_text(text)
        includes = [f"-I{self._headers}", f"-I{sysconfig.get_paths()['include']}"]
        options = ["-O3", "-std=c++17", f"-arch={arch}", "-shared", "-Xcompiler", "-fPIC,-fvisibility=hidden"]
        command = [self._compiler, *options, *includes, str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-200:])
            raise RuntimeError(f"nvcc does not build the pybind11 extension: {first}")
        made.replace(self._file)

    def load(self) -> None:
        spec = importlib.util.spec_from_file_location(_MODULE, self._file)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._transpose = getattr(module, NAME)

    def hand_over(self, array: Array) -> int:
        return address_by_interface(array)

    def address_of(self, handle: Any) -> int:
        return int(handle)

    def launcher(self, x: Any, y: Any) -> Callable[[], object]:
        transpose, height, width, stream = self._transpose, self.height, self.width, current_stream()
        return lambda: transpose(x, y, height, width, stream)
