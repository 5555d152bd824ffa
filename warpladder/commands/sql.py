"""`warpladder sql`: the tables of a run, asked in SQL."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from warpladder.commands.common import data_dirs_option, folders, format_option
from warpladder.dashboard.text.formats import Form, json_text
from warpladder.errors import Error

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from warpladder.data.store import Run

#: What keeps a query to the tables that it is given. The last one keeps the others.
_CONFINED: Final = (
    "SET temp_directory = ''",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
#: Functions of DuckDB whose argument names a table.
_COMPUTED: Final = frozenset(("query", "query_table"))
_WIDEST: Final = 120


@click.command("sql")
@click.argument("words", nargs=-1, metavar='[RUN] "SELECT ..."')
@click.option(
    "--schema", "documented", is_flag=True, help="Print what the tables and their columns mean; of all, or those named."
)
@format_option("rows", ("table", "csv", "json"))
@data_dirs_option
def command(words: Sequence[str], documented: bool, form: Form, data_dirs: Sequence[str]) -> None:
    """Answer a question in SQL about the tables of a run.

    RUN: its id, label or folder. Default: the newest run of the data folder. "SELECT ...": a query of DuckDB.
    """
    from warpladder.data import store
    from warpladder.screen import print_text

    if documented:
        print_text(_documentation(words))
        return
    if len(words) not in (1, 2):
        raise click.UsageError('give one query in quotes: warpladder sql RUN "SELECT name FROM kernels LIMIT 3"')
    *run, query = words
    places = folders(data_dirs)
    newest = [] if run else store.list_runs(places[: len(data_dirs) or 1])[0]
    if not run and not newest:
        raise Error(f"{places[0]}: has no run yet; name one of warpladder runs before the query")
    opened = store.find_run(run[0], places) if run else store.open_run(newest[0].path)
    print_text(_written(*answer(opened, query), form))


def answer(run: "Run", query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of the columns and the rows of the answer to a query, which sees the tables of the run and no file.
    Raises Error: the query is not valid, or is none that only reads."""
    import duckdb

    connection = duckdb.connect(":memory:")
    try:
        for name, rows in _tables(run, query):
            connection.register(name, rows)
        for statement in _CONFINED:
            connection.execute(statement)
        connection.execute(_only_statement(connection, query))
        return _distinct([column[0] for column in connection.description or ()]), connection.fetchall()
    except duckdb.Error as error:
        raise Error(_in_one_line(error)) from error
    finally:
        connection.close()


def _only_statement(connection: "duckdb.DuckDBPyConnection", query: str) -> "duckdb.Statement":
    import duckdb

    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise Error(f"the query has {len(statements)} statements; give one")
    if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise Error(
            "the query does more than read; a run is never changed: begin it with SELECT, WITH, DESCRIBE, SHOW or EXPLAIN"
        )
    return statements[0]


def _in_one_line(error: "duckdb.Error") -> str:
    """The first line of a message of DuckDB, its suggestion, and where to look."""
    import duckdb

    if isinstance(error, duckdb.PermissionException):
        return "the query asks for a file; it sees only the tables of the run; warpladder sql --schema lists them"
    first, *others = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    told = [first, *(line for line in others if line.startswith(("Did you mean", "Candidate bindings")))]
    return f"{'; '.join(told)}; warpladder sql --schema lists tables and columns"


def _tables(run: "Run", query: str) -> Iterator[tuple[str, "pa.Table"]]:
    """Every table, with its rows if the query may name it. Those of the traces of a job's ranks have the ranks as their processes."""
    from warpladder.data import schema, store

    words = {word.lower() for word in re.findall(r"\w+", query)}
    named = set(schema.TABLES) if _COMPUTED & words else words & schema.TABLES.keys()
    if run.info["kind"] == "job" and not store.TABLES_OF_RANKS.isdisjoint(named):
        run = store.ranks_of(run, store.profiled_ranks(run))
    for name, table in schema.TABLES.items():
        yield name, _without_zones(run.arrow(name, table.arrow.names) if name in named else table.arrow.empty_table())


def _without_zones(rows: "pa.Table") -> "pa.Table":
    """Times of UTC without their zone, for which DuckDB would need a further package."""
    import pyarrow as pa

    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz:
            rows = rows.set_column(place, field.name, rows.column(place).cast(pa.timestamp(field.type.unit)))
    return rows


def _distinct(names: Sequence[str]) -> list[str]:
    """The names of columns, those of a join that come again with a number."""
    seen: Counter[str] = Counter()
    distinct = []
    for name in names:
        distinct.append(f"{name}_{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return distinct


def _written(names: Sequence[str], rows: Sequence[tuple[Any, ...]], form: Form) -> str:
    from warpladder.dashboard.ui.tables import csv
    from warpladder.dashboard.ui.text import plain_lines, plain_table

    if form == "json":
        return json_text([dict(zip(names, row, strict=True)) for row in rows])
    if form == "csv":
        import pandas as pd

        return csv(pd.DataFrame(rows, columns=list(names), dtype=object))
    if not rows:
        print("no rows", file=sys.stderr)
    return plain_lines(plain_table(names, [["" if value is None else str(value) for value in row] for row in rows]))


def _documentation(names: Sequence[str]) -> str:
    """Explain the tables and their columns. Raises Error."""
    from warpladder.dashboard.ui.text import columns, plain_lines, plain_table
    from warpladder.data import schema

    if unknown := [name for name in names if name not in schema.TABLES]:
        raise Error(f"{unknown[0]}: no such table; there are {', '.join(schema.TABLES)}")
    lines: list[str] = []
    for name in names or schema.TABLES:
        table = schema.TABLES[name]
        key = f" Key: {', '.join(table.key)}." if table.key else ""
        rows = [
            (
                column.name,
                f"{column.type}{'?' if column.nullable else ''}",
                column.unit,
                f"{column.meaning} ({', '.join(column.values)})" if column.values else column.meaning,
            )
            for column in table.columns
        ]
        lines += [
            "",
            f"{name}: {table.meaning}{key}",
            *plain_table(("column", "type", "unit", "meaning"), rows, min(columns(), _WIDEST)),
        ]
    return plain_lines(lines[1:])
