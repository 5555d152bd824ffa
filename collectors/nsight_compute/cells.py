"""Assigns launches to cells.

The cell comes from this project's NVTX ranges or from the pattern `--variant-from nvtx:REGEX`; else each kernel is a variant.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from warpladder.collectors.core.demangle import without_parameters
from warpladder.collectors.core.nvtx_ranges import DOMAIN, EXECUTIONS_TEXT, SAMPLE_TEXT, VARIANT_TEXT, is_of_sample
from warpladder.collectors.nsight_compute.metrics import SHAPE
from warpladder.collectors.trace.notes import Notes
from warpladder.data.names import Source
from warpladder.data.naming import CellName, Naming

_ALL: Final = "all"
#: The type of a template argument.
_CAST: Final = re.compile(r"\((?:bool|char|short|int|long|unsigned [a-z]+|unsigned long long|long long)\)(?=[-\w])")


@dataclass(frozen=True)
class ProfiledLaunch:
    """One profiled launch.

    Attributes:
        kernel: the function's name.
        full_name: demangled name with template arguments.
        device: name of its device.
        values: finite values by metric.
        units: the tool's units by metric.
        ranges: texts of the NVTX push/pop ranges open at the launch, by domain, outermost first.
        code: key of its machine code; None where the report does not hold the code.
        by_instruction: readings above 0 by metric and place of the instruction.
        rules: columns of table `rules`, for each finding.
        lacking: what NVIDIA's reader could not give of it, in words.
    """

    kernel: str
    full_name: str
    device: str
    values: Mapping[str, float]
    units: Mapping[str, str]
    ranges: Mapping[str, Sequence[str]]
    code: str | None = None
    by_instruction: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rules: Sequence[Mapping[str, Any]] = ()
    lacking: Sequence[str] = ()

    @property
    def expression(self) -> str:
        """The name with template arguments, as in `transpose<2, 1, 0>`, without types of arguments and results."""
        return _CAST.sub("", without_parameters(self.full_name)) or self.kernel

    @property
    def shape(self) -> str:
        """Such as `grid=256x1x1,block=64x1x1`; empty if the report does not hold it."""
        if any(name not in self.values for name in SHAPE):
            return ""
        sizes = [f"{self.values[name]:.0f}" for name in SHAPE]
        return f"grid={'x'.join(sizes[:3])},block={'x'.join(sizes[3:])}"


@dataclass
class Placed:
    """Launches by cell, in profiling order, and whether the cells come from this project's ranges."""

    ours: bool = False
    cells: dict[CellName, list[ProfiledLaunch]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    """The position of a launch in this project's ranges."""

    cell: CellName
    sample: str
    counts: bool


def cells_of(launches: Sequence[ProfiledLaunch], workload: str, naming: Naming | None, notes: Notes) -> Placed:
    """Assign the launches of a report to cells. Raises NamingError: the naming's pattern takes too long.

    Args:
        workload: name of the workload if no range gives one.
        naming: finds the ranges that name a variant; None for this project's ranges.
        notes: receives counts of launches that are left out.
    """
    if naming is not None:
        by_range = _cells_by_range(launches, workload, naming, notes)
        return Placed(cells=by_range or _by_kernel(launches, workload))
    own_cells = _of_our_ranges(launches, notes)
    return Placed(ours=True, cells=own_cells) if own_cells else Placed(cells=_by_kernel(launches, workload))


def _of_our_ranges(launches: Sequence[ProfiledLaunch], notes: Notes) -> dict[CellName, list[ProfiledLaunch]]:
    """Return one execution of each cell: the launches of its first sample."""
    cells: dict[CellName, list[ProfiledLaunch]] = {}
    samples: dict[CellName, str] = {}
    outside = further = 0
    for launch in launches:
        place = _place(launch.ranges.get(DOMAIN, ()))
        if place is None or not place.counts:
            outside += 1
        elif samples.setdefault(place.cell, place.sample) != place.sample:
            further += 1
        else:
            cells.setdefault(place.cell, []).append(launch)
    if cells:
        notes.count("info", Source.NSIGHT_COMPUTE, "{} launches outside of the variants' own executions are left out", outside)
        notes.count(
            "info",
            Source.NSIGHT_COMPUTE,
            "{} launches of further executions are left out: one execution per cell is counted",
            further,
        )
    return cells


def _place(texts: Sequence[str]) -> _Place | None:
    """Parse nested ranges: `workload` > `case` > `variant[config]`, and optionally > sample > `executions=1`."""
    if texts and is_of_sample(texts[0]):
        texts = texts[::-1]
    variant = VARIANT_TEXT.fullmatch(texts[2]) if len(texts) >= 3 else None
    if variant is None or is_of_sample(texts[2]):
        return None
    cell = CellName(texts[0], variant["variant"], variant["config"] or "", texts[1])
    sample = next((match for text in texts[3:] if (match := SAMPLE_TEXT.fullmatch(text))), None)
    if sample is None:
        return _Place(cell, "", counts=True)
    executions = next((match["executions"] for text in texts[4:] if (match := EXECUTIONS_TEXT.fullmatch(text))), "")
    # In a device sample, launches outside of the executions flush the L2 and hold the stream; they are not the variant's.
    return _Place(cell, sample[0], executions == "1" or (not executions and sample["scope"] != "device"))


def _cells_by_range(
    launches: Sequence[ProfiledLaunch], workload: str, naming: Naming, notes: Notes
) -> dict[CellName, list[ProfiledLaunch]]:
    """Assign each launch to the innermost range, of any domain, that the pattern matches."""
    texts = list(dict.fromkeys(text for launch in launches for stack in launch.ranges.values() for text in stack))
    names = dict(zip(texts, naming.name(texts, workload), strict=True))
    cells: dict[CellName, list[ProfiledLaunch]] = {}
    for launch in launches:
        matches = [names[text] for stack in launch.ranges.values() for text in reversed(stack) if names[text] is not None]
        if matches and matches[0] is not None:
            cells.setdefault(matches[0], []).append(launch)
    unnamed = len(launches) - sum(map(len, cells.values()))
    if not cells:
        notes.add(
            "warning",
            Source.VARIANT_FROM,
            f"no NVTX range around a launch matches {naming.expression}, so each kernel is a variant; was it profiled with "
            "ncu --nvtx?",
        )
    else:
        notes.count("info", Source.VARIANT_FROM, "{} launches outside of the named ranges are left out", unnamed)
    return cells


def _by_kernel(launches: Sequence[ProfiledLaunch], workload: str) -> dict[CellName, list[ProfiledLaunch]]:
    """Make each kernel a variant. If a kernel was launched in several shapes, each shape is a config."""
    shapes: dict[str, set[str]] = {}
    for launch in launches:
        shapes.setdefault(launch.kernel, set()).add(launch.shape)
    cells: dict[CellName, list[ProfiledLaunch]] = {}
    for launch in launches:
        config = launch.shape if len(shapes[launch.kernel]) > 1 else ""
        cells.setdefault(CellName(workload, launch.kernel, config, _ALL), []).append(launch)
    return cells
