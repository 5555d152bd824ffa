"""Checks that a library call enqueues all of its work on the timed stream. The events do not time other streams.

The call is made while the timed stream is held. If an output is written during the hold, its work did not wait for the timed
stream. If an output is written after the timed stream is done, the timed stream did not wait for its work. A call that itself
waits for the device cannot be checked, because it ends the hold.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from warpladder.collectors.core.bench import check_declared
from warpladder.collectors.core.verify import overlapping, poison
from warpladder.workloads.api import Array, Buffer, Buffers

if TYPE_CHECKING:
    from warpladder.collectors.cuda.device import CudaDevice

#: The hold lasts this many seconds plus twice the call's time, so that work on other streams ends during it.
_SETTLE_S: Final = 0.002
#: The hold gives up after this many seconds plus six times the call's time.
_LIMIT_S: Final = 0.05

#: What to do, by the kind of variant.
CURE: Final = "enqueue on CuPy's current stream, or let your own stream wait for it first and let it wait for yours at the end"
CURE_TORCH: Final = (
    "PyTorch's current stream is another one: call warpladder.workloads.torch_bridge.use_current_stream() in `prepare`, "
    "or torch.cuda.set_stream(torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr))"
)
CURE_FUNCTION: Final = (
    "enqueue on the current stream of CuPy or PyTorch, or take a parameter `stream` and launch on it; let a stream of your own wait "
    "for that one first, and let that one wait for yours at the end"
)


@dataclass(frozen=True)
class Prints:
    """Fingerprints of one output of a call at four times.

    Attributes:
        poisoned: before the call.
        held: after the call, while the timed stream was still held.
        at_end: on the timed stream, right after the call's work there.
        when_done: when the whole device was done.
    """

    poisoned: int
    held: int
    at_end: int
    when_done: int

    @property
    def early(self) -> bool:
        """The output was written while the timed stream was held, or not afterwards."""
        return self.held != self.poisoned or self.when_done == self.poisoned

    @property
    def late(self) -> bool:
        """The output was written after the timed stream was done."""
        return self.at_end != self.when_done


def fault_of(prints: Mapping[str, Prints], cure: str) -> str:
    """Return why device times of a call would be wrong, and what to do; empty if its work is on the timed stream.
    `prints`: fingerprints of its outputs, by name; empty if the call could not be checked."""
    if early := [name for name, print_ in prints.items() if print_.early]:
        return f"its work is not on the timed stream: output {', '.join(early)} is written while that stream is held; {cure}"
    if late := [name for name, print_ in prints.items() if print_.late]:
        return f"its work is not all on the timed stream: output {', '.join(late)} is written after that stream is done; {cure}"
    return ""


def look(
    device: "CudaDevice",
    call: Callable[[], Buffers | None],
    inputs: Buffers,
    outputs: Buffers,
    poison_free: Callable[[], object] = lambda: None,
) -> dict[str, Prints]:
    """Make a call up to three times, and take the fingerprints of the last one's outputs.

    Args:
        device: the GPU that the call uses. Work goes to the timed stream, except within `aside`.
        call: enqueues one operation; returns the outputs if it allocates them itself.
        inputs, outputs: the arrays that it was prepared with. The content of the outputs is undefined afterwards.
        poison_free: poisons free memory, so that an output that the call allocates and never writes does not seem to change.

    Returns:
        fingerprints by name of an output. Empty if the call cannot be checked: it waits for the device, does not change an
        output, or returns something other than its own contiguous arrays.
    """
    # Allocated first: an allocation during the hold might wait for the stream.
    poisoned, ordinary, held, at_end, when_done = [device.new_prints(len(outputs)) for _ in range(5)]

    def take(arrays: Buffers, into: Array) -> None:
        for place, name in enumerate(outputs):
            device.add_fingerprint(arrays[name], into[place : place + 1])

    poison(outputs)
    take(outputs, poisoned)
    returned = call()  # libraries initialise here
    device.wait()
    if returned is not None and not _can_be_poisoned(returned, inputs, outputs):
        return {}
    saved = {name: returned[name].copy() for name in outputs} if returned is not None else {}
    poison({name: (returned or outputs)[name] for name in outputs})
    poison_free()
    device.wait()
    started = time.perf_counter()
    written = call() or outputs
    device.wait()
    about_s = time.perf_counter() - started
    take(written, ordinary)
    if any(before == after for before, after in zip(poisoned.tolist(), ordinary.tolist(), strict=True)):
        for name, array in saved.items():  # it may return the same arrays again, and fill them only once
            returned[name][...] = array  # type: ignore[index]
        return {}
    returned, saved, written = None, {}, outputs  # frees the memory
    poison(outputs)
    device.wait()
    with device.held(round((_LIMIT_S + 6 * about_s) * 1e9)):
        returned = call()
        written = returned or outputs
        take(written, at_end)
        if returned is not None:  # its memory may hold the outputs of an earlier call
            with device.aside():
                poison({name: returned[name] for name in outputs})
        time.sleep(_SETTLE_S + 2 * about_s)
        with device.aside():
            take(written, held)
    device.wait()
    take(written, when_done)
    if device.gave_up:
        return {}
    counted = (each.tolist() for each in (poisoned, held, at_end, when_done))
    return {name: Prints(*prints) for name, *prints in zip(outputs, *counted, strict=True)}


def _can_be_poisoned(returned: Any, inputs: Buffers, outputs: Buffers) -> bool:
    """Whether all outputs that a call returns are contiguous arrays on the device that share no memory with an input."""
    declared = {name: Buffer(tuple(array.shape), str(array.dtype)) for name, array in outputs.items()}
    if check_declared(returned, declared) or overlapping(returned, inputs):
        return False
    arrays = [(returned[name], outputs[name]) for name in outputs]
    return all(type(a) is type(b) and a.shape == b.shape and a.flags.c_contiguous for a, b in arrays)
