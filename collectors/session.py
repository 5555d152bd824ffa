"""Records from Python: from scripts, and from notebooks and prompts, whose workloads no other process can load."""

import io
import random
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from warpladder.collectors import answers, choice, commands
from warpladder.collectors.core import plan, record, runs, threads
from warpladder.collectors.core.children import ChildProcess
from warpladder.collectors.core.jobs import HeldWorkload, WorkloadRef, held
from warpladder.collectors.core.progress import Progress
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.core.tools import CollectorError
from warpladder.collectors.progress import is_interactive, progress
from warpladder.collectors.wiring import collector_of
from warpladder.workloads import neighbours, registry
from warpladder.workloads.api import Variant, Workload, WorkloadError
from warpladder.workloads.functions import wrapped
from warpladder.workloads.functions.benchmark import Benchmark

_MOST_PRINTED, _MOST_SHOWN = 2000, 300


@dataclass(frozen=True)
class Asked:
    """What is to be recorded; the fields are the options of `warpladder record`."""

    request: plan.Request
    collector: str = "auto"
    label: str = ""


@dataclass(frozen=True)
class _Found:
    """A workload, and how the process or thread that measures finds it.

    Attributes:
        why_here: why only this process has it; empty where another process can load it.
    """

    workload: Workload
    ref: WorkloadRef
    why_here: str = ""


def record_run(declared: Sequence[Any], asked: Asked, data_dir: Path) -> Path:
    """Verify, measure and write a run. Shows the progress, then the verdicts.

    Args:
        declared: benchmarks, workloads, names of workloads that ship, and paths of Python files.
        asked: `names` and `files` of its request are ignored.
        data_dir: folder for the run.

    Returns:
        The run's folder. At a prompt and in a notebook also after Ctrl-C, with what was measured until then.

    Raises:
        PlanError, WorkloadError: the request cannot be planned.
        Error: the label cannot be stored.
        CollectorError: the collector cannot run here.
        StoreError: the data folder cannot be written.
        KeyboardInterrupt, SystemExit: a script was interrupted or ended by a signal. What was measured is kept.
    """
    neighbours.end_if_loading()
    runs.check_label(asked.label)
    with _same_generators():
        path, number, shown, lines = _recorded(declared, asked, data_dir)
    shown.end(lines)
    _leave(number)
    return path


def _recorded(declared: Sequence[Any], asked: Asked, data_dir: Path) -> tuple[Path, int, Progress, Sequence[str]]:
    """The run, the number of the signal that interrupted it or 0, and the progress with the lines to end it with."""
    found = [each for one in declared for each in _find(one)]
    if not found:
        raise plan.PlanError("nothing to record; give a workload, a benchmark, or the path of a Python file")
    here = next((each.why_here for each in found if each.why_here), "")
    if here:
        found = [replace(each, ref=HeldWorkload(each.workload.name)) for each in found]
    request = _request(asked.request, here)
    work = plan.make_plan(request, given=[(each.workload, each.ref) for each in found])
    name, why = _choose(asked.collector)
    work = work.on_host(why) if name == "host_clock" else work
    if here and (problem := threads.why_not()):
        raise CollectorError(problem)
    salvage(data_dir)
    headline = commands.headline_of(name, why) + (f"; in this process, because {here}" if here else "")
    collector = collector_of(name)
    script = _script() if any(each.ref.file == _script() for each in found) else None
    with ExitStack() as stack:
        stop, shown = stack.enter_context(Stop()), stack.enter_context(progress(headline))
        printed = io.StringIO()
        if here:
            stack.enter_context(held(work.workloads))
            printed = stack.enter_context(_printed())
        start: record.StartChild = partial(threads.start, collector) if here else _process(name, script)
        recorder = record.Recorder(work, collector, shown, start_child=start)
        run_id, number = recorder.record(data_dir, asked.label, _again(request, found, here), stop)
    path = data_dir / run_id
    counts, *found_wrong = answers.summary_of(path)
    return path, number, shown, [f"run {run_id}: {counts}", *found_wrong, *_told(printed.getvalue())]


@contextmanager
def _same_generators() -> Iterator[None]:
    """Restore the random generators of this process, which are seeded for the inputs of benchmarks."""
    torch = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state(), torch and torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        if torch:
            torch.set_rng_state(before[2])


def _find(one: Any) -> Iterator[_Found]:
    """Raises WorkloadError."""
    if isinstance(one, Path) or (isinstance(one, str) and one.endswith(".py")):
        for workload in registry.load_all([], [Path(one)]):
            yield _Found(workload, WorkloadRef(workload.name, Path(one).resolve()))
    elif isinstance(one, str):
        yield _Found(registry.load(one), WorkloadRef(one))
    else:
        if not isinstance(one, Workload | Benchmark):
            raise WorkloadError(
                f"{type(one).__name__} {str(one)[:60]}: not a workload; give a Benchmark, a Workload, a name or a path"
            )
        workload = one if isinstance(one, Workload) else one.workload
        file_or_why = _file_of(one, workload)
        if isinstance(file_or_why, Path):
            yield _Found(workload, WorkloadRef(workload.name, file_or_why))
        else:
            yield _Found(workload, HeldWorkload(workload.name), file_or_why)


def _file_of(declared: Any, workload: Workload) -> Path | str:
    """The file that declares an object at its top level, from which another process can load it; or why there is none."""
    if any(map(_is_of_session, workload.variants)):
        return f"{workload.name} was declared in this session"
    modules = [module for module in list(sys.modules.values()) if _declares(module, declared)]
    modules.sort(key=lambda module: module.__name__ == "__main__")
    for module in modules[:1]:
        if module.__name__ == "__main__" and _at_first_record(module).get(id(declared)) != _variants(declared):
            return f"the script first recorded before it had declared all of {workload.name}"
        return Path(str(module.__file__)).resolve()
    return f"{workload.name} is at the top level of no file"


