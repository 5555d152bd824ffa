"""Runs on disk. The only package that reads or writes parquet.

A run is written through `RunWriter` (streamed, then renamed into place) and read through `open_run`, which checks what it
reads against `schema` and names the file, the column and the cure where something does not fit. pandas, which takes longer to import than
the runs of a folder to list, is imported where a frame is made.
"""

from data.store.errors import RunExists, StoreError
from data.store.foreign import foreign_columns, scan_foreign
from data.store.listing import DATA_DIR, LOCAL, RECORDED, find_run, folder, list_runs, open_run
from data.store.rows import Rows, conform, frame, to_json
from data.store.run import BadRun, Run
from data.store.writer import RunWriter

__all__ = [
    "DATA_DIR",
    "LOCAL",
    "RECORDED",
    "BadRun",
    "Rows",
    "Run",
    "RunExists",
    "RunWriter",
    "StoreError",
    "conform",
    "find_run",
    "folder",
    "foreign_columns",
    "frame",
    "list_runs",
    "open_run",
    "scan_foreign",
    "to_json",
]
