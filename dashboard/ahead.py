"""What is done before a page asks for it: the list of runs, the figures of the first view and those of the newest job, a first chart."""

import argparse
import contextlib

import pandas as pd

from warpladder.dashboard.compare import overview
from warpladder.dashboard.compare.changes import Options
from warpladder.dashboard.core import critical_path, run_index
from warpladder.dashboard.core.run_index import ListedRun, Need
from warpladder.dashboard.ui import recordings, runs
from warpladder.dashboard.ui.template import blank
from warpladder.dashboard.views.ranks import query as ranks
from warpladder.dashboard.views.ranks.collectives import query as collectives
from warpladder.dashboard.views.ranks.critical_path import query as paths
from warpladder.dashboard.views.ranks.job_kernels import query as kernels
from warpladder.dashboard.views.trust import query as trust
from warpladder.data import store
from warpladder.installation import ROOT


def compute() -> None:
    """Compute them, Home for the device that it shows first, whose first run comes first. A run that cannot be opened is passed over."""
    with contextlib.suppress(argparse.ArgumentError, store.StoreError):
        every = runs.listing(runs.data_dirs()).every
        for device in run_index.devices(every)[:1]:
            first = run_index.first_workload(every, device)
            for workload in sorted(run_index.workloads(every, device), key=lambda name: name != first):
                with contextlib.suppress(store.StoreError):
                    listed = run_index.suitable(every, device, workload)[0]
                    runs.ask(listed.run, overview.lines, ROOT)
                    if workload == first:
                        _home(every, listed)
        jobs = [each for each in every if each.facts.has(Need.JOB) and not each.shipped]
        if jobs:
            _job(max(jobs, key=lambda each: each.facts.started_at).run)


def draw() -> None:
    """Draw a chart that nobody sees. Plotly loads what a chart needs when the first one is drawn."""
    figure = blank("light", 100)
    figure.add_scatter(x=[0.0], y=[0.0])
    figure.add_bar(x=[0.0], y=[0.0])
    figure.to_json(validate=False)


def _home(every: run_index.Runs, listed: ListedRun) -> None:
    """Whether to believe a recording, and what moved since the last comparable one."""
    run = listed.run
    runs.ask(run, trust.verdict, ROOT)
    for before in run_index.comparable(every, listed)[:1]:
        earlier, names = before.run, recordings.names(listed.run)
        runs.ask_both(run, earlier, recordings.compared, "", "", Options(), names)


def _job(job: store.Run) -> None:
    """The first answers of the pages of a job. Of hundreds of ranks it takes seconds."""
    for query in (
        ranks.by_iteration,
        ranks.answer,
        ranks.told,
        ranks.after_changes,
        ranks.breakdown,
        ranks.passes,
        ranks.stages,
        ranks.by_dimension,
        ranks.routed,
        ranks.cause,
        ranks.gpus,
        ranks.idle_by_stream,
        ranks.without_profile,
        collectives.reasons,
    ):
        runs.ask(job, query)
    runs.ask(job, collectives.collectives, together=runs.ask(job, collectives.many_groups))
    runs.ask(job, kernels.kernels, None)
    iterations: pd.DataFrame = runs.ask(job, paths.iterations)
    if len(iterations):
        runs.ask(job, paths.path, critical_path.typical(iterations))
