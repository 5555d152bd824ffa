"""Gradients of functions on PyTorch's tensors: the function is the forward pass, and automatic differentiation the backward pass."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from warpladder.workloads.api import WorkloadError
from warpladder.workloads.functions import arrays
from warpladder.workloads.functions.arrays import Form

#: The parts of an operation.
FORWARD: Final = "forward"
BACKWARD: Final = "backward"
_SEED: Final = 0


def gradient_of(name: str) -> str:
    """The name of the output that is the gradient with respect to an input."""
    return f"d_{name}"


def wanted(asked: bool | Sequence[str], inputs: Mapping[str, Form]) -> tuple[str, ...]:
    """The inputs whose gradients are computed: those asked for, or all of real numbers.

    Raises:
        WorkloadError: the inputs are not PyTorch's, or one that was asked for does not hold real numbers.
    """
    if not asked:
        return ()
    if others := [name for name, form in inputs.items() if form.library != "torch"]:
        raise WorkloadError(f"gradients: input {others[0]} is an array of {inputs[others[0]].library}; give PyTorch's tensors")
    real = tuple(name for name, form in inputs.items() if form.is_real)
    if asked is True:
        return real
    if bad := [name for name in asked if name not in real]:
        raise WorkloadError(f"gradients: {bad[0]} is no input of real numbers; name some of {', '.join(real)}")
    return tuple(asked)


def backward(returned: Any, leaves: Sequence[Any], upstream: Sequence[Any]) -> tuple[Any, ...]:
    """The gradients of what a function returned with respect to its inputs.

    Args:
        returned: an output or several; those of real numbers are differentiated.
        leaves: the inputs.
        upstream: the gradient of each of these outputs, of its shape and type.
    """
    import torch

    gradients: tuple[Any, ...] = torch.autograd.grad(real_outputs(returned), leaves, upstream)
    return gradients


def real_outputs(returned: Any) -> list[Any]:
    """The outputs of real numbers, in order."""
    if isinstance(returned, Mapping):
        returned = list(returned.values())
    outputs = returned if isinstance(returned, tuple | list) else [returned]
    return [each for each in outputs if arrays.library_of(each) == "torch" and each.is_floating_point()]


def upstream_of(forms: Mapping[str, Form], like: Any, double: bool = False) -> list[Any]:
    """The gradients of outputs, the same for every variant and for the reference: random numbers of each output's type.

    Args:
        forms: of the outputs of real numbers.
        like: a tensor on the device where they are needed.
        double: in float64, after they were rounded to the output's type.
    """
    import torch

    found = []
    for form in forms.values():
        values = torch.randn(form.shape, generator=torch.Generator().manual_seed(_SEED)).to(getattr(torch, form.dtype))
        found.append((values.double() if double else values).to(like.device))
    return found


def forward_and_backward(
    function: Callable[[], Any], leaves: Sequence[Any], upstream: Sequence[Any]
) -> tuple[Callable[[], Any], tuple[tuple[str, Callable[..., Any]], ...]]:
    """A function that returns the outputs and the gradients, and its two parts by name."""

    def after(returned: Any) -> tuple[Any, tuple[Any, ...]]:
        return returned, backward(returned, leaves, upstream)

    return lambda: after(function()), ((FORWARD, function), (BACKWARD, after))
