"""The inputs and references of a case. Variants cannot access them."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from warpladder.collectors.core.bench import Bench, Ended
from warpladder.collectors.core.declared import copied_bytes
from warpladder.collectors.core.verify import check_inputs, check_reference, doubts_of
from warpladder.workloads.api import Array, Case, Variant, Workload

Reference = Callable[[Case, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


class Problem:
    """Inputs of a case, and its references. Each reference is computed once and used by all variants and benches.

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

    def doubts(self) -> list[str]:
        """What is doubtful about the workload's reference, as sentences for a reader of the run."""
        found = self._right.get(self._workload.reference)
        if found is None or isinstance(found, BaseException):
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
        if key not in self._placed:
            self._placed[key] = bench.place(self.check(variant))
        return self._placed[key]

    def forget(self, bench: Bench) -> None:
        """Free the copies made for a bench."""
        self._placed = {key: value for key, value in self._placed.items() if key[1] != id(bench)}
