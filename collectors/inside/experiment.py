"""Experiments inside the kernels of one cell, on the current GPU. Altered kernels run beside the original in shuffled rounds.

What an altered kernel computes does not count, where a class of its work is out. It is compared with the original's outputs where
nothing is out: with the class switched on, with probes, and with waits of no cycles.

It is a program of its own, which prints each step and each row as a line of JSON: what an altered kernel breaks ends this process only.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import cupy
import numpy as np
from cupy.cuda import runtime

from warpladder.collectors.core.bench import Operation
from warpladder.collectors.cuda import compiler
from warpladder.collectors.cuda.compiler import CompiledModule
from warpladder.collectors.cuda.disassembly import disassemble
from warpladder.collectors.cuda.events import CudaBench
from warpladder.collectors.cuda.operation import HOT
from warpladder.collectors.inside import LAUNCHES, ablation, marks, ptx
from warpladder.data.names import DONE_TWICE, Experiment, Fact, Work
from warpladder.data.occupancy import limits_of, occupancy
from warpladder.data.statistics import median_interval
from warpladder.workloads import registry
from warpladder.workloads.api import Case, CudaVariant, Launch, Pageable, Params, Step, Workload, format_params, kernels_of

Row = dict[str, Any]
Interval = tuple[float, float, float]

ORIGINAL: Final = "original"
#: The unaltered PTX, assembled like the altered one: what altered kernels are compared with.
ASSEMBLED: Final = "assembled"
#: Rounds of all kernels: the least, and the most.
_ROUNDS: Final = 9, 60
#: Probes that change the time of a kernel by more than this share are refused, and a switch that costs more is in doubt.
_MOST_OVERHEAD: Final = 0.1
#: Waits at a mark, as shares of the time of a block.
_LENGTHS: Final = (0.2, 0.4, 0.8)
#: The shortest wait that the clock resolves well, in cycles.
_LEAST_CYCLES: Final = 100
#: A wait may be longer by the time from one reading of the clock to the next.
_CYCLES_OF_A_READING: Final = 32
#: Resolution of the times.
_RESOLUTION_NS: Final = 64.0
#: Outputs differ less where sums are added in another order.
_SAME: Final = 1e-4
#: Launches that are timed to know which kernel takes the most time, and samples of each.
_MOST_LAUNCHES: Final = 64
_SAMPLES: Final = 3


@dataclass(frozen=True)
class Entry:
    """One timed kernel, with the number that its parameter `ablation.SWITCH` has."""

    name: str
    number: int = 0


def _with_number(variant: CudaVariant, number: int) -> CudaVariant:
    """The variant whose kernels get a further argument."""

    def launches(case: Case, config: Params) -> Sequence[Step]:
        return [
            replace(step, args=(*step.args, np.uint32(number))) if isinstance(step, Launch) else step
            for step in variant.launches(case, config)
        ]

    return replace(variant, launches=launches)


@dataclass(frozen=True)
class _Altered:
    """An altered module, what it declares besides, and the numbers that its kernels are run with; none without the parameter."""

    module: ptx.Module
    symbols: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()


@dataclass
class Inside:
    """The experiments on one cell.

    Args:
        seconds: of the rounds.
        skip: names of altered kernels that are left out.
        tell: called with the name of each step as it begins, so that the last one is known where the process breaks.
    """

    workload: Workload
    variant: CudaVariant
    config: Params
    case: Case
    seconds: float = 3.0
    skip: Collection[str] = ()
    tell: Callable[[str], object] = lambda step: None
    seed: int = 0
    _operations: dict[Entry, tuple[Operation, Mapping[str, Any]]] = field(default_factory=dict)
    _modules: dict[str, CompiledModule] = field(default_factory=dict)
    _times: dict[Entry, list[float]] = field(default_factory=dict)

    # -- what is built -----------------------------------------------------------------------------------------------------

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of the variant."""
        return tuple(kernels_of(self.variant.launches(self.case, self.config)))

    @cached_property
    def _bench(self) -> CudaBench:
        rng = np.random.default_rng(self.seed)
        inputs = {name: np.ascontiguousarray(array) for name, array in self.workload.make_inputs(self.case, rng).items()}
        if not self.case.min_bytes:  # declared by functions: its outputs, and so its launches, are known from its reference
            self.workload.reference(self.case, inputs)
        bench = CudaBench(self.workload, self.case, inputs)
        bench.keep([inputs])
        return bench

    @cached_property
    def _compilation(self) -> compiler.Compilation:
        names = sorted({launch.kernel for launch in self.launches})
        return compiler.compilation_of(self.variant, names, self._bench.device.arch)

    @cached_property
    def _original(self) -> CompiledModule:
        return compiler.compiled(self._compilation)

    @cached_property
    def module(self) -> ptx.Module:
        """The kernels that are launched as PTX, with lines."""
        launched = {kernel.symbol for kernel in self._original.kernels.values()}
        return ptx.parse(compiler.ptx_with_lines(self._compilation)).with_kernels(launched)

    def _assembled(self, altered: _Altered) -> CompiledModule:
        return compiler.altered(self._original, str(altered.module), altered.module.target, altered.symbols)

    def build(self, modules: Mapping[str, _Altered]) -> list[str]:
        """Assemble modules, one a core, load them, and run each once. Returns the names of those that are not left out."""
        names = [name for name in modules if name not in self.skip]
        with ThreadPoolExecutor() as pool:
            built = pool.map(lambda name: self._assembled(modules[name]), names)
            for name, module in zip(names, built, strict=True):
                self.tell(name)
                self._modules[name] = module
                for number in modules[name].numbers or (0,):
                    variant = _with_number(self.variant, number) if modules[name].numbers else self.variant
                    prepared = self._bench.prepare_altered(variant, self.config, module)
                    self._operations[Entry(name, number)] = prepared
                    self._bench.run(prepared[0])
        self.tell("times")
        return names

    @property
    def _launches_are_timed(self) -> bool:
        return LAUNCHES not in self.skip and 1 < len(self.launches) <= _MOST_LAUNCHES

    @cached_property
    def _launch_ns(self) -> tuple[float, ...]:
        """The time of each launch: that of the steps up to it, less that of the steps before it. Where it cannot be timed so, the number of
        its threads stands for it."""
        if not self._launches_are_timed:
            return tuple(float(np.prod(each.grid)) * float(np.prod(each.block)) for each in self.launches)
        self.tell(LAUNCHES)
        steps = self.variant.launches(self.case, self.config)
        ends = [number + 1 for number, step in enumerate(steps) if isinstance(step, Launch)]
        return tuple(np.maximum(np.diff([0.0, *map(self._until_ns, ends)]), 0.0))

    def _until_ns(self, steps: int) -> float:
        """The time of the first steps of the variant."""
        begun = replace(
            self.variant, launches=lambda case, config: self.variant.launches(case, config)[:steps], end_to_end=Pageable()
        )
        operation, _ = self._bench.prepare_altered(begun, self.config, self._original)
        self._bench.run(operation)
        return min(float(self._bench.sample(operation, HOT, number).duration_ns) for number in range(1, _SAMPLES + 1))

    @cached_property
    def _kernel_ns(self) -> Mapping[str, float]:
        """The time of each kernel, of all its launches."""
        found = dict.fromkeys((each.kernel for each in self.launches), 0.0)
        for launch, ns in zip(self.launches, self._launch_ns, strict=True):
            found[launch.kernel] += ns
        return found

    @cached_property
    def longest(self) -> Launch:
        """The launch whose kernel is looked into: the longest one of the kernel that takes the most time."""
        kernel = max(self._kernel_ns, key=self._kernel_ns.__getitem__)
        launches = [each for each in zip(self._launch_ns, self.launches, strict=True) if each[1].kernel == kernel]
        return max(launches, key=lambda each: each[0])[1]

    @cached_property
    def _alike(self) -> int:
        """The launches of the kernel, if all are as large as the longest; else 0: each writes its records over those before."""
        sizes = [(each.grid, each.block) for each in self.launches if each.kernel == self.longest.kernel]
        return len(sizes) if len(set(sizes)) == 1 else 0

    @cached_property
    def _symbol(self) -> str:
        return self._original.kernels[self.longest.kernel].symbol

    @cached_property
    def function(self) -> ptx.Function:
        """The kernel that is looked into."""
        return next(each for each in self.module.functions if each.name == self._symbol)

    # -- running -----------------------------------------------------------------------------------------------------------

    def outputs(self, entry: Entry) -> dict[str, np.ndarray]:
        """What a kernel computes."""
        self._bench.poison(False)
        return {key: cupy.asnumpy(array) for key, array in self._bench.run(self._operations[entry][0]).items()}

    def is_right(self, entry: Entry) -> bool:
        """Whether a kernel computes what the original does."""
        return all(_is_same(self._expected[key], array) for key, array in self.outputs(entry).items())

    @cached_property
    def _expected(self) -> dict[str, np.ndarray]:
        return self.outputs(Entry(ORIGINAL))

    def time(self, entries: Sequence[Entry]) -> None:
        """Time the entries in shuffled rounds."""
        rng, started, rounds = np.random.default_rng(self.seed), time.monotonic(), 0
        times: dict[Entry, list[float]] = {entry: [] for entry in entries}
        while rounds < _ROUNDS[0] or (rounds < _ROUNDS[1] and time.monotonic() - started < self.seconds):
            for place in rng.permutation(len(entries)):
                entry = entries[place]
                operation, _ = self._operations[entry]
                times[entry].append(float(self._bench.sample(operation, HOT, rounds + 1).duration_ns))
            rounds += 1
        self._times |= times

    def _ratio(self, entry: Entry, before: Entry) -> Interval:
        """The time of an entry over the time of another, paired by round."""
        return median_interval(np.divide(self._times[entry], self._times[before]))

    @property
    def original_ns(self) -> Interval:
        """The time of the original."""
        return median_interval(self._times[Entry(ORIGINAL)])

    # -- the experiments ---------------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[Row]:
        """Make all experiments. A row with a multiprocessor is of table `experiment_blocks`."""
        self._begin()
        yield from self._of_ablation()
        yield from self._facts()
        yield from self._of_probes()
        yield from self._of_counts()

    def of_marks(self) -> Iterator[Row]:
        """The probes and the delays alone."""
        self._begin()
        self.build({ASSEMBLED: _Altered(self.module)})
        self.time([Entry(ORIGINAL), Entry(ASSEMBLED)])
        yield from self._of_probes()

    def _begin(self) -> None:
        self._operations[Entry(ORIGINAL)] = (self._bench.prepare(self.variant, self.config), {})
        assert self._expected

    def _row(self, experiment: Experiment, what: str, value: Interval | float, unit: str, **more: Any) -> Row:
        value, low, high = value if isinstance(value, tuple) else (value, None, None)
        row = {"experiment": str(experiment), "what": what, "value": value, "low": low, "high": high, "unit": unit}
        return {"kernel": self.longest.kernel, **row, "lines": "", "note": "", **more}

    def _of_ablation(self) -> Iterator[Row]:
        found = ablation.works(self.module)
        modules = {
            str(work): _Altered(ablation.without(self.module, work), numbers=(1, 0) if ablation.is_switched(work) else (0,))
            for work in found
        }
        spills = max(kernel.spill_bytes for kernel in self._original.kernels.values())
        freed = ablation.without_register_limit(self.module)
        if spills and freed:
            modules[Fact.SPILL_BYTES] = _Altered(freed)
        names = self.build({ASSEMBLED: _Altered(self.module), **modules})
        entries = [
            Entry(name, number) for name in names for number in (modules[name].numbers if name in modules else ()) or (0,)
        ]
        self.time([Entry(ORIGINAL), *entries])
        yield self._row(Experiment.TIME, ORIGINAL, self.original_ns, "ns")
        yield self._row(Experiment.TIME, ASSEMBLED, median_interval(self._times[Entry(ASSEMBLED)]), "ns")
        for work, instructions in found.items():
            if work in names:
                yield self._without(work, instructions)
        yield self._row(Experiment.FACT, Fact.SPILL_BYTES, float(spills), "bytes")
        if Fact.SPILL_BYTES in names:
            entry = Entry(Fact.SPILL_BYTES)
            free = _scaled(self._ratio(entry, Entry(ASSEMBLED)), self.original_ns[0])
            right = "" if self.is_right(entry) else "its outputs differ"
            yield self._row(Experiment.WITHOUT, "the limit of registers", free, "ns", note=right)

    def _without(self, work: Work, instructions: Sequence[ptx.Instruction]) -> Row:
        name = str(work)
        before = Entry(name, 1) if ablation.is_switched(work) else Entry(ASSEMBLED)
        ratio, lines = self._ratio(Entry(name), before), _lines(instructions)
        if ablation.is_doubled(self.module, work):
            value, low, high = ratio
            free = _scaled((2 - value, 2 - high, 2 - low), self.original_ns[0])
            note = DONE_TWICE if self.is_right(Entry(name)) else "its outputs differ where it is done twice"
        else:
            free = _scaled(ratio, self.original_ns[0])
            modules = (self._modules[ASSEMBLED], self._modules[name])
            note = (
                self._cost(before)
                if ablation.is_switched(work)
                else ablation.changed_besides(work, *(self._counts(module) for module in modules))
            )
        return self._row(Experiment.WITHOUT, name, free, "ns", lines=lines, note=note)

    def _cost(self, switched_on: Entry) -> str:
        """What is wrong with a kernel that has all of its work; empty if nothing."""
        if not self.is_right(switched_on):
            return "its outputs differ with the class on"
        cost = self._ratio(switched_on, Entry(ASSEMBLED))[0] - 1
        return f"the switch costs {cost:+.0%}" if cost > _MOST_OVERHEAD else ""

    def _counts(self, module: CompiledModule) -> dict[Work, int]:
        code = disassemble(module.cubin)
        symbols = {kernel.symbol for kernel in module.kernels.values()}
        return ablation.counts(each.text for symbol in symbols for each in code[symbol])

    def _facts(self) -> Iterator[Row]:
        launch, kernel = self.longest, self._original.kernels[self.longest.kernel]
        device, blocks, threads = self._bench.device, int(np.prod(launch.grid)), int(np.prod(launch.block))
        facts: dict[str, float] = {Fact.LAUNCHES: len(self.launches)}
        if self._launches_are_timed:
            facts[Fact.PART] = self._kernel_ns[self.longest.kernel] / (sum(self._launch_ns) or 1.0)
        facts |= {Fact.BLOCKS: blocks, Fact.THREADS: threads, Fact.MULTIPROCESSORS: device.sm_count}
        if limits := limits_of(device.arch):
            shared = kernel.static_shared_bytes + launch.dynamic_shared_bytes
            facts[Fact.RESIDENT_BLOCKS] = occupancy(limits, threads, kernel.registers, shared).blocks
        for name, value in facts.items():
            yield self._row(Experiment.FACT, name, float(value), "")
        for chased in ablation.chased(self.function):
            yield self._row(Experiment.FACT, Fact.CHASED, 1.0, "", lines=_lines([chased]))
        for group in ablation.split_accesses(self.function):
            yield self._row(
                Experiment.FACT, Fact.SPLIT, float(len(group)), "", lines=_lines(group), note=str(ablation.work_of(group[0]))
            )

    def _of_probes(self) -> Iterator[Row]:
        """Stages, and the time in which multiprocessors have a block; then the waits, whose lengths depend on them. None of a kernel that has
        launches of several sizes."""
        if not self._alike:
            return
        name, launch = "probes", self.longest
        probes = marks.probed(self.module, self._symbol, int(np.prod(launch.grid)), -(-int(np.prod(launch.block)) // 32))
        if not self.build({name: _Altered(probes.module, (marks.RECORDS,))}):
            return
        self.time([Entry(ASSEMBLED), Entry(name)])
        records = self._read(name, marks.RECORDS, np.empty(probes.records, probes.dtype))
        ran = records[records["end_ns"] > 0]
        if not len(ran):
            return
        overhead = self._ratio(Entry(name), Entry(ASSEMBLED))
        yield self._row(Experiment.TIME, name, _scaled(overhead, self.original_ns[0]), "ns")
        # The first block begins before its first clock is read, and what the GPU does before it does not count.
        span = float(ran["end_ns"].max() - ran["start_ns"].min())
        busy = marks.busy_ns(ran) / (span * self._bench.device.sm_count)
        yield self._row(Experiment.FACT, Fact.BUSY, busy, "share")
        yield self._row(
            Experiment.FACT,
            Fact.BUSY_FIRST_HALF,
            marks.busy_ns(marks.until(ran, span / 2)) / (span / 2 * self._bench.device.sm_count),
            "share",
        )
        yield self._row(Experiment.FACT, Fact.USED_MULTIPROCESSORS, float(len(np.unique(ran["sm"]))), "")
        if abs(overhead[0] - 1) > _MOST_OVERHEAD:
            return
        total = float(ran["cycles"].sum())
        for number, stage in enumerate(probes.stages):
            share = float(ran["spent"][:, number].sum()) / total
            yield self._row(Experiment.STAGE, stage, share, "share", note=f"{ran['passed'][:, number].mean():.4g} times a warp")
        yield from marks.blocks_of(records, probes)
        yield from self._of_delays(ran)

    def _read(self, name: str, symbol: str, into: np.ndarray) -> np.ndarray:
        """What a kernel writes into memory of its module, which is 0 before it runs."""
        operation, addresses = self._operations[Entry(name)]
        runtime.memset(addresses[symbol], 0, into.nbytes)
        runtime.deviceSynchronize()
        self._bench.run(operation)
        runtime.deviceSynchronize()
        runtime.memcpy(into.ctypes.data, addresses[symbol], into.nbytes, runtime.memcpyDeviceToHost)
        return into

    def _of_delays(self, ran: np.ndarray) -> Iterator[Row]:
        found = marks.marks(self.function)
        columns, at = [], 0
        for mark in found:
            columns.append(at)
            at += 2 if mark.kind == "barrier" else 1
        passed = marks.passes(ran)
        cycles, ns = float(ran["cycles"].mean()), float((ran["end_ns"] - ran["start_ns"]).mean())
        waits = dict[str, tuple[marks.Mark, list[int], float]]()
        for number, mark in enumerate(found):
            times = float(passed[columns[number]])
            lengths = [round(share * cycles / times) for share in _LENGTHS] if times else []
            if lengths and lengths[0] < _LEAST_CYCLES:
                lengths = [round(length * _LEAST_CYCLES / lengths[0]) for length in lengths]
            if lengths:
                waits[f"delay {number}"] = mark, lengths, times
        if not waits:
            return
        modules = {
            name: _Altered(marks.delayed(self.module, self._symbol, mark), numbers=(0, *lengths))
            for name, (mark, lengths, _) in waits.items()
        }
        names = self.build(modules)
        self.time([Entry(name, number) for name in names for number in modules[name].numbers])
        in_sequence = marks.in_sequence(ran)
        for name, (mark, lengths, times) in waits.items():
            if name in names:
                added = np.array([length / cycles * ns * times * in_sequence * self._alike for length in lengths])
                took = np.array([self._times[Entry(name, length)] for length in lengths])
                doubt = _CYCLES_OF_A_READING / (lengths[-1] - lengths[0]), _RESOLUTION_NS / (added[-1] - added[0])
                yield self._delay(
                    mark, added, took, doubt, "" if self.is_right(Entry(name)) else "its outputs differ without a wait"
                )

    def _delay(self, mark: marks.Mark, added: np.ndarray, took: np.ndarray, doubt: tuple[float, float], note: str) -> Row:
        """The slope of the time over what was added. What a wait costs whatever its length is no part of the slope.

        Args:
            doubt: what the interval is wider by: as a share of the slope, since a wait ends at a reading of the clock, and a number.
        """
        centred = added - added.mean()
        value, low, high = median_interval(centred @ took / (centred @ centred))
        wider = abs(value) * doubt[0] + doubt[1]
        place = str(mark.place[1]) if mark.place else ""
        slope = value, low - wider, high + wider
        return self._row(Experiment.DELAY, mark.text, slope, "share", lines=place, note=note)

    def _of_counts(self) -> Iterator[Row]:
        name = "counts"
        module, counters = marks.counted(self.module, self._symbol)
        if not self.build({name: _Altered(module, (marks.COUNTS,))}):
            return
        counts = self._read(name, marks.COUNTS, np.empty((len(counters), 4), np.uint64))
        yield from self._counted(counters, counts.astype(float))

    def _counted(self, counters: Sequence[marks.Counter], counts: np.ndarray) -> Iterator[Row]:
        weights = np.array([each.instructions for each in counters], float)
        if warps := float(weights @ counts[:, 0]):
            yield self._row(Experiment.FACT, Fact.INSTRUCTIONS, warps, "")
            yield self._row(Experiment.FACT, Fact.LANES, float(weights @ counts[:, 1]) / warps, "")
        for counter, (times, lanes, parts, addresses) in zip(counters, counts, strict=True):
            access = counter.access
            if access is None or not times:
                continue
            work, place = ablation.work_of(access), _lines([access])
            about = {"lines": place, "note": str(work)}
            yield self._row(Experiment.ACCESS, Fact.TIMES, times, "", **about)
            yield self._row(Experiment.ACCESS, Fact.ADDRESSES, addresses / lanes, "share", **about)
            if work is Work.SHARED:
                yield self._row(Experiment.ACCESS, Fact.BANK_PASSES, parts / times, "", **about)
            else:
                least = np.ceil(max(lanes / times * ablation.bytes_of(access) / 32, 1.0))
                yield self._row(Experiment.ACCESS, Fact.SECTORS, parts / times / least, "", **about)


def _scaled(ratio: Interval, by: float) -> Interval:
    value, low, high = ratio
    return value * by, low * by, high * by


def _lines(instructions: Sequence[ptx.Instruction]) -> str:
    """The lines of the instructions, such as `12,40`."""
    return ",".join(str(line) for line in sorted({each.place[1] for each in instructions if each.place}))


def _is_same(expected: np.ndarray, array: np.ndarray) -> bool:
    if expected.dtype.kind not in "fc":
        return bool(np.array_equal(expected, array))
    distance = np.linalg.norm(np.nan_to_num(expected.astype(float) - array).ravel())
    return bool(distance <= _SAME * max(float(np.linalg.norm(np.nan_to_num(expected.astype(float)).ravel())), 1e-30))


def main() -> None:
    """Make the experiments that the first argument asks for, as JSON."""
    answers = os.fdopen(os.dup(1), "w")  # for our lines only: what the file or a library prints goes to stderr
    os.dup2(2, 1)

    def say(message: str | dict[str, Any]) -> None:
        print(json.dumps(message), file=answers, flush=True)

    request: dict[str, Any] = json.loads(sys.argv[1])
    names, files = ([], [Path(request["file"])]) if request["file"] else ([request["workload"]], [])
    loaded = registry.load_with_files(names, files)
    workload = next(each for each, _ in loaded if each.name == request["workload"])
    variant = workload.variant(request["variant"])
    assert isinstance(variant, CudaVariant)
    config = next(each for each in variant.configs if format_params(each) == request["config"])
    case, seconds, skip = workload.case(request["case"]), request["seconds"], request["skip"]
    for row in Inside(workload, variant, config, case, seconds, skip, say).rows():
        say(row)


if __name__ == "__main__":
    main()
