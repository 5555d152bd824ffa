"""What is computed before the first page asks for it: the list of runs, and the figures of the first view."""

import argparse
import contextlib

from warpladder.dashboard.core import overview, run_index
from warpladder.dashboard.ui import runs
from warpladder.data import store
from warpladder.installation import ROOT


def compute() -> None:
    """Compute them for the device that Overview shows first. A run that cannot be opened is passed over."""
    with contextlib.suppress(argparse.ArgumentError, store.StoreError):
        every = runs.listing(runs.data_dirs()).every
        for device in run_index.devices(every)[:1]:
            for workload in run_index.workloads(every, device):
                with contextlib.suppress(store.StoreError):
                    runs.ask(runs.as_recorded(run_index.suitable(every, device, workload)[0].run), overview.lines, ROOT)
