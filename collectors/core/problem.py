"""The input sets of a case, and their references."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.bench import Bench, Ended
from warpladder.collectors.core.declared import copied_bytes
from warpladder.collectors.core.failures import classify
from warpladder.collectors.core.verify import check_inputs, check_reference, doubts_of, same_for_all_inputs
from warpladder.workloads.api import Array, Case, Variant, Workload

Reference = Callable[[Case, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


#: Input sets that variants are verified with, and those that timed executions choose from: two sets could only alternate.
VERIFIED: Final = 2
SETS: Final = 3
#: Sets that only timed executions use have references if those of the first set took at most so many seconds.
_QUICK_S: Final = 1.0
#: Above so many bytes of inputs, timed executions use the referenced sets alone, and references are copied for each comparison.
_LARGE_BYTES: Final = 1 << 30


class Problem:
    """One input set of a case, and its references. Each reference is computed once and used by all variants and benches.

    Attributes:
        inputs: read-only arrays by name, made at the first access.
    """

    def __init__(self, workload: Workload, case: Case, rng: np.random.Generator) -> None:
        self._workload, self._case, self._rng = workload, case, rng
        self._right: dict[Reference, Mapping[str, np.ndarray] | BaseException] = {}
        self._placed: dict[tuple[Reference, int], Mapping[str, Array]] = {}

    @cached_property
    def inputs(self) -> Mapping[str, np.ndarray]:
        made = self._workload.make_inputs(self._case, self._rng)
        check_inputs(made, self._workload.buffers(self._case)[0])
        views = {name: array.view() for name, array in made.items()}
        for view in views.values():
            view.flags.writeable = False
        return views

    def case_bytes(self) -> dict[str, Any]:
        """The columns of `cases` that the inputs that were made and the outputs of the reference tell, with the case's key.

        Raises the exception that the function for the inputs raised.
        """
        _ = self.inputs
        inputs, outputs = self._workload.buffers(self._case)
        to_device, to_host = copied_bytes(self._case, inputs, outputs)
        key = {"workload": self._workload.name, "case": self._case.name}
        min_bytes = sum(buffer.nbytes for buffer in (*inputs.values(), *outputs.values()))
        return {**key, "min_bytes": min_bytes, "h2d_bytes": to_device, "d2h_bytes": to_host}

    @property
    def found(self) -> Iterable[object]:
        """The references that were computed, each as outputs by name or as the exception that its function raised."""
        return self._right.values()

    def compute(self, variants: Iterable[Variant]) -> None:
        """Compute the references of these variants. If a reference function raises, `check` and `right` raise its exception."""
        for variant in variants:
            definition = variant.reference or self._workload.reference
            if definition not in self._right:
                self._right[definition] = self._computed(definition)

    def _computed(self, definition: Reference) -> Mapping[str, np.ndarray] | BaseException:
        try:
            inputs = self.inputs
            found = definition(self._case, inputs)
            check_reference(found, self._workload.buffers(self._case)[1], inputs)
        except Ended:
            raise
        except BaseException as error:  # a user's function may raise SystemExit
            return error
        return found

    @property
    def usual(self) -> Mapping[str, np.ndarray] | None:
        """The outputs of the workload's own reference, if it was computed and did not raise."""
        found = self._right.get(self._workload.reference)
        return None if isinstance(found, BaseException) else found

    def doubts(self) -> list[str]:
        """What is doubtful about the workload's reference, as sentences for a reader of the run."""
        found = self.usual
        if found is None:
            return []
        tolerances = (self._workload.tolerance[variant.precision_at(self._case)] for variant in self._workload.variants)
        return doubts_of(found, self._workload.buffers(self._case)[1], exact=not any(tolerances))

    def check(self, variant: Variant) -> Mapping[str, np.ndarray]:
        """Return a variant's reference outputs by name, in float64 or an exact type.

        Raises the exception that the reference function raised.
        """
        self.compute([variant])
        found = self._right[variant.reference or self._workload.reference]
        if isinstance(found, BaseException):
            raise found
        return found

    def right(self, variant: Variant, bench: Bench) -> Mapping[str, Array]:
        """Return the reference outputs in the memory of the bench's outputs (host or device)."""
        key = (variant.reference or self._workload.reference, id(bench))
        if key in self._placed:
            return self._placed[key]
        right = self.check(variant)
        placed = bench.place(right)
        if sum(array.nbytes for array in right.values()) <= _LARGE_BYTES:
            self._placed[key] = placed
        return placed

    def forget(self, bench: Bench) -> None:
        """Free the copies made for a bench."""
        self._placed = {key: value for key, value in self._placed.items() if key[1] != id(bench)}


class Problems:
    """The input sets of a case in one process: those that timed executions choose from, and new ones.

    Args:
        workload, case: whose inputs are made.
        seed: numbers that the generators of all sets are seeded from.

    Attributes:
        sets: the sets that executions choose from; one where the workload always makes the same inputs.
        referenced: number of sets that have references. They are the first ones.
        why_one: why there is one set; empty where there are more.
    """

    def __init__(self, workload: Workload, case: Case, seed: Sequence[int]) -> None:
        self._workload, self._case, self._seed, self._made = workload, case, seed, 0
        self.sets = [self._make()]
        self.referenced = 1
        self.why_one = ""

    def _make(self) -> Problem:
        self._made += 1
        return Problem(self._workload, self._case, np.random.default_rng([*self._seed, self._made]))

    def compute(self, variants: Sequence[Variant]) -> None:
        """Make the sets, and compute the references of these variants, before any variant runs."""
        first, started = self.sets[0], time.monotonic()
        first.compute(variants)
        is_quick = time.monotonic() - started <= _QUICK_S
        if all(isinstance(found, BaseException) for found in first.found):
            return  # no variant can be verified; each tells why
        other = self._make()
        try:
            inputs = other.inputs
        except Ended:
            raise
        except BaseException as error:
            self.why_one = f"no other inputs could be made to verify with ({classify(error)[1]})"
            return
        if all(np.array_equal(first.inputs[name], inputs[name]) for name in inputs):
            same = "the inputs are the same at each call, so that a variant that keeps its first outputs is not found"
            self.why_one = f"{same}; make them from `rng`"
            return
        self.sets.append(other)
        if sum(array.nbytes for array in inputs.values()) <= _LARGE_BYTES:
            self.sets += [self._make() for _ in range(SETS - VERIFIED)]
        self.referenced = len(self.sets) if is_quick else VERIFIED
        for problem in self.sets[1 : self.referenced]:
            problem.compute(variants)

    def new(self) -> Mapping[str, np.ndarray]:
        """Inputs that no variant has seen. Raises what the function for the inputs raises."""
        return self._make().inputs

    def same_for_all(self, tolerance: float) -> list[str]:
        """The outputs that are nearly the same for two sets; see `verify.same_for_all_inputs`."""
        pair = [problem.usual for problem in self.sets[:VERIFIED]]
        if len(pair) < VERIFIED or pair[0] is None or pair[1] is None:
            return []
        return same_for_all_inputs(pair[0], pair[1], tolerance)
