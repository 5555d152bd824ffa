"""Which launch belongs to which cell: by this project's NVTX ranges, by `--variant-from nvtx:REGEX`, else each kernel is a variant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from warpladder.collectors.nsight_compute.metrics import SHAPE
from warpladder.collectors.trace.notes import Notes
from warpladder.data.naming import CellName, Naming
from warpladder.data.range_texts import DOMAIN, EXECUTIONS_TEXT, SAMPLE_TEXT, VARIANT_TEXT

#: How long the pattern of `--variant-from` may take.
_SECONDS: Final = 60.0
_SOURCE: Final = "nsight_compute"
_ALL: Final = "all"


@dataclass(frozen=True)
class Launch:
    """One profiled launch.

    Attributes:
        kernel: the function's name.
        full_name: demangled, with template arguments.
        device: name of its device.
        values: finite numbers by metric.
        units: the tool's units by metric.
        ranges: texts of the NVTX push/pop ranges open at the launch, by domain, the outermost first.
    """

    kernel: str
    full_name: str
    device: str
    values: Mapping[str, float]
    units: Mapping[str, str]
    ranges: Mapping[str, Sequence[str]]

    @property
    def shape(self) -> str:
        """`grid=256x1x1,block=64x1x1`; empty where the report does not say."""
        if any(name not in self.values for name in SHAPE):
            return ""
        sizes = [f"{self.values[name]:.0f}" for name in SHAPE]
        return f"grid={'x'.join(sizes[:3])},block={'x'.join(sizes[3:])}"


@dataclass
class Placed:
    """Launches by cell, in the order in which they were profiled, and whether the cells are of this project's own ranges."""

    ours: bool = False
    cells: dict[CellName, list[Launch]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    """Where a launch stands in this project's ranges."""

    cell: CellName
    sample: str
    counts: bool


def cells_of(launches: Sequence[Launch], workload: str, chosen: Naming | None, notes: Notes) -> Placed:
    """The cells of a report's launches.

    Args:
        launches: in the order in which they were profiled.
        workload: what the workload is called where no range says.
        chosen: which ranges name a variant; None for this project's own.
        notes: takes what was left out.

    Raises:
        NamingError: the naming's pattern takes too long.
    """
    if chosen is not None:
        named = _named(launches, workload, chosen, notes)
        return Placed(cells=named or _by_kernel(launches, workload))
    ours = _of_our_ranges(launches, notes)
    return Placed(ours=True, cells=ours) if ours else Placed(cells=_by_kernel(launches, workload))


def _of_our_ranges(launches: Sequence[Launch], notes: Notes) -> dict[CellName, list[Launch]]:
    """One execution a cell: the launches of its first sample."""
    cells: dict[CellName, list[Launch]] = {}
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
        notes.count("info", _SOURCE, "{} launches outside of the variants' own executions are left out", outside)
        notes.count("info", _SOURCE, "{} launches of further executions are left out: one a cell is counted", further)
    return cells


def _place(texts: Sequence[str]) -> _Place | None:
    """Out of `workload` > `case` > `variant[config]`, perhaps > sample > `executions=1`."""
    if texts and (EXECUTIONS_TEXT.fullmatch(texts[0]) or SAMPLE_TEXT.fullmatch(texts[0])):
        texts = texts[::-1]
    variant = VARIANT_TEXT.fullmatch(texts[2]) if len(texts) >= 3 else None
    if variant is None:
        return None
    cell = CellName(texts[0], variant["variant"], variant["config"] or "", texts[1])
    sample = next((match for text in texts[3:] if (match := SAMPLE_TEXT.fullmatch(text))), None)
    if sample is None:
        return _Place(cell, "", counts=True)
    executions = next((match["executions"] for text in texts[4:] if (match := EXECUTIONS_TEXT.fullmatch(text))), "")
    # Around a device sample's own executions L2 is flushed and the stream held, by kernels that are not the variant's.
    return _Place(cell, sample[0], executions == "1" or (not executions and sample["scope"] != "device"))


def _named(launches: Sequence[Launch], workload: str, chosen: Naming, notes: Notes) -> dict[CellName, list[Launch]]:
    """By the innermost range that the pattern finds, of any domain."""
    texts = list(dict.fromkeys(text for launch in launches for stack in launch.ranges.values() for text in stack))
    names = dict(zip(texts, chosen.name(texts, workload, _SECONDS), strict=True))
    cells: dict[CellName, list[Launch]] = {}
    for launch in launches:
        found = [names[text] for stack in launch.ranges.values() for text in reversed(stack) if names[text] is not None]
        if found and found[0] is not None:
            cells.setdefault(found[0], []).append(launch)
    left = len(launches) - sum(map(len, cells.values()))
    if not cells:
        notes.add(
            "warning",
            "variant-from",
            f"no NVTX range around a launch has a text that {chosen.expression} finds, so each kernel is a variant; was it profiled with "
            "ncu --nvtx?",
        )
    else:
        notes.count("info", "variant-from", "{} launches outside of the named ranges are left out", left)
    return cells


def _by_kernel(launches: Sequence[Launch], workload: str) -> dict[CellName, list[Launch]]:
    """A kernel is a variant; where it was launched in several shapes, each is a config of it."""
    shapes: dict[str, set[str]] = {}
    for launch in launches:
        shapes.setdefault(launch.kernel, set()).add(launch.shape)
    cells: dict[CellName, list[Launch]] = {}
    for launch in launches:
        config = launch.shape if len(shapes[launch.kernel]) > 1 else ""
        cells.setdefault(CellName(workload, launch.kernel, config, _ALL), []).append(launch)
    return cells
