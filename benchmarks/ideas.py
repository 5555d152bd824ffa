"""Writes the figures of docs/kernels.md and its pages, from the shipped runs: python -m benchmarks.ideas

Each page has a section whose figures this module writes, `By how much`, and the index has one, `Ideas`. The rows of these tables, and all else,
are written by hand. After a new recording, one call brings all figures up to date.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd

from warpladder.dashboard.compare.within_run import CaseTimes, word
from warpladder.dashboard.core import run_data, run_index
from warpladder.dashboard.core.cell import Entry, Estimate, Timing
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.numbers import format_duration, format_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import ListedRun, Need
from warpladder.dashboard.ui.ideas import Idea, read
from warpladder.data import store

ROOT: Final = Path(__file__).resolve().parent.parent
INDEX: Final = ROOT / "docs" / "kernels.md"
PAGES: Final = ROOT / "docs" / "kernels"
#: The ideas in the order of the index.
IDEAS: Final = tuple(
    read(PAGES / f"{name}.md") for name in re.findall(r"^\|.*\]\(kernels/([\w-]+)\.md\)", INDEX.read_text(), re.MULTILINE)
)
#: The sections that are written here: of a page, and of the index.
GAIN, LIST = "By how much", "Ideas"
_HEADINGS: Final = ("workload and case", "before", "with the idea", "precision", "time before", "time with it", "times as fast")
_DEVICE: Final = "device"
#: A row of a gain: workload and case, perhaps with a scope and GPUs, and the rungs.
_ROW: Final = re.compile(r"^\| `(\w+)`, (\S+)(?:, ([a-z_]+))?(?:, (\d+) GPUs)? \| `([^`]+)` \| `([^`]+)` \|", re.MULTILINE)


class NotShipped(Exception):
    """No shipped run has both rungs of a gain."""


class Gain(NamedTuple):
    """A rung before an idea and a rung with it, at one case of both.

    Attributes:
        before: the variant with its fastest config, or `variant[config]` for that config.
        after: the same with the idea.
        scope: `device` is taken with a cold L2, the other scopes with a hot one.
        gpus: GPUs that work together.
    """

    workload: str
    case: str
    before: str
    after: str
    scope: str = _DEVICE
    gpus: int = 1


def gains_of(idea: Idea) -> list[Gain]:
    """The pairs of an idea in the table of its page: where it gains most, and where it gains nothing or loses."""
    section = idea.text.partition(f"## {GAIN}\n")[2].partition("\n## ")[0]
    return [
        Gain(workload, case, before, after, scope or _DEVICE, int(gpus or 1))
        for workload, case, scope, gpus, before, after in _ROW.findall(section)
    ]


@dataclass(frozen=True)
class Measured:
    """A gain as a shipped run has it.

    Attributes:
        precisions: of the rung before and of the rung with the idea.
        before_ns: median of its samples.
        after_ns: the same with the idea.
        ratio: of the two, with its interval; above 1 where the idea pays.
        verdict: `faster`, `slower` or `tied`.
    """

    gain: Gain
    run: str
    precisions: tuple[str, str]
    before_ns: float
    after_ns: float
    ratio: Estimate
    verdict: str


def main() -> None:
    """Write the sections of every page, and of the index."""
    for file, text in texts().items():
        if text != file.read_text():
            file.write_text(text)
            print(file.relative_to(ROOT))


def texts() -> dict[Path, str]:
    """File -> its text with the sections as the shipped runs have them."""
    found = {idea.page: with_section(idea.page.read_text(), GAIN, _gains(idea)) for idea in IDEAS}
    return {INDEX: with_section(INDEX.read_text(), LIST, _list(IDEAS)), **found}


def with_section(text: str, heading: str, body: str) -> str:
    """A page with another text in the section of a heading `##`.

    Raises:
        ValueError: the page has no such heading.
    """
    before, found, rest = text.partition(f"\n## {heading}\n")
    if not found:
        raise ValueError(f"a page lacks the heading: ## {heading}")
    _, following, after = rest.partition("\n## ")
    return f"{before}{found}\n{body}" + (f"{following}{after}" if following else "")


def _gains(idea: Idea) -> str:
    return table(_HEADINGS, [_row(measured(gain)) for gain in gains_of(idea)])


def _row(found: Measured) -> tuple[str, ...]:
    gain = found.gain
    names = (f"`{name}`" for name in (gain.before, gain.after))
    precision = ", then ".join(dict.fromkeys(map(word, found.precisions)))
    ratio = format_ratio(found.ratio.value) + (", tied" if found.verdict == "tied" else "")
    return (_place(gain), *names, precision, format_duration(found.before_ns), format_duration(found.after_ns), ratio)


def _place(gain: Gain) -> str:
    """Workload and case, with the scope and the GPUs where they are not the usual ones."""
    scope = [gain.scope] if gain.scope != _DEVICE else []
    return ", ".join([f"`{gain.workload}`", gain.case, *scope, *([f"{gain.gpus} GPUs"] if gain.gpus > 1 else [])])


def _list(ideas: Sequence[Idea]) -> str:
    return table(("what limits the kernel", "idea", "most gained"), [_line(idea) for idea in ideas])


def _line(idea: Idea) -> tuple[str, ...]:
    most = max(map(measured, gains_of(idea)), key=lambda found: found.ratio.value)
    return idea.limit, f"[{idea.title}](kernels/{idea.name}.md)", f"{format_ratio(most.ratio.value)}: {_place(most.gain)}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("| --- ", "|---").replace("|--- |", "|---|")


# -- the figures ---------------------------------------------------------------------------------------------------


@cache
def measured(gain: Gain) -> Measured:
    """A gain by the shipped run that the dashboard shows for its workload: the first of `run_index.suitable` that has both rungs.

    Raises:
        NotShipped: there is none.
    """
    need = Need.GPUS if gain.gpus > 1 else Need.TIMES
    every = shipped()
    for each in run_index.suitable(every, run_index.devices(every)[0], gain.workload, need):
        found = _in_run(each.name, gain)
        if found:
            return found
    raise NotShipped(f"{gain.workload}, {gain.case}: no shipped run has both {gain.before} and {gain.after} in {gain.scope}")


@cache
def shipped() -> tuple[ListedRun, ...]:
    """The runs in data/recorded."""
    runs, _ = store.list_runs([store.RECORDED])
    return tuple(ListedRun(run.run_id, run, run_index.facts_of(run), shipped=True) for run in runs)


@cache
def _loaded(name: str, together: bool) -> RunData:
    data = run_data.load(next(each.run for each in shipped() if each.name == name))
    return replace(data, samples=data.together) if together else data


def _in_run(name: str, gain: Gain) -> Measured | None:
    data = _loaded(name, gain.gpus > 1)
    cache = "cold" if gain.scope == _DEVICE else "hot"
    every = cells(data)
    same = {"workload": gain.workload, "case": gain.case, "scope": gain.scope, "cache": cache, "gpus": gain.gpus}
    here = every[(every[list(same)] == pd.Series(same)).all(axis=1)]
    sides = [_side(here, text) for text in (gain.before, gain.after)]
    if any(side.empty for side in sides):
        return None
    before, after = (side.iloc[0] for side in sides)
    old, new = (Entry(side["variant"], side["config"], gain.gpus, 0) for side in (before, after))
    ratio, _, told = CaseTimes.of(data, gain.workload, gain.case, Timing(gain.scope, cache)).judge(new, old)
    precisions = (before["precision"], after["precision"])
    return Measured(gain, name, precisions, before["median_ns"], after["median_ns"], ratio.estimate, told)


def _side(here: pd.DataFrame, text: str) -> pd.DataFrame:
    """The row of a variant's fastest config, or of `variant[config]`; no row where it has no correct samples."""
    variant, _, config = text.removesuffix("]").partition("[")
    found = here[here["variant"] == variant]
    return best_config(found[found["config"] == config] if config else found)


if __name__ == "__main__":
    main()
