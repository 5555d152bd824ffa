"""The tables of a report: counters, launches, machine code, counters by instruction, and what the rules found."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from warpladder.collectors.core.code_rows import Instruction, code_row, launch_rows
from warpladder.collectors.nsight_compute.cells import ProfiledLaunch
from warpladder.collectors.nsight_compute.metrics import CAPABILITY, DYNAMIC_SHARED, METRICS, SHAPE, STATIC_SHARED
from warpladder.data import source_text
from warpladder.data.metrics import REGISTERS
from warpladder.data.naming import CellName

Tables = dict[str, list[dict[str, Any]]]
Cells = Mapping[CellName, Sequence[ProfiledLaunch]]

_DISASSEMBLED_BY: Final = "Nsight Compute"
_MOST: Final = (1 << 31) - 1


@dataclass(frozen=True)
class ReportedCode:
    """The code of a kernel.

    Attributes:
        sass: its instructions.
        places: file and line of each; None where the report holds none.
    """

    sass: Sequence[str]
    places: Sequence[Sequence[Any] | None]

    @property
    def instructions(self) -> list[Instruction]:
        return [
            Instruction(text, ((str(place[0]), int(place[1])),) if place else ())
            for text, place in zip(self.sass, self.places, strict=True)
        ]


def rows_of(cells: Cells, codes: Mapping[str, ReportedCode], variants: Iterable[Mapping[Any, Any]]) -> Tables:
    """The rows of every table.

    Args:
        cells: the launches of each cell.
        codes: machine code by the keys of the launches.
        variants: rows of `variants`, whose sources the instructions come from.
    """
    launched: list[dict[str, Any]] = []
    rows: Tables = {name: [] for name in ("counters", "machine_code", "instruction_counters", "rules")}
    places = {
        (row["workload"], row["variant"]): source_text.places(row["source_text"], row["source_path"] or row["variant"])
        for row in variants
    }
    written: set[str] = set()
    for cell, launches in cells.items():
        for index, launch in enumerate(launches):
            key = {**cell._asdict(), "launch_index": index}
            finite = [name for name in METRICS if name in launch.values]
            readings = [{"metric": name, "value": launch.values[name], "unit": launch.units[name]} for name in finite]
            rows["counters"] += [{**key, "kernel": launch.kernel, **reading} for reading in readings]
            code = _code(launch, codes, places.get((cell.workload, cell.variant), {}))
            if code and code["code"] not in written:
                written.add(code["code"])
                rows["machine_code"].append(code)
            if launch.shape:
                launched.append({**key, **_launch(launch, code["code"] if code else None)})
            rows["instruction_counters"] += [
                {**key, "metric": metric, "instruction": int(place), "value": value}
                for metric, values in launch.by_instruction.items()
                for place, value in values.items()
            ]
            rows["rules"] += [{**key, "place": place, **rule} for place, rule in enumerate(launch.rules)]
    return {**rows, "cell_launches": launch_rows(launched)}


def _code(
    launch: ProfiledLaunch, codes: Mapping[str, ReportedCode], places: Mapping[tuple[str, int], int]
) -> dict[str, Any] | None:
    reported = codes.get(launch.code or "")
    if reported is None:
        return None
    return code_row(
        launch.expression,
        "sm_{:.0f}{:.0f}".format(*(launch.values.get(name, 0) for name in CAPABILITY)),
        _DISASSEMBLED_BY,
        reported.instructions,
        places,
        registers=_whole(launch, REGISTERS),
        static_shared_bytes=_whole(launch, STATIC_SHARED),
        spill_bytes=None,
        ptx=None,
    )


def _launch(launch: ProfiledLaunch, code: str | None) -> dict[str, Any]:
    names = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"]
    sizes = {name: min(_MOST, int(launch.values[metric])) for name, metric in zip(names, SHAPE, strict=True)}
    return {"kernel": launch.expression, "code": code, **sizes, "dynamic_shared_bytes": _whole(launch, DYNAMIC_SHARED) or 0}


def _whole(launch: ProfiledLaunch, metric: str) -> int | None:
    value = launch.values.get(metric, -1)
    return int(value) if 0 <= value <= _MOST else None


def with_own_code(reported: Tables, recorded: Tables) -> Tables:
    """The rows of `launches` and `machine_code`: as recorded for cells that launched the same kernels, which then have PTX and spills
    too, and as reported for the others, such as those of libraries.
    """
    own = _by_cell(recorded["cell_launches"])
    theirs = _by_cell(reported["cell_launches"])
    same = {cell for cell, rows in own.items() if cell not in theirs or set(_names(rows)) == set(_names(theirs[cell]))}
    launches = [
        *(row for cell in own if cell in same for row in own[cell]),
        *(row for cell in theirs if cell not in same for row in theirs[cell]),
    ]
    codes = {row["code"]: row for row in (*reported["machine_code"], *recorded["machine_code"])}
    used = dict.fromkeys(row["code"] for row in launches if row["code"] in codes)
    return {"cell_launches": launches, "machine_code": [codes[code] for code in used]}


def at_own_places(reported: Tables, recorded: Tables) -> Tables:
    """Tables with the places of launches as recorded, for cells of which one launch of each kind was profiled."""
    theirs: dict[CellName, dict[int, dict[str, Any]]] = {}  # a row of each launch that was profiled
    for row in reported["counters"]:
        theirs.setdefault(_cell(row), {})[row["launch_index"]] = row
    places = {
        cell: [row["launch_index"] for row in rows]
        for cell, rows in _by_cell(recorded["cell_launches"]).items()
        if _names(rows) == _names(theirs.get(cell, {}).values())
    }

    def moved(row: dict[str, Any]) -> dict[str, Any]:
        indices = places.get(_cell(row))
        return {**row, "launch_index": indices[row["launch_index"]]} if indices else row

    counted = ("counters", "instruction_counters", "rules")
    return {name: [moved(row) for row in rows] if name in counted else rows for name, rows in reported.items()}


def _by_cell(launches: Iterable[dict[str, Any]]) -> dict[CellName, list[dict[str, Any]]]:
    rows: dict[CellName, list[dict[str, Any]]] = {}
    for row in launches:
        rows.setdefault(_cell(row), []).append(row)
    return rows


def _cell(row: Mapping[str, Any]) -> CellName:
    return CellName(*(row[name] for name in CellName._fields))


def _names(launches: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of the kernels without results and template arguments, which compilers write in different ways."""
    return [row["kernel"].partition("<")[0].rpartition("::")[2].rpartition(" ")[2] for row in launches]


def main_file(launches: Iterable[ProfiledLaunch], codes: Mapping[str, ReportedCode], files: Mapping[str, str]) -> str:
    """The file of the report from which most instructions of the launches come; empty where it has none."""
    keys = dict.fromkeys(launch.code for launch in launches if launch.code in codes)
    count = Counter(place[0] for key in keys if key for place in codes[key].places if place and place[0] in files)
    return str(count.most_common(1)[0][0]) if count else ""
