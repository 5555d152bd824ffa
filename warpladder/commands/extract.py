"""`warpladder extract` and `forecast`: the operations of a trace that are worth work as a file of benchmarks, and what a faster variant of
them is worth."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from warpladder.commands.common import FILE, data_dir_option, folders, format_option, regex_of_kernels
from warpladder.dashboard.text.formats import TABLE_OR_JSON, TableOrJson, json_text
from warpladder.data.files import one_line
from warpladder.errors import Error
from warpladder.screen import print_text, say

_NO_JOB: Final = "no job; give the recording of the file that extract wrote as RUN, or import the profiles of all ranks"
#: Reports of Nsight Systems.
_REPORTS: Final = (".nsys-rep", ".qdrep", ".sqlite")

if TYPE_CHECKING:
    from warpladder.dashboard.core.job_graph.forecast import JobForecast
    from warpladder.dashboard.core.operations.baseline_check import Checked
    from warpladder.dashboard.core.operations.hot_operations import Ceilings, Choice, HotOperations
    from warpladder.dashboard.core.operations.program import Program
    from warpladder.data.store import Run

#: ns of a unit of time.
_UNITS: Final = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "ns": 1.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?)\s*(s|ms|us|µs|ns)")


def _duration(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """A time such as `41.2ms`, in ns. Raises Error."""
    if value is None:
        return None
    match = _DURATION.fullmatch(value.strip())
    if match is None or not float(match[1]):
        raise Error(f"--step-time {value}: no time; give a number with its unit, such as 41.2ms")
    return float(match[1]) * _UNITS[match[2]]


_eager_option = click.option(
    "--eager",
    multiple=True,
    metavar="TRACE0",
    help="A profile of the same program without CUDA graphs, which has the operators of their kernels.",
)


@click.command("extract")
@click.argument("trace", metavar="TRACE")
@click.option("--top", type=click.IntRange(1, 100), default=5, help="How many operations to write.")
@click.option(
    "--op", "operator", default="", show_default=False, metavar="NAME", help="Only this operator, such as aten::addmm."
)
@click.option(
    "--kernel", default="", show_default=False, metavar="REGEX", help="Only operations with a kernel whose name matches."
)
@click.option(
    "--range", "within", default="", show_default=False, metavar="TEXT", help="Only calls inside ranges whose text has TEXT."
)
@click.option(
    "--together",
    is_flag=True,
    help="Only chains of point-wise operations; with --range chains of all operations.",
)
@click.option("--apart", is_flag=True, help="Point-wise operations one by one, not as chains.")
@_eager_option
@click.option("--rank", type=click.IntRange(0), metavar="R", help="The rank of a job.")
@click.option("--out", type=FILE, metavar="FILE.py", help="Write the benchmarks to this file. No file is overwritten.")
@click.option("--check", default="", show_default=False, metavar="RUN", help="Compare a recording of that file with the trace.")
@data_dir_option
@format_option("operations", TABLE_OR_JSON)
def command(
    trace: str,
    top: int,
    operator: str,
    kernel: str,
    within: str,
    together: bool,
    apart: bool,
    eager: tuple[str, ...],
    rank: int | None,
    out: Path | None,
    check: str,
    data_dir: Path,
    form: TableOrJson,
) -> None:
    """Write the operators of a trace that cost most as benchmarks.

    Most is what a better kernel could save: the time above the floor. Without --out, print the table only.

    TRACE: a trace of PyTorch's profiler or a report of Nsight Systems, which is imported, or the id, label or folder of an imported run
    or job.
    """
    from warpladder.commands import new
    from warpladder.dashboard.core.operations.hot_operations import Choice, hot_operations
    from warpladder.dashboard.text import bench_file, extracted
    from warpladder.data import store

    if check and out is not None:
        raise Error("--check compares a recording, and --out writes the file to record; leave one out")
    if out is not None and out.suffix != ".py":
        raise Error(f"--out {out}: no Python file; give it a name such as bench_job.py")
    if together and apart:
        raise Error("--together has chains alone, and --apart has none; leave one out")
    choice = Choice(operator, regex_of_kernels(kernel), within, together, apart)
    recording = store.find_run(check, folders([data_dir])) if check else None
    without = _eager(eager, rank, data_dir)
    run = _with_operators(_run(trace, rank, data_dir), without)
    ceilings = _ceilings(run, data_dir)
    hot = hot_operations(run, ceilings.values, choice, without)
    if not hot.operations:
        raise Error(f"{run.run_id}: no operation with device work {_wanted(choice)}; {_there(run)}")
    if recording is not None:
        checked = _checked(recording, hot, run)
        as_json = form == "json"
        print_text(json_text(extracted.facts_of_check(checked)) if as_json else extracted.render_check(checked, hot.on_host))
        return
    chosen = [each for each in hot.operations if not each.reason][:top]
    found = extracted.facts(run.run_id, hot, chosen, ceilings) if form == "json" else None
    print_text(json_text(found) if found else extracted.render(hot, chosen, ceilings))
    if out is None:
        return
    if not chosen:
        raise Error(f"{trace}: none of its operations can be called again; the table has the reasons")
    text = bench_file.render(hot, chosen, run.info, _command(trace, top, choice, eager, rank))
    new.write({out: text})
    usual, forms = bench_file.counts(chosen)
    left_out = f" ({usual} of {forms} forms, with most of the time; all with --set full)" if usual < forms else ""
    line = f"wrote {out}; next: warpladder record {out}{left_out}"
    (say if form == "json" else print)(one_line(line))


@click.command("forecast")
@click.argument("trace", metavar="TRACE")
@click.argument("run", metavar="[RUN]", default="")
@_eager_option
@click.option(
    "--if", "changes", multiple=True, metavar="CHANGE", help="Without RUN: only these changes of a job, of those in its list."
)
@click.option(
    "--step-time",
    metavar="41.2ms",
    callback=_duration,
    help="The time of a step without the profiler, which lengthens the host's part.",
)
@click.option("--after", metavar="TRACE2", help="A profile with some of them replaced: the forecast beside what became of it.")
@click.option("--rank", type=click.IntRange(0), metavar="R", help="The rank of a job.")
@data_dir_option
@format_option("forecast", TABLE_OR_JSON)
def forecast_command(
    trace: str,
    run: str,
    eager: tuple[str, ...],
    changes: tuple[str, ...],
    step_time: float | None,
    after: str | None,
    rank: int | None,
    data_dir: Path,
    form: TableOrJson,
) -> None:
    """Print what your faster kernels gain in your program.

    Each operation takes the time of its best verified variant.

    Without RUN, TRACE is an imported job. Then print what its step gains by one change each: equal stages of a pipeline, equal rows of
    experts, a rank like the others, faster communication.

    TRACE: as for extract. RUN: the recording of the file that extract wrote. Where TRACE2 has CUDA graphs too, give --eager a profile
    without them for each of the two.
    """
    from warpladder.dashboard.core import run_data
    from warpladder.dashboard.core.operations.forecast import Hosts, check_forecast, forecast
    from warpladder.dashboard.text import forecast as text
    from warpladder.data import store
    from warpladder.data.schema import CUDA_GRAPH

    if not run:
        if eager or after is not None or rank is not None:
            raise Error("--eager, --after and --rank need RUN, the recording of the file that extract wrote")
        job_id, of_job = _of_job(trace, changes, step_time, data_dir)
        print_text(json_text(text.facts_of_job(job_id, of_job)) if form == "json" else text.render_job(of_job))
        return
    if changes:
        raise Error("--if is of a job, without RUN; leave one out")
    recording = store.find_run(run, folders([data_dir]))
    without = _eager(eager, rank, data_dir)
    program = _program_of(recording, trace, without, rank, data_dir)
    _check_devices(recording, program)
    data = run_data.load(recording)
    if after is None:
        hosts = Hosts.of(program, step_time)
        own = forecast(hosts.own, data) if hosts.own else None
        of_hosts = (forecast(hosts.profiled, data), forecast(hosts.hidden, data), own)
        print_text(json_text(text.facts(hosts, *of_hosts)) if form == "json" else text.render(hosts, *of_hosts))
    else:
        if step_time is not None:
            raise Error("--step-time is of the first program, and --after compares the profiles of two; leave one out")
        later = _program(after, without, rank, data_dir, apart=program.apart)
        _check_devices(recording, later)
        if unknown := next((each.reason for each in later.hot.operations if each.name == CUDA_GRAPH), ""):
            raise Error(
                f"{later.run_id}: what was replaced is not known of {unknown}; give --eager a profile of it without the graph too"
            )
        check = check_forecast(program, later, data)
        print_text(json_text(text.facts_of_check(check)) if form == "json" else text.render_check(check))


def _of_job(name: str, changes: Sequence[str], step_time: float | None, data_dir: Path) -> "tuple[str, JobForecast]":
    """The id of a job, and its forecast. Raises Error."""
    from dataclasses import replace

    from warpladder.dashboard.core.job_graph.forecast import forecast
    from warpladder.dashboard.core.traces import Job
    from warpladder.data import store

    if Path(name).is_file():
        raise Error(f"{name}: {_NO_JOB}")
    job = store.find_run(name, folders([data_dir]))
    if job.info["kind"] != "job":
        raise Error(f"{job.run_id}: {_NO_JOB}")
    found = forecast(Job(job), step_time)
    if found.why_not:
        raise Error(f"{job.run_id}: no forecast: {found.why_not}")
    known = [each.name for each in found.outcomes]
    if unknown := [each for each in changes if each not in known]:
        raise Error(f"--if {unknown[0]}: no change of this job; it has {', '.join(known)}")
    chosen = tuple(each for each in found.outcomes if not changes or each.name in changes)
    return job.run_id, replace(found, outcomes=chosen)


def _program_of(recording: "Run", trace: str, eager: Sequence["Run"], rank: int | None, data_dir: Path) -> "Program":
    """The program of a trace, with chains, or with operators one by one where the recording has more of these. Raises Error."""
    programs = [_program(trace, eager, rank, data_dir, apart=apart) for apart in (False, True)]
    counts = [program.measured_in(recording) for program in programs]
    if not any(counts):
        raise Error(
            f"{recording.run_id}: has no benchmark of an operation of {programs[0].run_id}; record the file that extract --out writes"
        )
    return programs[counts[1] > counts[0]]


def _program(trace: str, eager: Sequence["Run"], rank: int | None, data_dir: Path, *, apart: bool) -> "Program":
    """The program of a trace of a GPU. Raises Error."""
    from warpladder.dashboard.core.operations.program import Program

    run = _with_operators(_run(trace, rank, data_dir), eager)
    program = Program.of(run, _ceilings(run, data_dir).values, eager, apart=apart)
    if program.hot.on_host:
        raise Error(f"{run.run_id}: has no device work, so that there is no timeline to forecast; profile on a GPU")
    return program


def _check_devices(recording: "Run", program: "Program") -> None:
    """Raise Error if a recording is of another device than a profile: its ratios need not hold there."""
    recorded = str(recording.info["device_name"] or "")
    if recorded and program.device and recorded != program.device:
        raise Error(
            f"{recording.run_id}: recorded on {recorded}, and {program.run_id} is a profile of {program.device}; record the file there"
        )


def _eager(traces: Sequence[str], rank: int | None, data_dir: Path) -> list["Run"]:
    """The profiles of a program without its CUDA graphs. Raises Error."""
    runs = [_with_operators(_run(trace, None if Path(trace).is_file() else rank, data_dir)) for trace in traces]
    for run in runs:
        if not run.rows("kernels"):
            raise Error(f"--eager {run.run_id}: has no kernels to find those of a CUDA graph in; profile on a GPU")
    return runs


def _with_operators(run: "Run", eager: Sequence["Run"] = ()) -> "Run":
    """The run. Raises Error if neither it nor a profile without its CUDA graphs has operators."""
    from warpladder.dashboard.core.operations.operator_calls import has_graphs, has_operators

    if eager and not has_graphs(run):
        raise Error(f"{run.run_id}: has no CUDA graph; leave --eager out, or give the profile with the graph")
    if not eager and not has_operators(run):
        graphs = "give --eager a profile of the program without its CUDA graphs, with"
        cure = graphs if has_graphs(run) else "profile with torch.profiler and"
        raise Error(f"{run.run_id}: has no operators of PyTorch; {cure} record_shapes=True")
    return run


def _run(trace: str, rank: int | None, data_dir: Path) -> "Run":
    """The run of a trace, which is imported if it is a file and has not been before. Raises Error."""
    from warpladder.data import store

    path = Path(trace)
    if path.is_file():
        from warpladder.collectors.kineto import parse as kineto
        from warpladder.collectors.nsight_systems.parse import import_report

        read = kineto.import_report if kineto.is_trace(path) else import_report if path.suffix in _REPORTS else None
        if read is None:
            raise Error(
                f"{trace}: no trace of PyTorch's profiler, such as export_chrome_trace writes, and no report of Nsight Systems"
            )
        if rank is not None:
            raise Error("--rank names a rank of an imported job; leave it out with a file")
        if (known := store.import_of(path, data_dir)) and known.info["kind"] != "job":
            return store.open_run(known.path)
        run_id = read(path, data_dir, "", None, [])
        as_json = click.get_current_context().params["form"] == "json"
        (say if as_json else print)(one_line(f"imported as {run_id}"))
        return store.open_run(data_dir / run_id)
    run = store.find_run(trace, folders([data_dir]))
    if run.info["kind"] != "job":
        if rank is not None:
            raise Error(f"{run.run_id}: no job, so that it has no ranks; leave --rank out")
        return run
    if rank is None:
        raise Error(f"{run.run_id}: a job of several ranks; choose one with --rank, such as --rank 0")
    return store.open_rank(run, rank)


def _checked(recording: "Run", hot: "HotOperations", trace: "Run") -> "tuple[Checked, ...]":
    """The comparison of a recording with the trace. Raises Error."""
    from warpladder.dashboard.core import run_data
    from warpladder.dashboard.core.operations.baseline_check import check

    checked = check(hot, trace.info, run_data.load(recording), recording)
    if not checked:
        raise Error(
            f"{recording.run_id}: has no baseline of an operation of {trace.run_id}; record the file that extract --out writes"
        )
    return checked


def _ceilings(run: "Run", data_dir: Path) -> "Ceilings":
    """The ceilings of the newest runs on such a GPU, and of the shipped ones."""
    from warpladder.dashboard.core.operations.hot_operations import Ceilings
    from warpladder.data import store

    return Ceilings.of(str(run.info["device_name"] or ""), store.list_runs(folders([data_dir]))[0])


def _wanted(choice: "Choice") -> str:
    """The options that choose operations, for a message."""
    options = {
        "--op": choice.operator,
        "--kernel": choice.kernel,
        "--range": choice.within,
        "--together": "" if not choice.together else "(chains of operations)",
    }
    return "for " + " ".join(f"{name} {value}" for name, value in options.items() if value) if choice.leaves_out else "in it"


def _there(run: "Run") -> str:
    """Tell, for a message, which operators the trace has in place of the missing one."""
    names = run.arrow("operations", ["name"]).column("name").unique().to_pylist()
    own = sorted(name for name in names if name.startswith("aten::"))
    return f"it has {len(own)} operators of PyTorch, such as {', '.join(own[:3])}" if own else "it has no operators of PyTorch"


def _command(trace: str, top: int, choice: "Choice", eager: Sequence[str], rank: int | None) -> str:
    """The command line, without the paths of the machine."""
    options = {"--op": choice.operator, "--kernel": choice.kernel, "--range": choice.within, "--rank": rank, "--top": top}
    given = [part for name, value in options.items() if value not in ("", None) for part in (name, str(value))]
    given += [part for each in eager for part in ("--eager", Path(each).name)]
    return shlex.join(
        [
            "warpladder",
            "extract",
            Path(trace).name,
            *given,
            *(["--together"] if choice.together else []),
            *(["--apart"] if choice.apart else []),
        ]
    )
