"""A run whose names are all made to be taken for something else: for HTML, Markdown, addresses, icons, formulas, Plotly's templates."""

import shutil
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

#: What is added to each name. `evil.example` is in all that a browser could follow.
TAIL = (
    ' <a href="http://evil.example/a">a</a> <img src="http://evil.example/b"> http://evil.example/c www.evil.example/d e@evil.example '
    "[f](http://evil.example/f) ![g](http://evil.example/g) <http://evil.example/h> :material/home: :streamlit: :smile: :red[i] $j$ "
    "**k** `l` -> -- <- %{x} &lt;"
)
#: The columns of each table that hold words of ours, numbers or JSON; all other texts may be anything.
FIXED = {
    "run": {"run_id", "kind", "collector", "compute_capability", "packages"},
    "ceilings": {"name", "device", "unit"},
    "variants": {"kind", "role", "precision", "transfer", "min_compute_capability", "source_sha256"},
    "cases": {"params"},
    "results": {"status"},
    "samples": {"cache", "scope"},
    "ranges": {"scope", "cache", "style"},
    "memory_ops": {"kind", "src_memory", "dst_memory"},
    "counters": {"metric", "unit"},
    "machine_code": {"lines"},
    "instruction_counters": {"metric"},
    "rules": {"severity"},
    "diagnostics": {"severity"},
}


def write(run: Path, to: Path, *, keep: Collection[str] = ()) -> Path:
    """Write a run again with `TAIL` on each of its texts; the columns of `keep` stay as they are, in every table.

    Returns:
        The folder of the copy, of the same run id.
    """
    shutil.copytree(run, to)
    for file in to.glob("*.parquet"):
        table = pq.read_table(file)
        for place, field in enumerate(table.schema):
            stored = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            if pa.types.is_string(stored) and field.name not in {*FIXED.get(file.stem, ()), *keep}:
                named = [f"{text}{TAIL}" if text else text for text in table[field.name].to_pylist()]
                table = table.set_column(place, field, pa.array(named, pa.string()).cast(field.type))
        pq.write_table(table, file)
    return to
