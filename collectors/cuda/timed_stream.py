"""Whether the work that a library call enqueues is all on the timed stream. Elsewhere the clock does not see it.

The call is made while the timed stream is held. What writes to the outputs meanwhile does not wait for the stream; what writes to them
after the stream is done is not waited for by it. A call that itself waits for the device cannot be told: it ends the hold.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from warpladder.collectors.core.bench import check_declared
from warpladder.collectors.core.verify import overlapping, poison
from warpladder.workloads.api import Array, Buffer, Buffers

#: The stream is held for this long and twice the call, so that work elsewhere has come to its end meanwhile.
_SETTLE_S: Final = 0.002
#: The hold gives up after this and six times the call.
_LIMIT_S: Final = 0.05

_CURE: Final = "enqueue on CuPy's current stream, or let your own stream wait for it first and let it wait for yours at the end"
_CURE_TORCH: Final = (
    "PyTorch's current stream is another one: call warpladder.workloads.torch_bridge.use_current_stream() in `prepare`, "
    "or torch.cuda.set_stream(torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr))"
)


@dataclass(frozen=True)
class Prints:
    """Fingerprints of one output, which a call writes, at four times.

    Attributes:
        poisoned: before anything wrote to it.
        held: after the call, while the timed stream was still held before what the call enqueued there.
        at_end: on the timed stream, right behind what the call enqueued there.
        when_done: when the whole device was done.
    """

    poisoned: int
    held: int
    at_end: int
    when_done: int

    @property
    def early(self) -> bool:
        """Something wrote to it while the timed stream was held, or nothing wrote to it afterwards."""
        return self.held != self.poisoned or self.when_done == self.poisoned

    @property
    def late(self) -> bool:
        """Something wrote to it after the timed stream was done."""
        return self.at_end != self.when_done


def fault_of(prints: Mapping[str, Prints], torch_elsewhere: bool) -> str:
    """Why device times of a call would be wrong, and what to do; empty where its work is on the timed stream.

    Args:
        prints: of its outputs, by name; none where that could not be told.
        torch_elsewhere: PyTorch is in use, and its current stream is not the timed one.
    """
    cure = _CURE_TORCH if torch_elsewhere else _CURE
    if early := [name for name, found in prints.items() if found.early]:
        return f"its work is not on the timed stream: output {', '.join(early)} is written while that stream is held; {cure}"
    if late := [name for name, found in prints.items() if found.late]:
        return f"its work is not all on the timed stream: output {', '.join(late)} is written after that stream is done; {cure}"
    return ""


class Device(Protocol):
    """What the check needs of a GPU. Work goes to the timed stream, except for what is enqueued within `aside`."""

    def held(self, limit_ns: int) -> AbstractContextManager[None]:
        """Hold the timed stream until the block ends, or for so long."""
        ...

    @property
    def gave_up(self) -> bool:
        """Whether the last hold ended before its block did."""
        ...

    def aside(self) -> AbstractContextManager[None]:
        """A block whose work goes to a stream that waits for no other. It is done when the block ends."""
        ...

    def new_prints(self, count: int) -> Array:
        """So many sums of fingerprints, all 0."""
        ...

    def add_fingerprint(self, array: Array, into: Array) -> None:
        """Enqueue what adds the fingerprint of a contiguous array to a sum."""
        ...

    def wait(self) -> None:
        """Wait for all that the device has to do, on every stream."""
        ...


def look(device: Device, call: Callable[[], Buffers | None], inputs: Buffers, outputs: Buffers) -> dict[str, Prints]:
    """Make a call up to three times, and take the fingerprints of what the last one writes.

    Args:
        device: where it enqueues its work.
        call: enqueues one operation; gives the outputs when it allocates them itself.
        inputs, outputs: as it was prepared with; the outputs hold anything afterwards.

    Returns:
        by name of an output; none where it cannot be told, as the call waits for the device, leaves an output as it was, or gives
        something else than contiguous arrays of its own.
    """
    # Made first, as allocating while the stream is held might wait for it.
    poisoned, ordinary, held, at_end, when_done = [device.new_prints(len(outputs)) for _ in range(5)]

    def take(arrays: Buffers, into: Array) -> None:
        for place, name in enumerate(outputs):
            device.add_fingerprint(arrays[name], into[place : place + 1])

    poison(outputs)
    take(outputs, poisoned)
    given = call()  # libraries set themselves up here
    device.wait()
    if given is not None and not _can_be_poisoned(given, inputs, outputs):
        return {}
    saved = {name: given[name].copy() for name in outputs} if given is not None else {}
    poison({name: (given or outputs)[name] for name in outputs})
    device.wait()
    started = time.perf_counter()
    written = call() or outputs
    device.wait()
    about_s = time.perf_counter() - started
    take(written, ordinary)
    if any(before == after for before, after in zip(poisoned.tolist(), ordinary.tolist(), strict=True)):
        for name, array in saved.items():  # it may give the same arrays again, filled once
            given[name][...] = array  # type: ignore[index]
        return {}
    given, saved, written = None, {}, outputs  # gives the memory back
    poison(outputs)
    device.wait()
    with device.held(round((_LIMIT_S + 6 * about_s) * 1e9)):
        given = call()
        written = given or outputs
        take(written, at_end)
        if given is not None:  # its memory may hold what another call wrote
            with device.aside():
                poison({name: given[name] for name in outputs})
        time.sleep(_SETTLE_S + 2 * about_s)
        with device.aside():
            take(written, held)
    device.wait()
    take(written, when_done)
    if device.gave_up:
        return {}
    counted = (each.tolist() for each in (poisoned, held, at_end, when_done))
    return {name: Prints(*prints) for name, *prints in zip(outputs, *counted, strict=True)}


def _can_be_poisoned(given: Any, inputs: Buffers, outputs: Buffers) -> bool:
    """Whether all outputs that a call gives are contiguous arrays of the device, and none is part of an input."""
    declared = {name: Buffer(tuple(array.shape), str(array.dtype)) for name, array in outputs.items()}
    if check_declared(given, declared) or overlapping(given, inputs):
        return False
    arrays = [(given[name], outputs[name]) for name in outputs]
    return all(type(a) is type(b) and a.shape == b.shape and a.flags.c_contiguous for a, b in arrays)
