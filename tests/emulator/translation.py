"""The C++ that a variant's CUDA source becomes for the emulator."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from warpladder.workloads.api import CudaVariant

INCLUDES: Final = '#include "cuda_emulator.h"\n#include "entry_points.h"\n'

_HERE: Final = Path(__file__).resolve().parent
_EXTERN_SHARED: Final = re.compile(
    r"extern\s+__shared__\s+(?:(?:__align__|alignas)\(\d+\)\s*)?(?P<type>[\w:]+(?:\s+[\w:]+)*?)\s+(?P<name>\w+)\s*\[\s*\]\s*;"
)
#: Such a declaration outside of functions. In a source with kernels of clusters its name becomes a macro: each block has memory of its own.
_OUTSIDE: Final = re.compile("^" + _EXTERN_SHARED.pattern, re.MULTILINE)
#: A function outside of all others, with its template head: one line, or as many as end with a brace at the left.
_FUNCTION: Final = re.compile(
    r"^(?:template <[^\n]*>\n)?__device__ __forceinline__ [^;{}]*?\b(?P<name>\w+)\([^;{}]*\) (?:const )?\{(?:[^\n]*\}\n|\n.*?^\}\n)",
    re.MULTILINE | re.DOTALL,
)
_EMULATED: Final = re.compile(r"^(?:template <[^\n]*?> )?(?:EMULATOR_INLINE |inline )?[\w*]+[ *]+(?P<name>\w+)\(", re.MULTILINE)
#: A function of inline PTX that a macro of `hopper_bf16.cuh` or `hopper_low_precision.cuh` writes.
_OF_MACRO: Final = re.compile(r"^WARPLADDER_\w+\(.*\)$", re.MULTILINE)
_TENSOR_MAP: Final = re.compile(r"^struct alignas\(64\) TensorMap \{.*?^\};$", re.MULTILINE | re.DOTALL)
_PREFETCH: Final = re.compile(r'asm volatile\("prefetch\.global\.L2 \[%0\];" ::"l"\((?P<address>.*)\)\);')
_BETWEEN: Final = r"(?:[\w\s]|__launch_bounds__\((?:[^()]|\([^()]*\))*\))*?"
#: A kernel of clusters, up to its parameters.
_CLUSTER: Final = re.compile(
    r"(?:template\s*<(?P<parameters>[^<>{};]*)>\s*)?__global__\s"
    + _BETWEEN
    + r"__cluster_dims__\((?P<dims>[^()]*)\)"
    + _BETWEEN
    + r"\b(?!__launch_bounds__)(?P<name>\w+)\s*\("
)


class EmulationError(Exception):
    """A kernel that does not compile, or does what it must not. The message says where and what, in one line."""


def translation_unit(variant: CudaVariant, kernels: Sequence[str]) -> str:
    """A program's source: the variant's, then the list of its kernels and constants. Lines keep their numbers.

    Raises:
        EmulationError: the source has something that cannot be translated.
    """
    source = _without_emulated(variant.source_text)
    clusters = {match["name"]: match for match in _CLUSTER.finditer(source)}
    source = _CLUSTER.sub(_with_cluster, source)
    if clusters:
        source = _OUTSIDE.sub(r"#define \g<name> ((\g<type>*)emulator::dynamic_shared_memory())", source)
    source = _EXTERN_SHARED.sub(r"\g<type>* const \g<name> = (\g<type>*)emulator::dynamic_shared_memory();", source)
    entries = [f'    entry_point<&::{kernel}>("{kernel}", {_cluster_of(kernel, clusters)}),' for kernel in kernels]
    symbols = [f'    {{"{symbol}", &{symbol}, sizeof({symbol})}},' for symbol in variant.constants]
    return "\n".join(
        [
            INCLUDES,
            *(f'#line 1 "{variant.name}.cu"', source, '#line 1 "entry points"'),
            *("namespace emulator {", "const Kernel kernels[] = {", *entries, "    {}};"),
            *("const Constant constants[] = {", *symbols, "    {}};", "}"),
        ]
    )


def _without_emulated(source: str) -> str:
    """The source without functions of inline PTX that the emulator's headers have under the same name."""

    def kept(match: re.Match[str]) -> str:
        emulated = match["name"] in _emulated() and "asm" in match[0] and "WARPLADDER_EMULATOR" not in match[0]
        return "\n" * match[0].count("\n") if emulated else match[0]

    source = _FUNCTION.sub(kept, source)
    source = _PREFETCH.sub(r"prefetch_l2(\g<address>);", source)
    source = _OF_MACRO.sub("", source)
    return _TENSOR_MAP.sub(lambda match: "\n" * match[0].count("\n"), source)


@cache
def _emulated() -> frozenset[str]:
    """Names of the functions that stand for inline PTX."""
    text = "".join((_HERE / name).read_text() for name in ("ptx.h", "hopper.h", "hopper_clusters.h"))
    return frozenset(match["name"] for match in _EMULATED.finditer(text))


def _with_cluster(match: re.Match[str]) -> str:
    """A kernel of clusters, and before it a function that gives the blocks of one, by the kernel's template arguments."""
    head = f"template <{' '.join(match['parameters'].split())}> " if match["parameters"] else ""
    return f"{head}constexpr unsigned blocks_of_cluster_{match['name']}() {{ return emulator::cluster_of({match['dims']}); }} {match[0]}"


def _cluster_of(kernel: str, clusters: dict[str, re.Match[str]]) -> str:
    name, bracket, arguments = kernel.partition("<")
    return f"::blocks_of_cluster_{name}{bracket}{arguments}()" if name in clusters else "1"
