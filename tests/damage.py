"""Ways to damage a run on disk, for tests: files that are something else, pages with flipped bits, and values that no run can hold.

Every kind of damage is made to every table and column that it can be made to. What depends on chance has a seed of its own, so that
a damage does the same in every process.
"""

import os
import random
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.synthetic import made_code, made_energy, made_jobs, made_runs, made_sweeps, made_traces
from tests.synthetic.made_runs import row
from warpladder.data import schema
from warpladder.data.columns import Column
from warpladder.data.names import Experiment, Phase, Work
from warpladder.data.schema import TABLES

#: Variants of conv2d that the whole run has.
_VARIANTS: Final = ("copy", "v01_naive", "v03_register_tile", "cudnn", "numpy")
_CASES: Final = ("n=512", "n=1024")
_SCOPES: Final = ("device", "end_to_end", Phase.ALLOCATE, Phase.H2D, Phase.COMPUTE, Phase.D2H, Phase.FREE)
_FLIPS: Final = 6  # of bits, each in a file of its own, of each table
_NOT_NEGATIVE: Final = frozenset(
    [
        "flops",
        "min_bytes",
        "h2d_bytes",
        "d2h_bytes",
        "bytes",
        "verified_elements",
        "gpus",
        "rank",
        "twin",
        "round",
        "position",
        "duration_ns",
        "range_id",
        "time_range_id",
        "parent_id",
        "depth",
        "process",
        "gpu_busy_ns",
        "time_gpu_busy_ns",
    ]
)
_LARGEST: Final = {8: 2**7 - 1, 16: 2**15 - 1, 32: 2**31 - 1, 64: 2**63 - 1}
_NOT_UTF8: Final = b"caf\xe9 \xff"
_TEXTS: Final = {"empty": "", "odd": "king", "markup": "<b>\n`x` $a$ [a](b)\x00\u202e", "long": "x" * 20_000}
_NUMBERS: Final = {"zero": 0.0, "negative": -1.0, "nan": np.nan, "infinite": np.inf, "far below": -np.inf, "huge": 1e308}
_JSON: Final = {
    "a list": "[1]", "no JSON": "{", "deep": "[" * 50_000, "a long number": "9" * 10_000, "nested": '{"n": {"a": [1]}}',
    "infinite": '{"n": Infinity}', "huge": '{"n": 1e999}', "many digits": '{"n": ' + "9" * 400 + "}", "null": '{"n": null}',
}  # fmt: skip


@dataclass(frozen=True)
class Damage:
    """One damage.

    Attributes:
        name: what is done to which table, and to which column of it.
        table: the table.
        make: does it to the folder of a run.
        refused: the run must not open; else it may open, and then all must work.
    """

    name: str
    table: str
    make: Callable[[Path], None]
    refused: bool


