"""Further passes of a recording, whose times do not count: a trace, since a tracer lengthens some kernels, hardware counters, since a
profiler repeats each kernel, energy, since it takes loops of a second, compute-sanitizer, which slows kernels down by a hundred, and random
delays. The times come first; all passes are one run.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from warpladder.collectors import choice
from warpladder.collectors.choice import ENTRIES
from warpladder.collectors.core import journal, under_tool
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.checked import Checks
from warpladder.collectors.core.environment import CollectorError
from warpladder.collectors.core.plan import Plan, PlanError, Request
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.cuda import assembly
from warpladder.collectors.sanitizer.report import SANITIZER
from warpladder.data import schema, store
from warpladder.data.names import Source, diagnostic_row
from warpladder.errors import Error

#: Collectors that trace; the first one that can run here is taken.
TRACERS: Final = tuple(name for name, entry in ENTRIES.items() if entry.traces)
#: The collector whose times a further pass can stand beside.
TIMED_BY: Final = "cuda_events"
_ROUNDS: Final = 3
#: About how long the profiler takes to start, one cell its inputs and its verification, and one launch its passes.
_SECONDS_TO_START: Final = 15.0
_SECONDS_A_CELL: Final = 1.5
_SECONDS_A_LAUNCH: Final = 1.5
#: Most launches of a cell whose counters are read, so that one cell does not take minutes.
_MOST_LAUNCHES: Final = 32
#: Sources of a tracer's findings about its own trace. Findings about cells and samples come from the pass whose times count.
_OF_TRACE: Final = frozenset(
    {
        *(Source.AGREEMENT, Source.ATTRIBUTION, Source.DROPPED, Source.GRAPHS, Source.LAUNCHES, Source.NSYS, Source.NVTX),
        *(Source.REPORT, Source.TABLES, Source.TIMES, Source.TRACING),
    }
)
_OF_COUNTERS: Final = frozenset({Source.NSIGHT_COMPUTE})
_OF_ENERGY: Final = frozenset({Source.ENERGY})
#: Rounds of the pass that reads energy, the fewest that give a 95 % interval, and one before them to warm up.
_ENERGY_ROUNDS: Final = 6
#: About how long one loop takes, and the idle GPU is measured.
_SECONDS_A_LOOP: Final = 1.4
_SECONDS_IDLE: Final = 7.0
#: Passes that take some of the cells.
_OF_CELLS: Final = frozenset({choice.COUNTER, choice.ENERGY})

#: Records into a data folder. Returns the run's id.
RecordInto = Callable[[Path], str]


@dataclass(frozen=True)
class FurtherPass:
    """A pass after the times.

    Attributes:
        option: the option that asks for it, `--trace`, `--counters`, `--energy`, `--sanitize` or `--stress`.
        what: what the pass does, for messages.
        collector: the collector of the pass.
        tables: the tables that it adds to the run.
        sources: sources of its diagnostics that are kept.
    """

    option: str
    what: str
    collector: str
    tables: tuple[str, ...]
    sources: Collection[str]


def trace_by(collector: str, gpus: int) -> FurtherPass:
    """The pass that traces.

    Args:
        collector: the one that takes the times.
        gpus: the most GPUs that share a case.

    Raises:
        PlanError: there is nothing that a further pass could trace.
        CollectorError: no tracer can run here.
    """
    if collector in TRACERS:
        raise PlanError(f"--trace: {collector} traces already; leave out --trace, or --collector, so that CUDA events time")
    _check_timed("--trace", "traced", collector, gpus)
    tables = ("ranges", "kernels", "memory_ops", "api_calls")
    return FurtherPass("--trace", "traces", _first_of("--trace", TRACERS), tables, _OF_TRACE)


def counters_by(collector: str, gpus: int) -> FurtherPass:
    """The pass that reads hardware counters; the arguments and errors are as for `trace_by`."""
    if collector == choice.COUNTER:
        raise PlanError(
            f"--counters: {collector} reads counters already; leave out --counters, or --collector, to have times too"
        )
    _check_timed("--counters", "profiled", collector, gpus)
    tables = ("counters", "instruction_counters", "rules")
    return FurtherPass("--counters", "reads counters", _first_of("--counters", (choice.COUNTER,)), tables, _OF_COUNTERS)


def energy_by(collector: str, gpus: int) -> FurtherPass:
    """The pass that reads energy; the arguments are as for `trace_by`. Raises PlanError: there is no energy of a
    variant that could be read."""
    _check_timed("--energy", "repeated", collector, gpus, sees="NVML's counter is of one GPU")
    if problem := choice.energy_problem():
        raise PlanError(f"--energy: {problem}")
    return FurtherPass("--energy", "reads energy", choice.ENERGY, ("energy",), _OF_ENERGY)


def sanitizer_by(collector: str, gpus: int) -> FurtherPass:
    """The pass under compute-sanitizer; the arguments and errors are as for `trace_by`."""
    _check_timed("--sanitize", "checked", collector, gpus)
    if problem := SANITIZER.problem:
        raise CollectorError(f"--sanitize: {problem}")
    return FurtherPass("--sanitize", "checks accesses and barriers", choice.SANITIZER, (), frozenset({Source.SANITIZER}))


def stress_by(collector: str, gpus: int) -> FurtherPass:
    """The pass with random delays; the arguments and errors are as for `trace_by`."""
    _check_timed("--stress", "delayed", collector, gpus, sees="kernels are delayed in one process")
    if problem := assembly.problem():
        raise CollectorError(f"--stress: {problem}")
    return FurtherPass("--stress", "delays kernels", choice.STRESS, (), frozenset({Source.STRESS}))


#: What makes the pass of an option, in the order in which passes are made.
BY_OPTION: Final = {
    "trace": trace_by,
    "energy": energy_by,
    "counters": counters_by,
    "sanitize": sanitizer_by,
    "stress": stress_by,
}


def check_kinds(further: Sequence[FurtherPass], plan: Plan) -> None:
    """Raise PlanError where no variant of a plan can be delayed."""
    if any(each.collector == choice.STRESS for each in further) and "cuda" not in plan.kinds:
        raise PlanError("--stress: no variant here has kernels in CUDA C++ or PTX; choose one that has, or leave out --stress")


def _check_timed(option: str, done: str, collector: str, gpus: int, sees: str = "the tool sees one process") -> None:
    if collector != TIMED_BY:
        raise PlanError(f"{option}: {collector} times no work of a GPU that could be {done}; leave out {option}")
    if gpus > 1:
        raise PlanError(f"{option}: {sees}; with --gpus {gpus} record without it")


def _first_of(option: str, names: Sequence[str]) -> str:
    """The first collector that can run here. Raises CollectorError."""
    problems = []
    for name in names:
        problem = choice.problem_of(name)
        if problem is None:
            return name
        problems.append(f"{name}: {problem}")
    raise CollectorError(f"{option}: {'; '.join(problems)}")


def request_of(of: FurtherPass, request: Request, cells: Path) -> Request:
    """The request of a further pass: a few rounds in one process, of all cells or of some, or one execution of some
    cells. `cells`: file with the cells of a pass that takes some; see `plan.write_cells`."""
    if of.collector == choice.ENERGY:
        return replace(request, cells=cells, no_limit=True, processes=1, max_rounds=_ENERGY_ROUNDS)
    if of.collector == choice.COUNTER:
        return replace(request, cells=cells, no_limit=True)
    return replace(request, processes=1, max_rounds=min(request.max_rounds or _ROUNDS, _ROUNDS))


def cells_of(of: FurtherPass, run: store.Run) -> tuple[list[Cell], str] | None:
    """The cells of a run that a pass takes, with how long it will take and what it leaves out, in words; None for a
    pass that takes all. Raises CollectorError: no cell of the run can be taken."""
    if of.collector not in _OF_CELLS:
        return None
    cells, about = counted_cells(run) if of.collector == choice.COUNTER else _looped_cells(run)
    if not cells:
        raise CollectorError("no cell of a GPU was timed; the run has the reason of each cell")
    return cells, about


def counted_cells(run: store.Run) -> tuple[list[Cell], str]:
    """The cells whose counters are read: of each variant and case the one with the least median device time, or the least operation
    time where no device time was taken. One with more launches than `_MOST_LAUNCHES`, each of which the profiler repeats, is left out.
    """
    fastest = _fastest(run, ("device", "operation"))
    launches = Counter[Cell]()
    for row in run.records("cell_launches"):
        launches[Cell.of(row)] += 1  # of those that are alike, one is profiled
    cells = [cell for cell in fastest if launches[cell] <= _MOST_LAUNCHES]
    # Only the profiler counts the launches of a library.
    known = all(launches[cell] for cell in cells)
    repeated = sum(max(launches[cell], 1) for cell in cells)
    seconds = _SECONDS_TO_START + len(cells) * _SECONDS_A_CELL + repeated * _SECONDS_A_LAUNCH
    about = f"about {seconds:.0f} s" if known else f"at least {seconds:.0f} s: the kernels of libraries are not counted yet"
    left_out = len(fastest) - len(cells)
    less = f"; left out for more than {_MOST_LAUNCHES} launches: {left_out}" if left_out else ""
    return cells, f"cells whose counters are read: {len(cells)}, {about}{less}"


def _looped_cells(run: store.Run) -> tuple[list[Cell], str]:
    """The cells whose energy is read: of each variant and case with a device time the one with the least median."""
    cells = _fastest(run, ("device",))
    twins = len({(cell.workload, cell.case) for cell in cells})
    loops = (len(cells) + twins) * (_ENERGY_ROUNDS + 1)
    seconds = _SECONDS_TO_START + _SECONDS_IDLE + len(cells) * _SECONDS_A_CELL + loops * _SECONDS_A_LOOP
    rounds = f"{_ENERGY_ROUNDS} rounds of a second or more a cell"
    return cells, f"cells whose energy is read: {len(cells)}, about {seconds:.0f} s: {rounds}"


def _fastest(run: store.Run, scopes: Sequence[str]) -> list[Cell]:
    """Of each variant of a GPU and case, the cell with the least cold median in the first of these scopes that it has."""
    samples = run.table("samples", ["workload", "variant", "config", "case", "scope", "cache", "gpus", "duration_ns"])
    timed = samples[(samples["gpus"] <= 1) & samples["scope"].isin(scopes) & (samples["cache"] == "cold")]
    medians = timed.groupby(["scope", "workload", "variant", "config", "case"], observed=True)["duration_ns"].median()
    ordered = medians.reset_index().sort_values(["scope", "duration_ns"], kind="stable")
    best = ordered.drop_duplicates(["workload", "variant", "case"]).sort_index()
    host = {(row["workload"], row["variant"]) for row in run.records("variants") if row["kind"] == "host"}
    return [cell for row in best.to_dict("records") if (cell := Cell.of(row)) and (cell.workload, cell.variant) not in host]


def record(
    data_dir: Path,
    label: str,
    times: RecordInto,
    further: Mapping[FurtherPass, Callable[[store.Run, Path], str]],
    stop: Stop,
) -> str:
    """Record the times, then each further pass, and write all as one run. Returns the run's id.

    Args:
        further: records a pass into a folder, given the run of the times.
        stop: receives signals. A signal during a pass leaves the later ones out.

    Raises:
        CollectorError: a pass failed. The times and the other passes are kept as a run, which the message names.
        StoreError: the data folder cannot be written.
    """
    with under_tool.begin(data_dir, label) as writer:
        folder, runs = journal.make_folder(writer.staging)
        run = store.open_run(runs / times(runs))
        passed: dict[FurtherPass, store.Run] = {}
        missing: dict[FurtherPass, str] = {}
        for each, record_pass in further.items():
            place = folder / each.option.strip("-")
            if stop.number:
                missing[each] = f"the recording was interrupted before the pass that {each.what}"
                continue
            try:
                passed[each] = store.open_run(place / record_pass(run, place))
            except Error as error:
                missing[each] = f"the pass that {each.what} failed: {error}"
        run_id = under_tool.finish(writer, data_dir, label, run, partial(_together, run, passed, missing), stop.number)
    if missing and not stop.number:
        why = "; ".join(f"{each.option}: {reason}" for each, reason in missing.items())
        raise CollectorError(f"{why}; the times are kept as run {run_id}")
    return run_id


def check(checks: Checks, run: store.Run, data_dir: Path, say: Callable[[str], object]) -> str:
    """Look for faults in the variants of a run, and write the findings as a run. Returns its id."""
    say(checks.about)
    with under_tool.begin(data_dir, "") as writer:
        journal.copy_run(run, writer, checks.rows())
        writer.commit()
    return writer.run_id


def _together(
    run: store.Run, passed: Mapping[FurtherPass, store.Run], missing: Mapping[FurtherPass, str], into: store.RunWriter
) -> None:
    """Write the times, and the tables of each pass."""
    rows = [diagnostic_row("warning", Source.TRACING, reason) for reason in missing.values()]
    for each, further_run in passed.items():
        rows += [row for row in further_run.records("diagnostics") if row["source"] in each.sources]
        if each.collector in _OF_CELLS:
            rows += lacking(each, further_run)
        if each.collector not in choice.CHECKS:
            rows.append(diagnostic_row("info", Source.TRACING, _told(each, further_run, str(run.info["collector"]))))
    journal.copy_run(run, into, rows)
    for each, further_run in passed.items():
        for table in each.tables:
            for batch in further_run.scan(table, schema.TABLES[table].arrow.names):
                into.append(table, pa.Table.from_batches([batch]))
        if each.collector == choice.COUNTER:
            for table, further_rows in _further_code(run, further_run).items():
                into.append(table, further_rows)


def _told(of: FurtherPass, further: store.Run, timed_by: str) -> str:
    """Which pass the times are of."""
    if of.collector == choice.ENERGY:
        return f"the energy is of loops in a further pass; the times are those of {timed_by}, in short samples"
    by = f"{further.info['collector']} {further.info['collector_version']}"
    noun, disturbed = ("trace is", "no tracer") if of.collector in TRACERS else ("counters are", "no profiler")
    return f"the {noun} of a further pass by {by}; the times are those of {timed_by}, which {disturbed} disturbed"


def lacking(of: FurtherPass, further: store.Run) -> Iterator[dict[str, Any]]:
    """A finding for each reason why cells have no energy or no counters. It is about no cell, since their times are not in doubt."""
    (source,), table = of.sources, of.tables[0]
    have = {Cell.of(row) for row in further.records(table)}
    reasons: defaultdict[str, list[Cell]] = defaultdict(list)
    for row in further.records("results"):
        if Cell.of(row) not in have:
            reasons[str(row["detail"])].append(Cell.of(row))
    for reason, cells in reasons.items():
        more = f" and {len(cells) - 1} more" if len(cells) > 1 else ""
        why = f": {reason}" if reason else ""
        yield diagnostic_row("warning", source, f"no {table} of {cells[0]}{more}{why}")


def _further_code(run: store.Run, further: store.Run) -> dict[str, list[dict[str, Any]]]:
    """The launches and the code that only the further pass knows, such as those of libraries."""
    known = {Cell.of(row) for row in run.records("cell_launches")}
    launches = [row for row in further.records("cell_launches") if Cell.of(row) not in known]
    used = {row["code"] for row in launches} - {row["code"] for row in run.records("machine_code")}
    code = [row for row in further.records("machine_code") if row["code"] in used]
    return {"cell_launches": launches, "machine_code": code}