#: What a script had declared, with its variants, when it first recorded. A process that loads the script stops there.
_first: Final[dict[str, dict[int, tuple[str, ...]]]] = {}


def _at_first_record(script: ModuleType) -> dict[int, tuple[str, ...]]:
    """The names of the variants of everything that the script declared by its first recording, by the object's id."""
    return _first.setdefault(
        str(script.__file__), {id(value): names for value in vars(script).values() if (names := _variants(value))}
    )


def _variants(declared: Any) -> tuple[str, ...]:
    """The names of the variants of a workload or benchmark; none for anything else."""
    if isinstance(declared, Workload | Benchmark):
        return tuple(each if isinstance(each, str) else each.name for each in declared.variants)
    return ()


def _is_of_session(variant: Variant) -> bool:
    """Whether a variant is a function of a notebook's cell or a prompt, which are in no file."""
    function = next((getattr(variant, name) for name in ("function", "run", "prepare") if hasattr(variant, name)), None)
    code = wrapped.code_of(function) if function else None
    return code is not None and not Path(code.co_filename).is_file()


def _declares(module: ModuleType, declared: Any) -> bool:
    """Whether a module of a `.py` file has the object under a name that the file's loader looks at."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        return False
    names = [name for name, value in list(vars(module).items()) if value is declared]
    return "WORKLOAD" in names if isinstance(declared, Workload) else bool(names)


def _script() -> Path | None:
    """The script that Python runs; None at a prompt."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(file).resolve() if isinstance(file, str) else None


def _request(request: plan.Request, here: str) -> plan.Request:
    """The request for this process. Raises PlanError."""
    if not here:
        return request
    if (request.processes or 1) > 1:
        raise plan.PlanError(
            f"processes={request.processes}: there is one process, because {here}; put the benchmark into a file"
        )
    return replace(request, processes=1)


def _choose(collector: str) -> tuple[str, str]:
    """Raises CollectorError."""
    if collector in commands.UNDER_TOOL:
        raise CollectorError(
            f"{collector}: this tool starts the program that it looks at; run `warpladder record FILE --collector {collector}`"
        )
    return choice.choose(collector)


def _process(collector: str, script: Path | None) -> record.StartChild:
    """A process that finds the arguments of the script that it loads."""
    return partial(ChildProcess, collector, argv=sys.argv if script else ("-c",))


def _again(request: plan.Request, found: Sequence[_Found], here: str) -> Sequence[str] | str:
    """What records the same again: the arguments of the command, or a call where only this process has the workloads."""
    if here:
        options = {"cases": list(request.cases) or request.case_set, "variants": list(request.variants)}
        options |= {name: getattr(request, name) for name in ("seed", "max_rounds", "seconds")}
        given = [f"{name}={value!r}" for name, value in options.items() if value and value != plan.Request.case_set]
        return f"warpladder.record({', '.join([*(each.workload.name for each in found), *given])})"
    named = [str(each.ref.file) if each.ref.file else each.workload.name for each in found]
    return ["record", *named, *request.arguments()]


class _First(io.StringIO):
    """Keeps the first characters that are written to it."""

    def write(self, text: str, /) -> int:
        super().write(text[: max(_MOST_PRINTED - self.tell(), 0)])
        return len(text)


@contextmanager
def _printed() -> Iterator[io.StringIO]:
    """Keep what the functions print: one line a call would bury everything else."""
    with redirect_stdout(_First()) as printed:
        yield printed


def _told(printed: str) -> list[str]:
    if not printed.strip():
        return []
    lines = list(dict.fromkeys(line for line in printed.splitlines() if line.strip()))
    return [f"printed by the functions: {' | '.join(lines)[:_MOST_SHOWN]}{' …' if len(printed) >= _MOST_PRINTED else ''}"]


def _leave(number: int) -> None:
    """End a script that a signal interrupted. At a prompt, Ctrl-C ends the recording alone."""
    if number and not (number == signal.SIGINT and is_interactive()):
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)


def request_of(
    cases: str | Sequence[str] = "quick",
    axis: Mapping[str, Any] | None = None,
    variants: str | Sequence[str] = (),
    **options: Any,
) -> plan.Request:
    """A request from the arguments of `warpladder.record`.

    Args:
        cases: a set of cases, or names of cases.
        axis: values by axis, for a sweep.
        variants: names; empty for all.
        options: further fields of the request.

    Raises:
        PlanError: an axis or a number is not valid.
    """
    names = [cases] if isinstance(cases, str) else list(cases)
    case_set = names[0] if len(names) == 1 and names[0] in plan.CASE_SETS else ""
    sweep = plan.sweep_of([f"{name}={_values(values)}" for name, values in (axis or {}).items()])
    for name, least in (("max_rounds", 1), ("processes", 1), ("seconds", 0), ("seed", 0)):
        value = options.get(name)
        if value is not None and not (isinstance(value, int | float) and value >= least and (value or name == "seed")):
            raise plan.PlanError(f"{name}={value!r}: give a number above {0 if name != 'seed' else -1}")
    return plan.Request(
        case_set=case_set or "quick",
        cases=[*([] if case_set else names), *sweep],
        variants=[variants] if isinstance(variants, str) else list(variants),
        **options,
    )


def _values(values: Any) -> str:
    return ",".join(map(str, values)) if isinstance(values, Sequence) and not isinstance(values, str) else str(values)
