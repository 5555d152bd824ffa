"""The pass `--stress` of a recording: every variant at its smallest case, run many times with random delays in its kernels.

What each run leaves is compared bit by bit with what the run without delays leaves. The runs are made in a process that an altered kernel
may break. It prints each step and each row as a line of JSON, as `experiment` does.
"""

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import groupby
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.bench import Failed, Unavailable
from warpladder.collectors.core.checked import Checks, Names, request_of, requested
from warpladder.collectors.core.judge import Judge, Problems
from warpladder.collectors.core.plan import WorkloadRef
from warpladder.collectors.core.signals import Stopped
from warpladder.collectors.cuda import compiler
from warpladder.collectors.cuda.compiler import Compilation, CompiledModule, CompileError
from warpladder.collectors.inside import START, delays, ptx
from warpladder.collectors.inside.delays import Site
from warpladder.collectors.inside.program import once
from warpladder.data.names import Source, diagnostic_row
from warpladder.data.words import counted
from warpladder.errors import Error
from warpladder.workloads.api import Case, CudaVariant, Launch, Pageable, Params, Workload, format_params, kernels_of

Row = dict[str, Any]
#: The seed of a run, its sites, a bit each, and its longest delay in ns.
Numbers = tuple[int, int, int]

#: Runs of a config at most, and for how many seconds.
_RUNS: Final = 60
_SECONDS: Final = 4.0
#: The longest delays of runs, in ns, each one less than a power of two.
_LONGEST: Final = (1023, 4095, 16383)
#: Runs of each site to know whether it is enough, for at most so many seconds, and sites that are named.
_TRIES: Final = 4
_SECONDS_OF_SITES: Final = 2.0
_NAMED: Final = 2
#: A kernel that takes longer has stopped.
_SECONDS_A_STEP: Final = 60.0
#: Steps of a cell. One that breaks before the last tells nothing about the kernel as it is.
_ASSEMBLING: Final = "while they were assembled"
_UNDELAYED: Final = "without a delay"
_DELAYED: Final = "in a run with random delays"

_FILL: Final = """extern "C" __global__ void fill_shared(unsigned words) {
  extern __shared__ unsigned shared[];
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) ((volatile unsigned*)shared)[i] = 0xffffffffu;
}"""


