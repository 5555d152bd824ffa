"""`warpladder doctor`: checks this machine for everything that recording and the dashboard can use, and says how to get what is missing."""

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

import click

from warpladder.collectors.choice import ENTRIES, GPU_MODULES, gpu_problem
from warpladder.collectors.core.environment import has_module
from warpladder.collectors.cuda import disassembly
from warpladder.collectors.nsight_compute.entry import NCU
from warpladder.collectors.nsight_systems.entry import NSYS
from warpladder.collectors.ranks.programs import LAUNCHERS, launcher_program
from warpladder.commands.common import format_option
from warpladder.dashboard.text.formats import TABLE_OR_JSON, TableOrJson, json_text
from warpladder.installation import how_to_install
from warpladder.screen import print_text

_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Module -> the peers that it provides.
_PEERS: Final = {
    "torch": "cuBLAS, cuDNN, torch.compile and DDP",
    "triton": "compiles the kernels of torch.compile; comes with torch, and needs gcc and Python's headers",
    "cutensor": "cuTENSOR",
    "nvmath": "cuBLASLt",
}
#: Module -> the package that has it, and what it is for: the routes of `call_routes`.
_ROUTES: Final = {
    "cuda.core": ("cuda-core", "its own route"),
    "pybind11": ("pybind11", "an extension built by nvcc"),
    "ninja": ("ninja", "builds the extension of PyTorch"),
    "pycuda": ("pycuda", "its own route; pip builds it by nvcc and g++"),
}
#: Module -> the extra that brings it, and what it is for.
_EXTRAS: Final = {
    "streamlit": ("dashboard", "the pages of warpladder app"),
    "plotly": ("dashboard", "charts as files"),
    "numba": ("host", "the project's variants for a processor"),
    "mcp": ("mcp", "warpladder mcp"),
    "duckdb": ("sql", "warpladder sql"),
}
_PEERS_CURE: Final = f"optional: {how_to_install('peers')}"


@dataclass(frozen=True)
class Finding:
    """One requirement. `detail` says what was found, or how to get it."""

    what: str
    is_met: bool
    detail: str


@click.command("doctor")
@format_option("findings", TABLE_OR_JSON)
def command(form: TableOrJson) -> None:
    """Show what this machine has, what is missing, how to get it.

    The last lines are the commands that work here.
    """
    if form == "json":
        now = [dict(zip(("command", "does"), each, strict=True)) for each in possible()]
        print_text(json_text({"findings": [asdict(each) for each in examine()], "possible": now}))
        return
    from warpladder.dashboard.ui.text import plain_lines, plain_table

    found = [("yes" if each.is_met else "no", each.what, each.detail) for each in examine()]
    lines = plain_table(("", "what", "found, or how to get it"), found)
    print_text(plain_lines([*lines, "", *plain_table(("what you can do now", ""), list(possible()))]))


def examine() -> Iterator[Finding]:
    """Yield a finding for each requirement, the most important first."""
    from warpladder.collectors.core.environment import cpu_name

    yield Finding("Python", sys.version_info >= (3, 11), f"{sys.version.split()[0]} (3.11 or newer is needed)")
    yield Finding("processor", True, f"{cpu_name()}, {len(os.sched_getaffinity(0))} cores usable")
    problem = gpu_problem()
    yield Finding("GPU", problem is None, problem or ", ".join(_gpu_names()))
    for module, package in GPU_MODULES.items():
        yield _package(module, package, f"{how_to_install('gpu')}, where there is an NVIDIA driver")
    for module, use in _PEERS.items():
        yield _package(module, module, f"peers: {use}; {_PEERS_CURE}")
    for module, (package, use) in _ROUTES.items():
        yield _package(
            module, package, f"call_routes: {use}; {'optional: pip install pycuda' if module == 'pycuda' else _PEERS_CURE}"
        )
    nvcc = shutil.which("nvcc")
    yield Finding("nvcc", nvcc is not None, nvcc or "call_routes: builds its extensions; optional: the CUDA toolkit")
    npp = _npp()
    yield Finding("NPP", npp is not None, npp or f"peer of conv2d; {_PEERS_CURE}, or the CUDA toolkit")
    problem = disassembly.problem()
    yield Finding("nvdisasm", problem is None, problem or f"{disassembly.version()}, keeps the machine code of kernels")
    extractor = disassembly.program_path("cuobjdump")
    without = "machine code of programs and libraries; optional: pip install nvidia-cuda-cuobjdump"
    yield Finding("cuobjdump", extractor is not None, extractor or without)
    for need in (need for entry in ENTRIES.values() for need in entry.needs):
        yield Finding(need.name, need.problem is None, need.found)
    yield _package("mpi4py", "mpi4py", f"optional, for several GPUs: {how_to_install('mpi')}")
    program = launcher_program("local")
    yield Finding(LAUNCHERS["local"], program is not None, program or "starts processes on several GPUs; comes with mpi4py")
    yield _package("nvidia.nccl", "nvidia-nccl-cu13", "optional, for training on several GPUs: pip install nvidia-nccl-cu13")
    for module, (extra, use) in _EXTRAS.items():
        yield _package(module, module, f"{use}; optional: {how_to_install(extra)}")
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    yield Finding("Chromium", browser is not None, browser or "needed for PNG, SVG and PDF charts: apt-get install chromium")


def possible() -> Iterator[tuple[str, str]]:
    """Yield the commands that work on this machine, each with what it does."""
    gpu = gpu_problem() is None
    if has_module("streamlit"):
        yield "warpladder app", "the dashboard, with shipped runs of an H200 and an H100"
    yield "warpladder record", f"the variants for {'the GPU and ' if gpu else ''}the processor, for up to {60 if gpu else 30} s"
    if gpu and NCU.problem is None:
        yield "warpladder record conv2d --counters", "why one variant is faster than another"
    if disassembly.problem() is None and has_module("cuda.bindings"):
        yield "warpladder disassemble my_kernel.cu", "its machine code, without a GPU"
    yield "warpladder new my_kernel", "a file of your own to start from"
    yield 'warpladder versus "./old" "./new"', "whole programs, side by side"
    if NSYS.problem is None:
        yield "warpladder profile -- ./program", "the timeline of a program"
        yield "warpladder import report.nsys-rep", "a report of Nsight Systems"
    else:
        yield "warpladder import report.sqlite", "a report that nsys has exported"


def _package(module: str, package: str, cure: str) -> Finding:
    from importlib import metadata

    if not has_module(module):
        return Finding(package, False, cure)
    try:
        return Finding(package, True, metadata.version(package))
    except metadata.PackageNotFoundError:
        return Finding(package, True, "installed")


def _npp() -> str | None:
    """Return the path of NPP, NVIDIA's image-processing library; None if it is not found."""
    if not has_module("cuda.pathfinder"):
        return None
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        return str(load_nvidia_dynamic_lib("nppif").abs_path)
    except DynamicLibNotFoundError:
        return None


def _gpu_names() -> list[str]:
    import pynvml

    pynvml.nvmlInit()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    return [f"{pynvml.nvmlDeviceGetName(handle)}, driver {pynvml.nvmlSystemGetDriverVersion()}" for handle in handles]
