"""The variant that is a plain function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from warpladder.workloads.api import Array, Case, Params, Variant
from warpladder.workloads.functions import sources
from warpladder.workloads.functions.call import Call
from warpladder.workloads.sources import parse_header

#: Libraries whose arrays live on the GPU only.
GPU_ONLY: Final = ("cupy", "numba")


@dataclass(frozen=True)
class FunctionVariant(Variant):
    """A function that takes arrays and returns arrays.

    Attributes:
        function: the user's function.
        on_gpu: it runs on the GPU. It then enqueues its work on the stream that its library calls the current one.
        library: whose arrays it takes: `numpy`, `torch`, `cupy`, `numba` or `jax`.
        bind: gives it the arrays of a bench: inputs and outputs by name. A bench calls it once for each case.
        requires: modules that must be importable.
        writes_inputs: it changes its inputs. It gets its own copies, which are made anew before each execution.
    """

    function: Callable[..., Any] = field(default=lambda: None)
    on_gpu: bool = False
    library: str = "numpy"
    bind: Callable[[Case, Params, Mapping[str, Array], Mapping[str, Array]], Call] = field(
        default=lambda case, config, inputs, outputs: Call(lambda: None, lambda returned: None)
    )
    requires: tuple[str, ...] = ()
    writes_inputs: bool = False

    @property
    def kind(self) -> str:
        return "library" if self.on_gpu else "host"

    @property
    def own_stream(self) -> bool:
        """Whether its library has streams that nobody else can choose, so that CUDA events cannot time it."""
        return self.on_gpu and self.library == "jax"

    @cached_property
    def source_text(self) -> str:
        return sources.source_of(self.function)

    @cached_property
    def header(self) -> Mapping[str, str]:
        """The labelled paragraphs of the docstring; its first paragraph is the idea if it has no labels."""
        docstring = getattr(self.function, "__doc__", None) or ""
        found = parse_header(f'"""{docstring}"""')
        return found if any(found.values()) else {**found, "idea": " ".join(docstring.partition("\n\n")[0].split())}

    @property
    def source_file(self) -> Path | None:
        return sources.source_file_of(self.function)