def write_whole(folder: Path, run_id: str) -> Path:
    """Write a run with rows in every table: a recording on one and two GPUs, its counters, its machine code, and the trace of another program.

    Returns:
        The folder of the run.
    """
    variants = tuple(made for made in made_runs.VARIANTS if made.workload == "conv2d" and made.name in _VARIANTS)
    path = made_runs.write_variants(folder, run_id, run_id, variants, rounds=6, seed=1, on_gpu=True)
    # As few cells as draw every chart, since each run that opens is drawn.
    for table in ("samples", "results", "cases"):
        _rewritten(table, lambda found: found.filter(pc.is_in(found["case"], pa.array(_CASES))))(path)
    _rewritten("samples", lambda found: found.filter(pc.is_in(found["scope"], pa.array(_SCOPES))))(path)
    counters = [
        {**reading, "workload": "conv2d", "variant": "v01_naive", "config": "block=8", "case": "n=512"}
        for reading in made_sweeps.counter_rows() if reading["variant"] == "v01_simple"
    ]  # fmt: skip
    made_sweeps.add(path, "counters", counters)
    together = [
        row("samples", workload="conv2d", variant="v01_naive", config="block=8", case=case, gpus=2, rank=rank, cache="hot",
            scope="device", round=number, duration_ns=90_000 + 1_000 * number + rank)
        for case in ("n=512", "n=1024") for number in range(6) for rank in range(2)
    ]  # fmt: skip
    made_sweeps.add(path, "samples", together)
    trace = made_traces.write(folder / ".trace", run_id)
    for table in ("ranges", "kernels", "memory_ops", "api_calls"):
        shutil.copy(trace / f"{table}.parquet", path)
    shutil.rmtree(trace.parent)
    job = made_jobs.write(folder / ".job", run_id)
    for table in ("ranks", "rank_devices", "iterations", "rank_kernels", "idle", "collectives"):
        shutil.copy(job / f"{table}.parquet", path)
    shutil.rmtree(job.parent)
    made_sweeps.add(path, "operations", [row("operations", name="aten::mm", start_ns=0, end_ns=100)])
    made_sweeps.add(path, "synchronizations", [row("synchronizations", kind="event", start_ns=0, end_ns=100)])
    experiments = [
        row("experiments", workload="conv2d", variant="v01_naive", config="block=8", case="n=512", place=place, kernel="k",
            experiment=experiment, what=what, value=value, low=value, high=value, unit="ns", lines="12,40")
        for place, (experiment, what, value) in enumerate([(Experiment.TIME, "original", 100.0), (Experiment.WITHOUT, Work.SHARED, 60.0)])
    ]  # fmt: skip
    made_sweeps.add(path, "experiments", experiments)
    block = row(
        "experiment_blocks",
        workload="conv2d",
        variant="v01_naive",
        config="block=8",
        case="n=512",
        start_ns=0,
        end_ns=100,
        stage="to the end",
        stage_ns=90,
    )
    made_sweeps.add(path, "experiment_blocks", [block])
    made_sweeps.add(path, "phases", [row("phases", phase="samples", scope="device", cache="cold", duration_ns=100)])
    made_sweeps.add(path, "memory_in_use", [row("memory_in_use", source="cuda", start_ns=0, bytes=100)])
    made_code.add_to(path)
    made_energy.add_to(path)
    assert {file.stem for file in path.glob("*.parquet")} == set(TABLES)
    return path


def copy_of(run: Path, name: str) -> Path:
    """A copy of a run beside it; its files are those of the run until a damage puts others in their place."""
    copy = run.parent / name
    copy.mkdir()
    for file in run.iterdir():
        os.link(file, copy / file.name)
    return copy


def renamed(run: Path) -> None:
    """Gives a copy its folder's name as id and label."""
    for column in ("run_id", "label"):
        _with_value("run", schema.RUN.columns[schema.RUN.arrow.names.index(column)], run.name)(run)


def every_damage() -> Iterator[Damage]:
    """Every damage there is."""
    for table in TABLES:
        yield from _of_file(table)
        yield from _of_rows(table)
        for column in TABLES[table].columns:
            yield from _of_column(table, column)
    yield from _of_parents()


