"""Records benchmarks that Python code declares: finds the file from which a process can load them, or measures in this process if
there is no file."""

import io
import random
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from warpladder import progress, recording, screen
from warpladder.collectors.core import plan
from warpladder.collectors.core.environment import CollectorError
from warpladder.collectors.core.plan import HeldWorkload, WorkloadRef
from warpladder.collectors.core.signals import Stop
from warpladder.dashboard.text import summary
from warpladder.data import store
from warpladder.workloads import registry
from warpladder.workloads.api import Variant, Workload, WorkloadError
from warpladder.workloads.declare.functions import wrapped
from warpladder.workloads.declare.functions.benchmark import Benchmark

_MOST_PRINTED, _MOST_SHOWN = 2000, 300


class _Located(NamedTuple):
    """A workload, how the process or thread that measures finds it, and why only this process has it; empty where another can load it."""

    workload: Workload
    ref: WorkloadRef
    why_here: str = ""


def record(declared: Sequence[Any], request: plan.Request, collector: str, label: str, data_dir: Path) -> Path:
    """Verify, measure and write a run. Shows the progress, then what failed and what was distrusted.

    Args:
        declared: benchmarks, workloads, names of workloads that ship, and paths of Python files.
        request: cases and variants; its `names` and `files` are ignored.
        collector, label, data_dir: see `recording.Order`.

    Returns:
        The run's folder. At a prompt and in a notebook also after Ctrl-C, with what was measured until then.

    Raises:
        Error: as for `recording.plan` and `recording.record`.
        KeyboardInterrupt, SystemExit: a script was interrupted or ended by a signal. What was measured is kept.
    """
    with _same_generators():
        planned = recording.plan(_order(declared, request, collector, label, data_dir))
        with (
            Stop() as stop,
            progress.progress(planned.headline) as display,
            # One line a call would bury everything else.
            redirect_stdout(_First()) if planned.order.why_here else nullcontext(io.StringIO()) as printed,
        ):
            run_id = recording.record(planned, stop, lambda _: nullcontext(display), screen.say)
        run = store.open_run(data_dir / run_id)
        counts, *findings = summary.findings(run)
    display.end([f"run {run_id}: {counts}", *findings, *_outputs(printed.getvalue())])
    _leave(stop.number)
    return run.path


def _order(declared: Sequence[Any], request: plan.Request, collector: str, label: str, data_dir: Path) -> recording.Order:
    """Raises Error."""
    if collector in recording.UNDER_TOOL:
        raise CollectorError(
            f"{collector}: this tool starts the program that it looks at; run `warpladder record FILE --collector {collector}`"
        )
    located = [each for source in declared for each in _locate(source)]
    if not located:
        raise plan.PlanError("nothing to record; give a workload, a benchmark, or the path of a Python file")
    reason = next((each.why_here for each in located if each.why_here), "")
    if reason:
        if (request.processes or 1) > 1:
            raise plan.PlanError(
                f"processes={request.processes}: there is one process, because {reason}; put the benchmark into a file"
            )
        located = [each._replace(ref=HeldWorkload(each.workload.name)) for each in located]
        request = replace(request, processes=1)
    main = getattr(sys.modules.get("__main__"), "__file__", None)  # None at a prompt
    script = Path(main).resolve() if isinstance(main, str) else None
    return recording.Order(
        request,
        data_dir,
        _again(request, located, reason),
        collector,
        label,
        declared=[(each.workload, each.ref) for each in located],
        why_here=reason,
        script_arguments=sys.argv if script and any(each.ref.file == script for each in located) else ("-c",),
    )


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


def _locate(source: Any) -> Iterator[_Located]:
    """Raises WorkloadError."""
    if isinstance(source, Path) or (isinstance(source, str) and source.endswith(".py")):
        for workload in registry.load_all([], [Path(source)]):
            yield _Located(workload, WorkloadRef(workload.name, Path(source).resolve()))
    elif isinstance(source, str):
        yield _Located(registry.load(source), WorkloadRef(source))
    else:
        if not isinstance(source, Workload | Benchmark):
            raise WorkloadError(
                f"{type(source).__name__} {str(source)[:60]}: not a workload; give a Benchmark, a Workload, a name or a path"
            )
        workload = source if isinstance(source, Workload) else source.workload
        file_or_why = _file_of(source, workload)
        if isinstance(file_or_why, Path):
            yield _Located(workload, WorkloadRef(workload.name, file_or_why))
        else:
            yield _Located(workload, HeldWorkload(workload.name), file_or_why)


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


def _again(request: plan.Request, located: Sequence[_Located], reason: str) -> Sequence[str] | str:
    """Write how to record the same again: the arguments of the command, or a call where only this process has the workloads."""
    if reason:
        options = {"cases": list(request.cases) or request.case_set, "variants": list(request.variants)}
        options |= {name: getattr(request, name) for name in ("seed", "max_rounds", "seconds")}
        arguments = [f"{name}={value!r}" for name, value in options.items() if value and value != plan.Request.case_set]
        return f"warpladder.record({', '.join([*(each.workload.name for each in located), *arguments])})"
    sources = [str(each.ref.file) if each.ref.file else each.workload.name for each in located]
    return ["record", *sources, *request.arguments()]


class _First(io.StringIO):
    """Keeps the first characters that are written to it."""

    def write(self, text: str, /) -> int:
        super().write(text[: max(_MOST_PRINTED - self.tell(), 0)])
        return len(text)


def _outputs(printed: str) -> list[str]:
    if not printed.strip():
        return []
    lines = list(dict.fromkeys(line for line in printed.splitlines() if line.strip()))
    return [f"printed by the functions: {' | '.join(lines)[:_MOST_SHOWN]}{' …' if len(printed) >= _MOST_PRINTED else ''}"]


def _leave(number: int) -> None:
    """End a script that a signal interrupted. At a prompt, Ctrl-C ends the recording alone."""
    if number and not (number == signal.SIGINT and progress.is_interactive()):
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)


def request_of(
    cases: str | Sequence[str] = "quick",
    axis: Mapping[str, Any] | None = None,
    variants: str | Sequence[str] = (),
    **options: Any,
) -> plan.Request:
    """A request from the arguments of `warpladder.record`. Raises PlanError: an axis or a number is not valid.

    Args:
        cases: a set of cases, or names of cases.
        axis: values by axis, for a sweep.
        variants: names; empty for all.
        options: further fields of the request.
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
