"""The headers that a CUDA source includes in addition to its own files: CUDA's, from where they are installed, and C++'s, from
CUDA's.

NVRTC has no headers. Those of CUDA are looked for as NVIDIA's `cuda.pathfinder` does: in the packages `nvidia-cuda-runtime`,
`nvidia-cuda-crt` and `nvidia-cuda-cccl`, in conda, in CUDA_PATH or CUDA_HOME, and where toolkits are usually installed. A header of
the C++ library is taken from `cuda/std`, whose names then stand in `std` too. A source without `#include` needs none of this.
"""

import hashlib
import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_VERSION: Final = re.compile(r"^#define +(?:CUDART_VERSION|CCCL_VERSION|CURAND_VERSION)\s+(\d+)", re.MULTILINE)
#: A header that only this part of the toolkit has -> the part's name for `cuda.pathfinder`.
_PARTS: Final[Mapping[str, str]] = {
    "cuda_runtime_api.h": "cudart",
    "cuda/std/version": "cccl",
    "curand.h": "curand",
    "crt/host_defines.h": "nvcc",
}
#: Files that state the version of a part, and change when it is reinstalled.
_MARKS: Final = ("cuda_runtime_api.h", "cuda/std/__cccl/version.h", "cuda/version", "curand.h", "crt/host_defines.h")
_CUPY_S: Final = ("libcudacxx", "cub", "thrust")
#: C++ headers that CUDA has in `cuda/std`, some of them under another name in some versions.
_OF_CPP: Final = (
    "array atomic barrier bit bitset cassert ccomplex chrono climits cmath complex concepts cstddef cstdint cstdlib "
    "cstring ctime expected functional initializer_list iterator latch limits numbers numeric optional ratio semaphore "
    "span tuple type_traits utility variant algorithm memory new ranges mdspan"
)
_OF_C: Final = "assert limits math stddef stdint stdlib string time"
_SHIM: Final = """#pragma once
#if __has_include(<cuda/std/__{name}_>) && !__has_include(<cuda/std/{name}>)
#include <cuda/std/__{name}_>
#else
#include <cuda/std/{name}>
#endif
namespace cuda {{ namespace std {{}} }}
namespace std {{ using namespace cuda::std; }}
"""
_LIMITS_OF_FLOATS: Final = """#pragma once
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MIN 1.17549435082228750797e-38F
#define FLT_MAX 3.40282346638528859812e+38F
#define FLT_EPSILON 1.1920928955078125e-7F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MIN 2.22507385850720138309e-308
#define DBL_MAX 1.79769313486231570815e+308
#define DBL_EPSILON 2.2204460492503130808e-16
"""
#: CUB's header of everything declares functions of the host, which NVRTC refuses. These are its parts for blocks and warps.
_OF_BLOCKS: Final = (
    "adjacent_difference discontinuity exchange histogram load merge_sort radix_rank radix_sort reduce run_length_decode "
    "scan shuffle store"
)
_OF_WARPS: Final = "exchange load merge_sort reduce scan store"
_CANNOT_OPEN: Final = re.compile(r'^(.+?)\((\d+)\): .*(?:cannot|could not) open source file "([^"]+)"', re.MULTILINE)
_ON_THE_HOST: Final = re.compile(r"[a-z_]+|sys/.*|(stdio|string|time|signal|errno|unistd|pthread|omp)\.h")


def headers_for(source: str, nvrtc: str = "") -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The options of NVRTC with which a source finds the headers that it includes, and the text of each header that stands in no file, by
    the name that a source includes it by; none if it includes nothing.

    Args:
        nvrtc: path of the compiler; empty for the installed one.
    """
    names = set(_INCLUDE.findall(source))
    if not names:
        return (), {}
    folders = tuple(f"-I{folder}" for folder in toolkit_folders(nvrtc))
    # cuda.h declares functions of the host without saying so.
    declares = ("--device-as-default-execution-space",) if names & {"cuda.h", "cudaTypedefs.h"} else ()
    return (*folders, *declares), _embedded()


def state_of(source: str, options: Sequence[str], nvrtc: str = "") -> tuple[str, ...]:
    """The rest that machine code depends on, beside a source and its options: versions of the toolkit's headers, and digests of the
    files that the source includes from the folders of its options. Empty if the source includes nothing.
    """
    if not _INCLUDE.search(source):
        return ()
    folders = [Path(option.removeprefix("-I")) for option in options if option.startswith("-I")]
    return (*map(_version_of, toolkit_folders(nvrtc)), *_digests(source, folders))


@cache
def toolkit_folders(nvrtc: str = "") -> tuple[Path, ...]:
    """The folders of CUDA's headers: those beside a compiler first, then the installed ones; empty if there are none.
    `nvrtc`: path of the compiler; empty for the installed one."""
    from cuda import pathfinder

    folders: dict[Path, None] = {}
    own = _beside(Path(nvrtc)) if nvrtc else []
    for header, part in _PARTS.items():
        if any((folder / header).is_file() for folder in folders):
            continue
        beside = (folder for folder in own if (folder / header).is_file())
        folder = next(beside, None) or pathfinder.find_nvidia_header_directory(part)
        if folder is not None and (Path(folder) / header).is_file():
            folders[Path(folder)] = None
        elif part == "cccl":
            folders |= dict.fromkeys(_of_cupy())
    return tuple(folders)


def _beside(nvrtc: Path) -> list[Path]:
    """The folders of headers of a toolkit with this compiler, or of NVIDIA's packages that are installed with it."""
    root = nvrtc.resolve().parent.parent
    packages = sorted(root.parent.glob("*/include")) if root.parent.name == "nvidia" else []
    return [root / "include", root / "include" / "cccl", *packages]


