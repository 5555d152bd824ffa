"""A case's inputs and what is right for them, which no variant is given."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

import numpy as np

from warpladder.collectors.core.bench import Bench
from warpladder.collectors.core.verify import check_inputs, check_reference
from warpladder.workloads.api import Array, Case, Variant, Workload

Reference = Callable[[Case, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


class Problem:
    """Inputs of a case, and what is right for them: computed once a definition, however many variants and benches compare with it.

    Attributes:
        inputs: made when they are first asked for; read-only.
    """

    def __init__(self, workload: Workload, case: Case, rng: np.random.Generator) -> None:
        self._workload, self._case, self._rng = workload, case, rng
        self._right: dict[Reference, Mapping[str, np.ndarray] | Exception] = {}
        self._placed: dict[tuple[Reference, int], Mapping[str, Array]] = {}

    @cached_property
    def inputs(self) -> Mapping[str, np.ndarray]:
        made = self._workload.make_inputs(self._case, self._rng)
        check_inputs(made, self._workload.buffers(self._case)[0])
        views = {name: array.view() for name, array in made.items()}
        for view in views.values():
            view.flags.writeable = False
        return views

    def compute(self, variants: Iterable[Variant]) -> None:
        """Compute what is right for these variants. What a definition raises is raised by `right`."""
        for variant in variants:
            definition = variant.reference or self._workload.reference
            if definition not in self._right:
                self._right[definition] = self._computed(definition)

    def _computed(self, definition: Reference) -> Mapping[str, np.ndarray] | Exception:
        try:
            found = definition(self._case, self.inputs)
            check_reference(found, self._workload.buffers(self._case)[1])
        except Exception as error:
            return error
        return found

    def check(self, variant: Variant) -> Mapping[str, np.ndarray]:
        """The outputs that are right for a variant, in float64 or an exact type. Raises what its reference raised."""
        self.compute([variant])
        found = self._right[variant.reference or self._workload.reference]
        if isinstance(found, Exception):
            raise found
        return found

    def right(self, variant: Variant, bench: Bench) -> Mapping[str, Array]:
        """The same where the bench has its outputs."""
        key = (variant.reference or self._workload.reference, id(bench))
        if key not in self._placed:
            self._placed[key] = bench.place(self.check(variant))
        return self._placed[key]

    def forget(self, bench: Bench) -> None:
        """Give back a bench's copies."""
        self._placed = {key: value for key, value in self._placed.items() if key[1] != id(bench)}
