"""Imports hostile SQLite files, each in a process of its own: `python -m tests.fuzz.sqlite_files [SECONDS]`.

A file passes when `import` ends within SECONDS (60 if not given) with code 0 or 2, prints no traceback, and stops within two
seconds of a Ctrl-C where it takes longer than a second.
"""

import random
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from tests.collectors.nsight_systems.reports import schema_3_20, write

Change = Callable[[Path], None]

ROOT: Final = Path(__file__).resolve().parents[2]
TABLES: Final = (
    "StringIds", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "TARGET_INFO_GPU",
)  # fmt: skip
#: Rows without end, with the columns of most tables.
ENDLESS: Final = (
    "with recursive n(start) as (select 1 union all select start + 1 from n) select start, start + 1 as end, start as id, "
    "'x' as value, 0 as nameId, 0 as globalTid, 59 as eventType, start as text, 0 as deviceId from n"
)
_CTRL_C_S: Final = 2.0


def sql(*statements: str) -> Change:
    """Runs statements on a report."""

    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            for each in statements:
                database.execute(each)
            database.commit()

    return change


def schema_text(table: str, text: str, *more: str) -> Change:
    """Replaces the text that defines a table, as an editor of bytes can."""

    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            database.execute("pragma writable_schema = on")
            database.execute("update sqlite_master set sql = ? where name = ?", (text, table))
            for each in more:
                database.execute(each)
            database.commit()

    return change


