"""Prints the data dictionary `data/README.md`: every table and column of `schema`, and the names of `names`.

python -m warpladder.data.dictionary > data/README.md
"""

from warpladder.data import names, schema


def markdown() -> str:
    """The data dictionary as Markdown, the whole text of `data/README.md`."""
    lines = [
        "# Data dictionary",
        "",
        f"Schema version {schema.SCHEMA_VERSION}. Generated from `data/schema.py`: `python -m warpladder.data.dictionary > data/README.md`.",
        "",
        "A run is a folder `<data-dir>/<run_id>/` of parquet files, one for each table. A table with no rows may be absent.",
        "A run is written to a temporary folder beside it, and renamed when it is complete. It is never changed afterwards.",
        "Times are whole nanoseconds. GB is 10^9 bytes. A `?` behind a type marks a column that may be null.",
        "The values of a run are checked when it is first opened: keys, closed sets, and the ranges that `data/schema.py` gives.",
        "[docs/words.md](../docs/words.md) explains the words.",
        "",
        "- `recorded/`: runs that ship with the project.",
        "- `published/`: figures of the five student reports on which the workloads are based, as CSV with their table and unit.",
        "- `local/`: runs of this machine, ignored by git.",
    ]
    for table in schema.TABLES.values():
        lines += ["", f"## `{table.name}`", "", table.meaning]
        if table.key:
            lines += ["", "Key: " + ", ".join(f"`{name}`" for name in table.key) + "."]
        lines += ["", "| column | type | unit | meaning |", "|---|---|---|---|"]
        for column in table.columns:
            values = " (" + ", ".join(f"`{value}`" for value in column.values) + ")" if column.values else ""
            kind = f"{column.type}{'?' if column.nullable else ''}"
            lines.append(f"| `{column.name}` | {kind} | {column.unit} | {column.meaning}{values} |")
    for title, meanings in (
        ("Names of ceilings", {**names.CEILINGS, **names.CEILINGS_BY_BYTES}),
        ("Names of phases", names.PHASES),
        ("Sources of diagnostics", names.SOURCES),
    ):
        lines += ["", f"## {title}", "", "| name | meaning |", "|---|---|"]
        lines += [f"| `{name}` | {meaning} |" for name, meaning in meanings.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
