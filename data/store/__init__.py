"""Runs on disk. The only package that reads or writes parquet.

A run is written through `RunWriter` (streamed, then renamed into place) and read through `open_run`, which checks what it
reads against `schema` and names the file, the column and the cure where something does not fit. pandas, which takes longer to import than
the runs of a folder to list, is imported where a frame is made.
"""

from warpladder.data.files import LOCAL, RECORDED
from warpladder.data.store.changing import delete, notes, rename, set_note
from warpladder.data.store.errors import RunExists, StoreError
from warpladder.data.store.index import note, noted
from warpladder.data.store.listing import (
    find_run,
    folder,
    foreign_columns,
    import_of,
    keep_index,
    list_runs,
    open_run,
    scan_foreign,
)
from warpladder.data.store.ranks import (
    TABLES_OF_RANKS,
    Clock,
    RanksOfJob,
    any_rank_has,
    clock_of,
    open_rank,
    profiled_ranks,
    ranks_of,
)
from warpladder.data.store.run import BadRun, Run
from warpladder.data.store.tables import Rows, conform, frame, to_json
from warpladder.data.store.writer import RunWriter