def explain(log: str, compiler: str) -> str:
    """For a header that NVRTC does not find, its place and what to do, on one line; empty if the log names none.

    Args:
        log: NVRTC's.
        compiler: its version, such as `13.0`.
    """
    missing = _CANNOT_OPEN.search(log)
    if not missing:
        return ""
    file, line, name = missing.groups()
    return f"{Path(file).name}:{line}: #include of {name}: {_cure(name, compiler)}"


def _cure(name: str, compiler: str) -> str:
    if name.partition("/")[0] in ("cuda", "cub", "thrust", "nv", "cooperative_groups"):
        package = "nvidia-cuda-cccl"
    elif name.partition("/")[0] == "crt":
        package = "nvidia-cuda-crt"
    elif name.startswith("curand"):
        package = "nvidia-curand"
    elif re.match(r"cu(da|Complex)|mma\.h|cooperative_groups|(vector|device|math)_\w+\.h", name):
        package = "nvidia-cuda-runtime"
    elif _ON_THE_HOST.fullmatch(name):
        return "the GPU has no such library; put it between `#ifndef __CUDACC_RTC__` and `#endif` if only code of the host needs it"
    else:
        return 'no such file; mend the path, or name its folder: options=("-IFOLDER",)'
    if compiler.startswith("12."):
        package = {"nvidia-cuda-crt": "nvidia-cuda-nvcc"}.get(package, package) + "-cu12"
    release = "" if package.startswith("nvidia-curand") else f"=={compiler}.*"
    return f"CUDA's header is not installed; pip install '{package}{release}', or set CUDA_HOME to a toolkit of CUDA {compiler}"


def _of_cupy() -> Iterator[Path]:
    """The folders of CUDA's C++ headers that CuPy brings along."""
    spec = importlib.util.find_spec("cupy")
    for package in (spec and spec.submodule_search_locations) or ():
        bundled = Path(package) / "_core" / "include" / "cupy" / "_cccl"
        yield from (bundled / name for name in _CUPY_S if (bundled / name).is_dir())


@cache
def _version_of(folder: Path) -> str:
    """The version of a folder of headers, and when it was installed."""
    marks = [folder / mark for mark in _MARKS if (folder / mark).is_file()]
    versions = [number for mark in marks for number in _VERSION.findall(mark.read_text(errors="replace"))]
    return " ".join([*versions, *(str(mark.stat().st_mtime_ns) for mark in marks)])


def _digests(source: str, folders: Sequence[Path]) -> list[str]:
    """Names and digests of the files of these folders that a source includes, and those that they include."""
    digests: dict[Path, str] = {}
    texts: list[tuple[str, tuple[Path, ...]]] = [(source, ())]
    for text, beside in texts:  # grows
        for name in dict.fromkeys(_INCLUDE.findall(text)):
            file = next((folder / name for folder in (*beside, *folders) if (folder / name).is_file()), None)
            if file is not None and file not in digests:
                content = file.read_bytes()
                digests[file] = f"{name} {hashlib.sha256(content).hexdigest()}"
                texts.append((content.decode(errors="replace"), (file.parent,)))
    return list(digests.values())


@cache
def _embedded() -> Mapping[str, str]:
    headers = {name: _SHIM.format(name=name) for name in _OF_CPP.split()}
    headers |= {f"{name}.h": _SHIM.format(name=f"c{name}") for name in _OF_C.split()}
    headers |= dict.fromkeys(("cfloat", "float.h"), _LIMITS_OF_FLOATS)
    headers |= dict.fromkeys(("cstdio", "stdio.h"), "")  # printf is built in
    blocks = [f"#include <cub/block/block_{name}.cuh>\n" for name in _OF_BLOCKS.split()]
    warps = [f"#include <cub/warp/warp_{name}.cuh>\n" for name in _OF_WARPS.split()]
    return {**headers, "cub/cub.cuh": "".join(["#pragma once\n", *blocks, *warps])}