def header(at: int, content: bytes) -> Change:
    """Overwrites bytes of the file's header."""

    def change(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[at : at + len(content)] = content
        path.write_bytes(data)

    return change


def circle(table: str) -> Change:
    """Makes the root page of a table an inner page whose many children are one page, twenty levels deep."""

    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            (root,) = database.execute("select rootpage from sqlite_master where name = ?", (table,)).fetchone()
            (size,) = database.execute("pragma page_size").fetchone()
        data = bytearray(path.read_bytes())
        pages = len(data) // size
        leaf = data[(root - 1) * size : root * size]
        data += leaf
        below = pages + 1
        children = 200
        for level in range(12):
            number = root if level == 11 else len(data) // size + 1
            page = bytearray(size)
            page[0] = 5
            struct.pack_into(">HHHB", page, 1, 0, children, size - 5 * children, 0)
            struct.pack_into(">I", page, 8, below)
            for cell in range(children):
                at = size - 5 * (cell + 1)
                struct.pack_into(">H", page, 12 + 2 * cell, at)
                struct.pack_into(">IB", page, at, below, 1)
            if number == root:
                data[(root - 1) * size : root * size] = page
            else:
                data += page
            below = number
        struct.pack_into(">I", data, 28, len(data) // size)
        path.write_bytes(data)

    return change


def noise(seed: int) -> Change:
    """Overwrites bytes everywhere after the header."""

    def change(path: Path) -> None:
        draw = random.Random(seed)
        data = bytearray(path.read_bytes())
        for _ in range(len(data) // 100):
            data[draw.randrange(100, len(data))] = draw.randrange(256)
        path.write_bytes(data)

    return change


def beside(ending: str, content: bytes) -> Change:
    """Puts a file of SQLite beside the report."""
    return lambda path: (path.with_name(path.name + ending).write_bytes(content), None)[1]


def _replaced(table: str, *definition: str) -> Change:
    return sql(f'drop table "{table}"', *definition)


def hostile() -> Iterator[tuple[str, Change]]:
    """The name of each file, and what makes it of a report that can be imported."""
    for number, table in enumerate(TABLES):
        create = (
            "create virtual",
            "create  virtual",
            "CREATE\tVIRTUAL",
            "create /* */ virtual",
            "Create\nVirtual",
            "create--\n virtual",
        )[number]
        yield (
            f"{table}: full text over an endless view",
            _replaced(
                table,
                f"create view endless as {ENDLESS}",
                f'{create} table "{table}" using fts4(start, end, id, value, content=endless)',
            ),
        )
        yield (
            f"{table}: full text 5 over an endless view",
            _replaced(
                table,
                f"create view endless as {ENDLESS}",
                f'{create} table "{table}" using fts5(start, end, id, value, content=endless, content_rowid=start)',
            ),
        )
        yield f"{table}: an endless view", _replaced(table, f'create view "{table}" as {ENDLESS}')
        yield f"{table}: a circle of pages", circle(table)
        yield (
            f"{table}: costly generated columns",
            _replaced(
                table,
                f'create table "{table}" (start, end, globalTid, nameId)',
                f'insert into "{table}" values (1, 2, 3, 4)',
                f'alter table "{table}" add column id as (length(hex(zeroblob(300000000))))',
                f"alter table \"{table}\" add column value as (printf('%.*c', 900000000, 'x'))",
                f'alter table "{table}" add column text as (hex(zeroblob(400000000)))',
            ),
        )
        yield f"{table}: dbstat", _replaced(table, f'create virtual table "{table}" using dbstat(main)')
    doubling = [f"create view v{n} as select a.start from v{n - 1} a, v{n - 1} b" for n in range(1, 40)]
    yield (
        "a view of views, doubled 40 times",
        _replaced(
            "NVTX_EVENTS", "create view v0 as select 1 as start", *doubling, "create view NVTX_EVENTS as select start from v39"
        ),
    )
    yield "a tree whose nodes are an endless view", sql(
        "create virtual table r using rtree(id, a, b)", "pragma writable_schema = on",
        "update sqlite_master set type = 'view', rootpage = 0, sql = 'create view r_node as select n as nodeno, zeroblob(n) as data from (with recursive m(n) as "
        "(select 1 union all select n + 1 from m) select n from m)' where name = 'r_node'",
    )  # fmt: skip
    view = f"create view NVTX_EVENTS as {ENDLESS}"
    yield "a view that the schema calls a table", schema_text("NVTX_EVENTS", view)
    yield (
        "a virtual table with a root page",
        schema_text("NVTX_EVENTS", "create virtual table NVTX_EVENTS using fts4(start, end, content=x)"),
    )
    yield "a table made of a query", schema_text("NVTX_EVENTS", f"create table NVTX_EVENTS as {ENDLESS}")
    yield (
        "the root page of another table",
        schema_text(
            "NVTX_EVENTS",
            "create table NVTX_EVENTS (start, end)",
            "update sqlite_master set rootpage = 1 where name = 'NVTX_EVENTS'",
        ),
    )
    yield (
        "a root page beyond the file",
        schema_text(
            "NVTX_EVENTS",
            "create table NVTX_EVENTS (start, end)",
            "update sqlite_master set rootpage = 99999999 where name = 'NVTX_EVENTS'",
        ),
    )
    yield (
        "a definition of ten million brackets",
        schema_text("NVTX_EVENTS", f"create table NVTX_EVENTS (start, end check ({'(' * 5_000_000}1{')' * 5_000_000}))"),
    )
    yield (
        "a check of many terms",
        schema_text("NVTX_EVENTS", f"create table NVTX_EVENTS (start, end check ({'+'.join(['1'] * 900)}))"),
    )
    yield (
        "an unknown collation",
        schema_text("NVTX_EVENTS", "create table NVTX_EVENTS (start collate nowhere, end, text collate nowhere)"),
    )
    yield "an unknown function", schema_text("NVTX_EVENTS", "create table NVTX_EVENTS (start, end, text as (nowhere(start)))")
    yield (
        "names that hide",
        sql('create table "\x1b[2J\u202e\n<img src=x>" (a)', 'alter table NVTX_EVENTS add column "\x1b]0;x\x07\n" int'),
    )
    yield "two thousand columns", sql(f"create table wide ({', '.join(f'c{n}' for n in range(2000))})")
    yield "a default of a megabyte", sql(f"alter table NVTX_EVENTS add column domainId2 text default '{'x' * 900_000}'")
    yield (
        "texts where numbers belong",
        sql("update CUPTI_ACTIVITY_KIND_KERNEL set start = 'x', end = x'00ff', deviceId = 9e999"),
    )
    yield (
        "an index of an endless expression",
        schema_text(
            "NVTX_EVENTS",
            "create table NVTX_EVENTS (start, end, text)",
            "create index i on NVTX_EVENTS (printf('%.*c', 900000000, start))",
        ),
    )
    yield "a page size of zero", header(16, b"\0\0")
    yield "a format of the future", header(18, b"\xff\xff")
    yield "a text encoding that is none", header(56, b"\0\0\0\x09")
    yield "UTF-16", header(56, b"\0\0\0\x02")
    yield "a free list in a circle", header(32, b"\0\0\0\x02\0\0\xff\xff")
    yield "a write-ahead log of noise", beside("-wal", random.Random(0).randbytes(100_000))
    yield "a journal of noise", beside("-journal", random.Random(1).randbytes(100_000))
    for seed in range(5):
        yield f"noise {seed}", noise(seed)


class Outcome(NamedTuple):
    """What became of an import: its exit code, None where it was ended; seconds; its last line; what is wrong, or nothing."""

    code: int | None
    seconds: float
    line: str
    wrong: str


def attempt(path: Path, data_dir: Path, most_s: float) -> Outcome:
    """Import a file."""
    command = [sys.executable, "-m", "warpladder", "import", str(path), "--data-dir", str(data_dir)]
    begin = time.monotonic()
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        try:
            out, said = process.communicate(timeout=most_s)
        except subprocess.TimeoutExpired:
            process.kill()
            return Outcome(None, most_s, "", "hangs")
    seconds = time.monotonic() - begin
    wrong = "traceback" if "Traceback" in said else "" if process.returncode in (0, 2) else f"exit code {process.returncode}"
    if process.returncode == 2 and (said.strip().count("\n") != 0 or not said.strip().isprintable()):
        wrong = wrong or "not one printable line"
    return Outcome(process.returncode, seconds, (said.strip() or out.strip()).split("\n")[-1], wrong)


def interrupted(path: Path, data_dir: Path) -> float:
    """Seconds from a Ctrl-C, half a second into an import, to its end."""
    command = [sys.executable, "-m", "warpladder", "import", str(path), "--data-dir", str(data_dir)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(3.0)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10 * _CTRL_C_S)
        except subprocess.TimeoutExpired:
            process.kill()
        return time.monotonic() - begin


def main(most_s: float = 60.0) -> int:
    """Import each hostile file and print a line for it. Returns 1 where one did not pass."""
    failed = 0
    begin = time.monotonic()
    for number, (name, change) in enumerate(hostile()):
        with tempfile.TemporaryDirectory() as folder:
            path = write(Path(folder) / "report.sqlite", schema_3_20())
            change(path)
            found = attempt(path, Path(folder) / "runs", most_s)
            ctrl_c = interrupted(path, Path(folder) / "runs") if found.seconds > 6 else 0.0
        failed += bool(found.wrong) or ctrl_c > _CTRL_C_S
        ended = f", {ctrl_c:.1f} s after Ctrl-C" if ctrl_c else ""
        print(
            f"{number + 1:3} {found.wrong or 'ok':12} {found.code} {found.seconds:5.1f} s{ended}  {name}: {found.line[:150]}",
            flush=True,
        )
    print(f"{number + 1} files in {time.monotonic() - begin:.0f} s: {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