def _of_file(table: str) -> Iterator[Damage]:
    def damage(name: str, change: Callable[[Path], None], *, refused: bool = True) -> Damage:
        def make(run: Path) -> None:
            content = (run / f"{table}.parquet").read_bytes()
            (run / f"{table}.parquet").unlink()
            spare = run.parent / f".content of {table}"
            spare.write_bytes(content)
            change(run / f"{table}.parquet")
            spare.unlink()

        return Damage(f"{table}: {name}", table, make, refused)

    def content(file: Path) -> bytearray:
        return bytearray((file.parent.parent / f".content of {table}").read_bytes())

    def bind(file: Path) -> None:
        before = Path.cwd()
        os.chdir(file.parent)  # the path of a socket has at most 107 bytes
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(file.name)
        os.chdir(before)

    yield damage("a FIFO", lambda file: os.mkfifo(file))
    yield damage("a folder", lambda file: file.mkdir())
    yield damage("a socket", bind)
    yield damage("a link to itself", lambda file: file.symlink_to(file.name))
    yield damage("a device", lambda file: file.symlink_to("/dev/zero"))
    yield damage("no bytes", lambda file: file.touch())
    yield damage("a text", lambda file: file.write_text("PAR1 hello PAR1") and None)
    yield damage("half", lambda file: file.write_bytes(content(file)[: len(content(file)) // 2]) and None)
    yield damage("without its last byte", lambda file: file.write_bytes(content(file)[:-1]) and None)
    yield damage("zeros within", lambda file: file.write_bytes(_zeroed(content(file))) and None)
    if table == "run":
        yield damage("missing", lambda file: None)
    for number in range(_FLIPS):
        bits = random.Random(f"{table} {number}")
        yield damage(
            f"bit flip {number}",
            lambda file, bits=bits: file.write_bytes(_flipped(content(file), bits)) and None,
            refused=False,
        )


def _zeroed(content: bytearray) -> bytearray:
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    return content


def _flipped(content: bytearray, bits: random.Random) -> bytearray:
    content[bits.randrange(len(content))] ^= 1 << bits.randrange(8)
    return content


def _rewritten(table: str, change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    def make(run: Path) -> None:
        file = run / f"{table}.parquet"
        changed = change(pq.read_table(file))
        file.unlink()  # it may be a link to that of another run
        pq.write_table(changed, file)

    return make


def _of_rows(table: str) -> Iterator[Damage]:
    first = TABLES[table].columns[0].name

    def doubled_column(found: pa.Table) -> pa.Table:
        return pa.Table.from_arrays([*found.columns, found.column(0)], names=[*found.column_names, first])

    yield Damage(f"{table}: no rows", table, _rewritten(table, lambda found: found.slice(0, 0)), True)
    yield Damage(f"{table}: a column twice", table, _rewritten(table, doubled_column), True)
    yield Damage(
        f"{table}: a foreign column", table, _rewritten(table, lambda found: found.append_column("x", found.column(0))), True
    )
    if TABLES[table].key:
        doubled = _rewritten(table, lambda found: pa.concat_tables([found, found.slice(len(found) - 1)]))
        yield Damage(f"{table}: the last row twice", table, doubled, True)


def _of_column(table: str, column: Column) -> Iterator[Damage]:
    yield Damage(
        f"{table}.{column.name}: missing", table, _rewritten(table, lambda t: t.drop_columns([column.name])), not column.later
    )
    wrong_type = pa.float32() if pa.types.is_integer(column.type) else pa.int8()
    yield Damage(
        f"{table}.{column.name}: another type", table, _replaced(table, column, lambda n: pa.array([1] * n, wrong_type)), True
    )
    for name, value, refused in _values(table, column):
        if isinstance(value, str) and not (refused or column.not_empty):
            continue  # any text will do: `odd_everywhere` puts them
        yield Damage(f"{table}.{column.name}: {name}", table, _with_value(table, column, value), refused)
    if pa.types.is_string(column.type):
        yield Damage(f"{table}.{column.name}: not UTF-8", table, _with_value(table, column, _NOT_UTF8), True)


def _values(table: str, column: Column) -> Iterator[tuple[str, Any, bool]]:
    """Name, value, and whether a run with it must be refused."""
    yield "null", None, not column.nullable
    if pa.types.is_string(column.type):
        is_json = column.name in ("params", "packages")
        for name, text in (_TEXTS | (_JSON if is_json else {})).items():
            refused = bool(column.values) or (column.not_empty and not text)
            yield name, text, refused or (is_json and name not in ("empty", "nested", "null"))
    elif pa.types.is_integer(column.type):
        largest = _LARGEST[column.type.bit_width]
        yield from (("zero", 0, column.name == "duration_ns"), ("negative", -1, column.name in _NOT_NEGATIVE))
        yield from (("least", -largest - 1, column.name in _NOT_NEGATIVE), ("largest", largest, False))
    elif pa.types.is_floating(column.type):
        for name, number in _NUMBERS.items():
            below = name in ("negative", "far below") and table in ("ceilings", "results")
            yield (
                name,
                number,
                below or (table == "ceilings" and name != "huge") or (table == "counters" and not np.isfinite(number)),
            )
    elif pa.types.is_timestamp(column.type):
        yield from (("before all", -(2**63) + 1, True), ("after all", 2**63 - 1, True), ("in 1970", 0, False))


def odd_everywhere(turn: int) -> Callable[[Path], None]:
    """Puts odd values, all of which a run may hold, into the second row of every table, other ones in each turn.

    What identifies rows, times and the tree of ranges stays.
    """

    def make(run: Path) -> None:
        for table in TABLES.values():
            kept = {*table.key, *schema.SAMPLES.key, "schema_version", "range_id", "time_range_id", "parent_id", "depth"}
            for place, column in enumerate(each for each in table.columns if each.name not in kept):
                may = [value for _, value, refused in _values(table.name, column) if not refused and _fits(column, value)]
                if may and not column.name.endswith("_ns"):
                    _with_value(table.name, column, may[(place + turn) % len(may)])(run)

    return make


def _fits(column: Column, value: Any) -> bool:
    if column.name == "params":
        return False
    if not isinstance(value, int | float):
        return True
    allowed = not column.finite or np.isfinite(value) or (column.nullable and np.isnan(value))
    return bool(
        allowed and not value < (-np.inf if column.least is None else column.least) and not value > (column.most or np.inf)
    )


def _with_value(table: str, column: Column, value: Any) -> Callable[[Path], None]:
    """Puts a value into the second row, or the first of one."""

    def make(run: Path) -> None:
        def values(n: int) -> pa.Array:
            before = pq.read_table(run / f"{table}.parquet").column(column.name).combine_chunks()
            place = min(1, n - 1)
            one = pa.array([value], pa.binary() if isinstance(value, bytes) else before.type)
            if isinstance(value, bytes):
                one = pa.Array.from_buffers(pa.string(), 1, one.buffers())
            return pa.concat_arrays([before.slice(0, place), one, before.slice(place + 1)])

        _replaced(table, column, values)(run)

    return make


def _replaced(table: str, column: Column, values: Callable[[int], pa.Array]) -> Callable[[Path], None]:
    def change(found: pa.Table) -> pa.Table:
        made = values(len(found))
        return found.set_column(found.column_names.index(column.name), pa.field(column.name, made.type), made)

    return _rewritten(table, change)


def _of_parents() -> Iterator[Damage]:
    """Parents by place of the range; the trace's ranges 1, 2 and 3 enclose one another."""
    wrong: Mapping[str, dict[int, int]] = {
        "its own parent": {4: 5}, "a circle of two": {0: 2}, "a circle of three": {0: 3}, "a parent that is not there": {4: 77},
    }  # fmt: skip
    for name, parents in wrong.items():

        def change(found: pa.Table, parents: dict[int, int] = parents) -> pa.Table:
            values = found.column("parent_id").to_pylist()
            for place, parent in parents.items():
                values[place] = parent
            return found.set_column(found.column_names.index("parent_id"), "parent_id", pa.array(values, pa.int64()))

        yield Damage(f"ranges.parent_id: {name}", "ranges", _rewritten("ranges", change), True)
    for table, start, end in (("ranges", "start_ns", "end_ns"), ("kernels", "start_ns", "end_ns"), ("kernels", "launch_start_ns", "launch_end_ns"),
                              ("ranges", "gpu_start_ns", "gpu_end_ns"), ("api_calls", "start_ns", "end_ns"), ("memory_ops", "start_ns", "end_ns")):  # fmt: skip
        names = (start, end)

        def swap(found: pa.Table, names: tuple[str, str] = names) -> pa.Table:
            other = dict(zip(names, names[::-1], strict=True))
            return pa.table({name: found.column(other.get(name, name)) for name in found.column_names})

        yield Damage(f"{table}.{end}: before {start}", table, _rewritten(table, swap), True)
