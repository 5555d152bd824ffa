"""Open and record runs from Python. Nothing slow is imported before it is used."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpladder.dashboard.run.run import Run


def open_run(run: str | Path, *, data_dir: str | Path | None = None) -> "Run":
    """Open a run that was recorded or imported.

    Args:
        run: its id, label or folder; of several runs with one label, the newest.
        data_dir: a further folder to look in, before the runs of this machine and those that ship.

    Raises:
        Error: there is no such run, or it is damaged.
    """
    from warpladder.dashboard.run import run as dashboard_run
    from warpladder.data import store

    return dashboard_run.open_run(run, *([] if data_dir is None else [store.folder(data_dir)]))


def runs(*, data_dir: str | Path | None = None) -> "list[Run]":
    """List the runs of a folder, newest first. One that cannot be opened is left out with a warning.

    Args:
        data_dir: None for the runs of this machine and those that ship.

    Raises:
        Error: the folder has an empty name.
    """
    from warpladder.dashboard.run import run as dashboard_run
    from warpladder.data import store

    good, bad = dashboard_run.runs(*([] if data_dir is None else [store.folder(data_dir)]))
    for line in bad:
        warnings.warn(f"left out, because it cannot be opened: {line}", stacklevel=2)
    return list(good)


def record(
    *declared: Any,
    cases: str | Sequence[str] = "quick",
    axis: Mapping[str, Any] | None = None,
    variants: str | Sequence[str] = (),
    collector: str = "auto",
    label: str = "",
    data_dir: str | Path | None = None,
    seed: int = 0,
    max_rounds: int | None = None,
    seconds: float | None = None,
    processes: int | None = None,
    no_limit: bool = False,
) -> "Run":
    """Verify and measure every variant, write the run, and open it. The defaults are the same as for `warpladder record`.

    Benchmarks at the top level of a file are measured in separate processes, which load the file up to this call: a script may call
    this at its top level. Benchmarks of a notebook, a prompt or a function are measured in a thread of this process: a variant that
    crashes ends it.

    Args:
        declared: benchmarks, workloads, names of workloads that ship, or paths of Python files.
        cases: `quick`, `report`, `full`, or names of cases such as `n=3000`.
        axis: values by axis, `{"n": [1000, 2000]}`, for a sweep in place of declared cases.
        variants: names of the variants to take; all but drafts when empty.
        collector: `auto`, `cupti`, `cuda_events` or `host_clock`.
        label: your name for the run.
        data_dir: folder for the run; None for the folder of this machine's runs.
        seed: of the inputs and of the order of the rounds.
        max_rounds: most rounds of a scope; None for the limit of the case set.
        seconds: time limit for the rounds of a scope; None for the limit of the case set.
        processes: most processes that take the rounds, one after another; None for 3 in a file and 1 in a notebook.
        no_limit: whether every case of `quick` is measured, however long it takes.

    Returns:
        The run. In a notebook and at a prompt also after Ctrl-C, with what was measured until then.

    Raises:
        Error: a mistake, with the message that `warpladder record` prints.
        KeyboardInterrupt: Ctrl-C in a script. The run is kept.
    """
    from warpladder.workloads.declare.neighbours import end_if_loading

    end_if_loading()  # before anything else is imported
    from warpladder.dashboard.run.run import Run
    from warpladder.data import store
    from warpladder.declared import record as record_declared
    from warpladder.declared import request_of

    limits = {"max_rounds": max_rounds, "seconds": seconds, "processes": processes, "no_limit": no_limit}
    request = request_of(cases, axis, variants, seed=seed, **limits)
    folder = store.LOCAL if data_dir is None else store.folder(data_dir).resolve()
    return Run(store.open_run(record_declared(declared, request, collector, label, folder)))
