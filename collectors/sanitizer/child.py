"""The program that a tool of compute-sanitizer watches: runs cells once, and compares their outputs on the host.

Every buffer is an allocation of its own and exactly its size, so that the tool knows where it ends; machine code has its line numbers.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.agreement import compare
from warpladder.collectors.core.bench import Unavailable
from warpladder.collectors.core.checked import requested
from warpladder.collectors.core.verify import poison, widened_outputs
from warpladder.workloads.api import Case, CudaVariant, Params, Variant, Workload, kernels_of

_STORE_BY_TMA: Final = re.compile(r"\bcp\.(?:reduce\.)?async\.bulk\.(?:tensor\.\dd\.)?global\.shared")


def stores_by_tma(ptx: str) -> bool:
    """Whether code stores with the TMA, which initcheck does not see: to it, the memory stays unwritten."""
    return _STORE_BY_TMA.search(ptx) is not None


def run(
    workload: Workload, cells: Sequence[tuple[Case, Variant, Params]], *, leave_unwritten: bool
) -> Iterator[tuple[bool, str]]:
    """Whether each cell is right, and a line that says so. Cells of one case stand together.

    Args:
        leave_unwritten: for initcheck: outputs and scratch are left as they are allocated, for memory filled with NaN counts as written.
            Those of code that stores with the TMA are filled.
    """
    import cupy

    from warpladder.collectors.cuda import device, events, launch
    from warpladder.collectors.cuda.compiler import compile_variant

    def is_filled(variant: Variant, case: Case, config: Params) -> bool:
        if not leave_unwritten or not isinstance(variant, CudaVariant):
            return not leave_unwritten
        if bench.device.compute_capability < (9, 0):  # it has no TMA
            return False
        names = sorted({each.kernel for each in kernels_of(variant.launches(case, config))})
        return stores_by_tma(compile_variant(variant, names, bench.device.arch).ptx)

    cupy.cuda.set_allocator(None)
    # Nothing is timed here, and thousands of empty kernels take minutes under a tool.
    vars(device).update(EMPTY_KERNELS=1, REPETITIONS=1)
    device.CudaDevice.measure_event_overhead = lambda self: None  # type: ignore[method-assign]
    for case, of_case in groupby(cells, key=itemgetter(0)):
        inputs = workload.make_inputs(case, np.random.default_rng(1))
        reference = workload.reference(case, inputs)
        bench = events.CudaBench(workload, case, inputs)
        for _, variant, config in of_case:
            cell = " ".join((workload.name, case.name, variant.name, *(f"{key}={value}" for key, value in config.items())))
            bench.outputs = {name: cupy.empty_like(array) for name, array in bench.outputs.items()}
            fill = poison if is_filled(variant, case, config) else _leave
            for module in (events, launch):
                vars(module).update(poison=fill)
            try:
                operation = bench.prepare(variant, config)
            except Unavailable as error:
                yield True, f"skipped {cell}: it {error}"
                continue
            if not isinstance(variant, CudaVariant):  # its own rules may decide what is right
                bench.run(operation)
                bench.device.stream.synchronize()
                yield True, f"ran {cell}"
                continue
            expected = variant.reference(case, inputs) if variant.reference else reference
            ways: list[Callable[[], Mapping[str, Any]]] = [
                partial(bench.run, operation),
                *filter(None, [operation.from_end_to_end]),
            ]
            for way in ways:
                fill(bench.outputs)
                outputs = widened_outputs({name: array.get() for name, array in way().items()}, workload.buffers(case)[1])
                agreement = compare(outputs, expected, workload.tolerance[variant.precision])
                yield agreement.ok, f"right {cell}" if agreement.ok else f"WRONG {cell}: {agreement.detail}"
        bench.close()


def _leave(buffers: Mapping[str, Any]) -> None:
    """Leave buffers as they were allocated."""


def main() -> int:
    """Run the cells that the first argument asks for, as JSON."""
    request: dict[str, Any] = json.loads(sys.argv[1])
    workload, cells = requested(request)
    all_right = True
    for right, line in run(workload, cells, leave_unwritten=request["leave_unwritten"]):
        print(line, flush=True)
        all_right &= right
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
