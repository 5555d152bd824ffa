"""Host variants written as plain loops, which Numba compiles at the first call.

Numba is imported at the first call, so that importing a workload takes no longer than importing NumPy. The source text of the
variant is the source of the loops.
"""

from collections.abc import Callable
from functools import cache, wraps
from types import FunctionType
from typing import Any

from warpladder.workloads.api import Buffers, Case

prange = range  # `compiled` replaces it by numba.prange; import it by this name


def compiled(
    arguments: Callable[[Case, Buffers, Buffers], tuple[Any, ...]], **options: Any
) -> Callable[[Callable[..., None]], Callable[[Case, Buffers, Buffers], None]]:
    """Turns loops into the `run` of a `HostVariant`. The machine code is kept in Numba's cache on disk.

    Args:
        arguments: gives the arguments of the loops, from the case, the inputs and the outputs.
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
