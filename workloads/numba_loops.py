"""Host variants out of plain loops, compiled by Numba at the first call.

Numba is imported then too, so that importing a workload costs no more than NumPy, and the variant's source text is the loops.
"""

from collections.abc import Callable
from functools import cache, wraps
from types import FunctionType
from typing import Any

from warpladder.workloads.api import Buffers, Case

prange = range  # `compiled` puts numba.prange in its place; import it by this name


def compiled(
    arguments: Callable[[Case, Buffers, Buffers], tuple[Any, ...]], **options: Any
) -> Callable[[Callable[..., None]], Callable[[Case, Buffers, Buffers], None]]:
    """Makes loops the `run` of a `HostVariant`. The machine code is kept on disk, where Numba keeps such.

    Args:
        arguments: what the loops are called with, from the case, the inputs and the outputs.
        options: passed to `numba.njit`, e.g. `parallel=True`.
    """

    def decorate(loops: Callable[..., None]) -> Callable[[Case, Buffers, Buffers], None]:
        @cache
        def machine_code() -> Callable[..., None]:
            import numba

            assert isinstance(loops, FunctionType)
            names = {**loops.__globals__, "prange": numba.prange}
            code: Callable[..., None] = numba.njit(cache=True, **options)(FunctionType(loops.__code__, names, loops.__name__))
            return code

        @wraps(loops)
        def run(case: Case, inputs: Buffers, outputs: Buffers) -> None:
            machine_code()(*arguments(case, inputs, outputs))

        return run

    return decorate
