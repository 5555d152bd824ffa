"""What the modules of routes share: the workload that is searched, and the routes by PyTorch's compiler."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, Final

from warpladder.workloads import registry, torch_bridge
from warpladder.workloads.api import Buffers, Case, LibraryVariant, Precision, Workload

#: The mode of `torch.compile` that times more kernels.
AUTOTUNED: Final = torch_bridge.COMPILE_MODES[1:]


def searched(name: str, *routes: LibraryVariant) -> Workload:
    """The workload with its peers, and further routes, and no rungs.

    A peer that `torch.compile` compiles is a route in its other mode too, unless the workload declares that.
    """
    workload = registry.load(name)
    declared = [variant for variant in workload.variants if variant.role == "peer" and isinstance(variant, LibraryVariant)]
    peers, names = [replace(variant, draft=False) for variant in declared], {variant.name for variant in declared}
    compiled = [
        replace(
            peer,
            name=f"{peer.name}_autotuned",
            title=f"{peer.title}, autotuned",
            configs=AUTOTUNED,
            prepare=_in_mode(peer.prepare),
        )
        for peer in peers
        if peer.name in ("torch_compile", "torch_compile_tf32")
        and f"{peer.name}_autotuned" not in names
        and peer.configs != torch_bridge.COMPILE_MODES
    ]
    return replace(workload, variants=(*peers, *compiled, *routes), baseline=peers[0].name, host_baseline="")


def compiled_routes(
    operation: Callable[[Case, Buffers, Buffers], Callable[[], object]], *precisions: Precision, suffix: str = ""
) -> tuple[LibraryVariant, ...]:
    """An operation compiled by PyTorch, in both modes and in each precision, in a CUDA graph.

    Args:
        operation: gives a function that reads and writes tensors of the arrays.
        precisions: `fp32`, `tf32`.
        suffix: of the routes' names, where the workload declares a peer of the same name.
    """
    names = {"fp32": ("torch_compile", "torch.compile"), "tf32": ("torch_compile_tf32", "torch.compile, TF32")}
    return tuple(
        LibraryVariant(
            *(names[precision][0] + suffix, names[precision][1], "peer", precision, torch_bridge.COMPILE_MODES),
            requires=torch_bridge.COMPILER,
            prepare=_compiled(operation, allow_tf32=precision == "tf32"),
            graph=True,
        )
        for precision in precisions
    )


def _compiled(
    operation: Callable[[Case, Buffers, Buffers], Callable[[], object]], *, allow_tf32: bool
) -> Callable[..., Callable[[], None]]:
    @wraps(operation)
    def prepared(case: Case, inputs: Buffers, outputs: Buffers, mode: str) -> Callable[[], None]:
        torch_bridge.use_current_stream()
        with torch_bridge.compile_mode(mode):
            return torch_bridge.compile_for_graph(operation(case, inputs, outputs), allow_tf32=allow_tf32)

    return prepared


def _in_mode(prepare: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(prepare)
    def prepared(case: Case, inputs: Buffers, outputs: Buffers, mode: str) -> Any:
        with torch_bridge.compile_mode(mode):
            return prepare(case, inputs, outputs)

    return prepared
