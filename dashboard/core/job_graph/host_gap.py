"""The work of a rank's host in the longest time in which the device waited for a launch."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.numbers import format_duration
from warpladder.data import store

#: A hole between operators that is at least this part of the wait explains it.
_MOST: Final = 0.5


@dataclass(frozen=True)
class HostGap:
    """The longest wait of a device for its host.

    Attributes:
        duration_ns: of the wait.
        operator: that the launching thread ran for most of it; empty where it ran none.
        text: the innermost range of the program around it; empty without one.
        before, after: the operators before and behind it; empty where they are not known.
    """

    duration_ns: int
    operator: str
    text: str
    before: str
    after: str

    def sentence(self, rank: int) -> str:
        duration = format_duration(self.duration_ns)
        where = f" between {self.before} and {self.after}" if self.before and self.after else ""
        where = where or (f" after {self.before}" if self.before else f" before {self.after}" if self.after else "")
        inside = f" in range {self.text}" if self.text else ""
        what = f"runs {self.operator} for {duration}"
        if not self.operator:
            what = f"runs no operator of PyTorch for {duration} (Python, sleep, files)"
        return f"the GPU of rank {rank} waits longest for a launch while its host {what}{where}{inside}"


def host_gap(run: store.Run) -> HostGap | None:
    """The longest wait; None where the profile has no launches."""
    kernels = run.arrow("kernels", ["start_ns", "end_ns", "launch_start_ns", "process", "correlation"]).to_pandas()
    kernels = kernels.dropna(subset="launch_start_ns").sort_values("start_ns", ignore_index=True)
    if len(kernels) < 2:
        return None
    opens = kernels["end_ns"].cummax().shift()
    waits = (kernels["launch_start_ns"] - opens).fillna(0)
    place = int(waits.to_numpy().argmax())
    if waits[place] <= 0:
        return None
    begin, end = int(opens[place]), int(kernels["launch_start_ns"][place])
    operators = _operators(run, int(kernels["process"][place]), int(kernels["correlation"][place]))
    text = _range(run, begin, end)
    if operators.empty:
        return HostGap(end - begin, "", text, "", "")
    names = operators["name"].astype(str).tolist()
    starts, ends = operators["start_ns"].to_numpy(), operators["end_ns"].cummax().to_numpy()
    holes = np.minimum(np.append(starts, end), end) - np.maximum(np.append(begin, ends), begin)
    hole = int(holes.argmax())
    if holes[hole] >= _MOST * (end - begin):
        return HostGap(int(holes[hole]), "", text, names[hole - 1] if hole else "", [*names, ""][hole])
    overlap = (operators["end_ns"].clip(upper=end) - operators["start_ns"].clip(lower=begin)).to_numpy()
    longest = int(overlap.argmax())
    before = operators.index[operators["end_ns"] <= end]
    after = operators.index[operators["start_ns"] >= begin]
    last = names[before[-1]] if len(before) else ""
    first = names[after[0] if len(after) else longest]
    return HostGap(int(overlap[longest]), names[longest], text, last if last != names[longest] else "", first)


def _operators(run: store.Run, process: int, correlation: int) -> pd.DataFrame:
    """The outermost operators, by start, of the thread with a call of a process; none where the call is not known."""
    if "operations" not in run.tables:
        return pd.DataFrame(columns=["start_ns", "end_ns", "name"])
    calls = run.arrow("api_calls", ["process", "thread", "correlation"]).to_pandas()
    of_call = calls[(calls["process"] == process) & (calls["correlation"] == correlation)]
    rows = run.arrow("operations", ["process", "thread", "start_ns", "end_ns", "name", "parent_id"]).to_pandas()
    rows = rows[(rows["process"] == process) & rows["thread"].isin(of_call["thread"]) & rows["parent_id"].isna()]
    found: pd.DataFrame = rows.sort_values("start_ns", ignore_index=True)
    return found


def _range(run: store.Run, begin: int, end: int) -> str:
    """The innermost range that covers most of a time, but no iteration's."""
    rows = run.arrow("ranges", ["text", "start_ns", "end_ns"]).to_pandas().dropna()
    overlap = np.minimum(rows["end_ns"], end) - np.maximum(rows["start_ns"], begin)
    rows = rows[(overlap >= _MOST * (end - begin)) & ~rows["text"].astype(str).str.contains("ProfilerStep", regex=False)]
    return "" if rows.empty else str(rows.loc[(rows["end_ns"] - rows["start_ns"]).idxmin(), "text"])