# -- the runs of a config ------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What the runs of a config left.

    Attributes:
        fault: of the first wrong run; empty if there is none.
        first: that run; 0 for the one without delays.
        wrong, other: runs that are wrong, and right ones that differ in their bits.
        enough: the sites of which one makes a run wrong.
    """

    runs: int = 0
    fault: str = ""
    first: int = 0
    wrong: int = 0
    other: int = 0
    enough: list[str] = field(default_factory=list)

    def row(self, adds_floats: str) -> tuple[str, str] | None:
        """Severity and text; None where all runs left the same. `adds_floats`: as `delays.adds_floats` gives it."""
        if self.fault and not self.first:
            return "error", f"wrong without a delay, where unwritten memory holds NaN: {self.fault}"
        if self.fault:
            enough = f"; enough is {', or '.join(self.enough)}" if self.enough else ""
            times = f"{self.wrong} of {self.runs} runs with random delays, first in run {self.first}"
            return "error", f"wrong in {times}: {self.fault}{enough}"
        if not self.other:
            return None
        order = "the order of its threads"
        if adds_floats:
            order = f"the order in which atomic operations add numbers of floating point ({adds_floats})"
        return "info", f"within the tolerance, and other bits in {self.other} of {self.runs} runs: they depend on {order}"


def outcome(run: Callable[[Numbers], bytes], fault: Callable[[], str], sites: Sequence[Site]) -> Outcome:
    """Run with delays as long as there is time.

    Args:
        run: gives what a run leaves.
        fault: what is wrong with what the last run left.
    """
    right, found = run((0, 0, 0)), Outcome()
    if why := fault():
        return Outcome(fault=why)
    rng, ends, wrong = np.random.default_rng(0), time.monotonic() + _SECONDS, list[Numbers]()
    bits = sorted({each.bit for each in sites})
    while found.runs < _RUNS and time.monotonic() < ends:
        found.runs += 1
        on = bits if found.runs % 4 == 1 else [bit for bit in bits if rng.random() < 0.25] or [int(rng.choice(bits))]
        numbers = found.runs, sum(1 << bit for bit in on), int(rng.choice(_LONGEST))
        if run(numbers) == right:
            continue
        if not (why := fault()):
            found.other += 1
            continue
        wrong.append(numbers)
        found.wrong += 1
        found.fault, found.first = found.fault or why, found.first or found.runs
    if wrong:
        found.enough = list(_enough(run, right, fault, sites, wrong))
    return found


def _enough(
    run: Callable[[Numbers], bytes], right: bytes, fault: Callable[[], str], sites: Sequence[Site], wrong: Sequence[Numbers]
) -> Iterator[str]:
    """The sites that make a run wrong without others, the first that are found."""
    ends, named = time.monotonic() + _SECONDS_OF_SITES, 0
    masks = [mask for _, mask, _ in wrong]
    for bit in sorted({each.bit for each in sites}, key=lambda bit: -sum(mask >> bit & 1 for mask in masks)):
        for number in range(_TRIES):
            if named == _NAMED or time.monotonic() > ends:
                return
            if run((number + 1, 1 << bit, _LONGEST[-1])) != right and fault():
                first, *others = [str(each) for each in sites if each.bit == bit]
                yield first + (f" or at {counted(len(others), 'place')} behind it" if others else "")
                named += 1
                break


# -- the pass ------------------------------------------------------------------------------------------------------------------


class Pass(Checks):
    """The pass over the workloads of a plan. Variants whose PTX is not known are left out."""

    @staticmethod
    def takes(row: Mapping[str, Any]) -> bool:
        return bool(row["kind"] == "cuda")

    @property
    def about(self) -> str:
        if not self.variant_count:
            return "no variant with random delays: none that has kernels in CUDA C++ or PTX was measured"
        variants = counted(self.variant_count, "variant")
        return f"{variants} with random delays, each config up to {_RUNS} times at the smallest case that it serves"

    def rows(self) -> list[Row]:
        found, ended = list[Row](), ""
        try:
            for ref, cells in self.cells.items():
                found += self._of_workload(ref, cells)
        except Stopped:
            ended = ", and ended early"
        findings = sum(row["severity"] != "info" for row in found)
        return [diagnostic_row("info", Source.STRESS, f"{self.about}: {counted(findings, 'finding')}{ended}"), *found]

    def _of_workload(self, ref: WorkloadRef, cells: Sequence[Names]) -> list[Row]:
        """What the runs of some cells left, a row for each variant and severity. A cell that breaks the process is left out in the next."""
        told, left = defaultdict[tuple[str, str], list[str]](list), list(cells)
        while left:
            rows, step, why = once("stress", request_of(ref, left), lambda step: self.stop.check(), _SECONDS_A_STEP)
            self.stop.check()
            for row in rows:
                told[row["variant"], row["severity"]].append(row["text"])
            number, _, what = step.partition(" ")
            if why and not number.isdigit():
                told["", "warning"].append(f"{ref.name}: no runs with random delays ({why})")
            if not why or not number.isdigit():
                break
            name, config, _ = left[int(number)]
            severity = "warning" if what == _DELAYED else "info"
            told[name, severity].append(f"{_of_config(config)}its altered kernels broke {what} ({why})")
            left = left[int(number) + 1 :]
        return [_row(ref, *key, texts) for key, texts in told.items()]


def _row(ref: WorkloadRef, variant: str, severity: str, texts: Sequence[str]) -> Row:
    first, *others = texts
    more = f"; likewise {counted(len(others), 'more config')}" if others else ""
    return diagnostic_row(severity, Source.STRESS, first + more, {"workload": ref.name, "variant": variant} if variant else {})


def _of_config(config: str) -> str:
    return f"[{config}] " if config else ""


# -- the process that runs altered kernels -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Built:
    module: CompiledModule
    sites: Sequence[Site]
    adds_floats: str


@cache
def _built(what: Compilation) -> _Built | str:
    """The altered kernels of a compilation, or why there are none."""
    try:
        original = compiler.compiled(what)
        module = ptx.parse(compiler.ptx_with_lines(what))
        module = module.with_kernels({kernel.symbol for kernel in original.kernels.values()})
        altered, sites = delays.stressed(module)
        return _Built(
            compiler.altered(original, str(altered), module.target, (delays.NUMBERS,)), sites, delays.adds_floats(module)
        )
    except (CompileError, Error) as error:
        return f"no runs with random delays: {error}"


def run_cells(
    workload: Workload, cells: Sequence[tuple[Case, CudaVariant, Params]], tell: Callable[[str], object]
) -> Iterator[Row]:
    """Run cells, those of one case together. `tell`: called with the number of a cell and the step that begins."""
    from warpladder.collectors.cuda.device import current_device

    arch, pool = current_device().arch, ThreadPoolExecutor()
    try:
        for case, of_case in groupby(enumerate(cells), key=lambda each: each[1][0]):
            numbered = [(number, variant, config) for number, (_, variant, config) in of_case]
            problems = Problems(workload, case, [1])
            problems.sets[0].compute([variant for _, variant, _ in numbered])  # tells the outputs of functions
            runs = _Runs(workload, case, problems)
            asked = [_compilation(case, variant, config, arch) for _, variant, config in numbered]
            building = [pool.submit(_built, each) for each in asked]
            for (number, variant, config), future in zip(numbered, building, strict=True):
                step = partial(_say, tell, number)
                built = _waited(future, step)
                if found := ("info", built) if isinstance(built, str) else runs.row(variant, config, built, step):
                    text = _of_config(format_params(config)) + found[1]
                    yield {"variant": variant.name, "severity": found[0], "text": text}
    finally:
        pool.shutdown(cancel_futures=True)


def _compilation(case: Case, variant: CudaVariant, config: Params, arch: str) -> Compilation:
    names = sorted({launch.kernel for launch in kernels_of(variant.launches(case, config))})
    return compiler.compilation_of(variant, names, arch)


def _waited(future: Future[_Built | str], tell: Callable[[str], None]) -> _Built | str:
    """What was built. However long that takes, no step is long."""
    while True:
        tell(_ASSEMBLING)
        with suppress(TimeoutError):
            return future.result(_SECONDS_A_STEP / 4)


def _say(tell: Callable[[str], object], number: int, what: str) -> None:
    tell(f"{number} {what}")


class _Runs:
    """The runs of one case on the current GPU."""

    def __init__(self, workload: Workload, case: Case, problems: Problems) -> None:
        import cupy

        from warpladder.collectors.cuda.events import CudaBench
        from warpladder.collectors.cuda.launch import bind, load

        inputs = problems.sets[0].inputs
        self._bench = CudaBench(workload, case, inputs)
        self._bench.keep([inputs])
        self._judge = Judge(self._bench, workload, case, problems)
        device, most = self._bench.device, cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
        filling = CudaVariant("fill_shared", "fill_shared", "ceiling", source=_FILL)
        function = load(compiler.compile_variant(filling, ("fill_shared",), device.arch))["fill_shared"]
        launch = Launch("fill_shared", (4 * device.sm_count, 1, 1), (1024, 1, 1), (np.uint32(most // 4),), most)
        #: Else a block may find in shared memory what the same block has left there in the run before.
        self._fill_shared = bind(launch, function, {})

    def row(self, variant: CudaVariant, config: Params, built: _Built, tell: Callable[[str], None]) -> tuple[str, str] | None:
        tell(_UNDELAYED)
        variant = replace(variant, graph=False, end_to_end=Pageable())
        try:
            run = partial(self._run, variant, config, built.module, tell)
            return outcome(run, partial(self._fault, variant), built.sites).row(built.adds_floats)
        except Unavailable:
            return None

    def _fault(self, variant: CudaVariant) -> str:
        """What is wrong with what the last run left; empty if nothing."""
        try:
            return self._judge.last_sample(variant, 0).detail
        except Failed as failed:
            return str(failed)

    def _run(
        self, variant: CudaVariant, config: Params, module: CompiledModule, tell: Callable[[str], None], numbers: Numbers
    ) -> bytes:
        from cupy.cuda import runtime

        bench = self._bench
        operation, addresses = bench.prepare_altered(variant, config, module)  # with scratch that is poisoned again
        bench.poison(False)
        words = np.array(numbers, np.uint32)
        runtime.memcpyAsync(
            addresses[delays.NUMBERS], words.ctypes.data, words.nbytes, runtime.memcpyHostToDevice, bench.device.stream.ptr
        )
        self._fill_shared(bench.device.stream)
        if numbers[0] == 1:
            tell(_DELAYED)
        outputs = bench.run(operation)
        return b"".join(outputs[name].get().tobytes() for name in sorted(outputs))


def main() -> None:
    """Run the cells that the first argument asks for, as JSON."""
    answers = os.fdopen(os.dup(1), "w")  # for our lines only: what the file or a library prints goes to stderr
    os.dup2(2, 1)

    def say(message: str | Row) -> None:
        print(json.dumps(message), file=answers, flush=True)

    workload, cells = requested(json.loads(sys.argv[1]))
    say(START)
    for row in run_cells(workload, cells, say):  # type: ignore[arg-type]
        say(row)


if __name__ == "__main__":
    main()
