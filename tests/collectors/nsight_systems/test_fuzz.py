"""Whatever lacks or is odd in a report: a clean refusal, or a run that opens."""

import copy
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.collectors.nsight_systems.reports import Tables, nvtx, schema_2_9, schema_3_20, schema_2020, write
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.collectors.trace.model import ReportError
from warpladder.data.naming import Naming
from warpladder.data.store import StoreError, open_run

#: Reports that are made up; 150 with WARPLADDER_EVERY_DAMAGE=1.
EXAMPLES = 150 if os.environ.get("WARPLADDER_EVERY_DAMAGE") else 40
_ODD = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from(
        [0, 1, -1, 59, 60, 75, 2**31, 2**32, 2**62, 1.5, float("inf"), -1e300, "", "text", "\0", "é" * 50, b"\xff\xfe"]
    ),
)


@st.composite
def broken_reports(draw: st.DrawFn) -> Tables:
    tables: Tables = copy.deepcopy(draw(st.sampled_from([schema_2020(), schema_2_9(), schema_3_20()])))
    tables["NVTX_EVENTS"] += [
        nvtx(text, start, None if length is None else start + length, kind, domainId=domain)
        for text, start, length, kind, domain in draw(
            st.lists(
                st.tuples(
                    st.sampled_from(["a", "warpladder", "b[c]", "x.cold#1", None]),
                    st.integers(90, 330),
                    st.none() | st.integers(-5, 120),
                    st.sampled_from([59, 60, 75]),
                    st.integers(0, 3),
                ),
                max_size=8,
            )
        )
    ]
    for table in draw(st.lists(st.sampled_from(sorted(tables)), max_size=2)):
        tables.pop(table, None)
    for _ in range(draw(st.integers(0, 3))):
        table = draw(st.sampled_from(sorted(tables) or ["none"]))
        if columns := sorted({column for row in tables.get(table, []) for column in row}):
            column = draw(st.sampled_from(columns))
            for row in tables[table]:
                row.pop(column, None)
    for _ in range(draw(st.integers(0, 5))):
        table = draw(st.sampled_from(sorted(tables) or ["none"]))
        rows: list[dict[str, Any]] = [row for row in tables.get(table, []) if row]
        if rows:
            row = draw(st.sampled_from(rows))
            row[draw(st.sampled_from(sorted(row)))] = draw(_ODD)
    return tables


@pytest.mark.thorough
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(broken_reports(), st.booleans())
def test_a_broken_report_gives_a_refusal_in_one_line_or_a_run_that_opens(tables: Tables, named: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "report.sqlite", tables)
        naming = Naming.parse("nvtx:(?P<variant>.)") if named else None
        data_dir = Path(folder) / "runs"
        try:
            run_id = import_report(path, data_dir, "", naming, [])
        except (ReportError, StoreError) as refused:
            assert "\n" not in str(refused)
            assert not list(data_dir.iterdir() if data_dir.exists() else ())
            return
        run = open_run(data_dir / run_id)
        frames = {name: run.table(name) for name in run.tables}
        ranges = frames.get("ranges")
        if ranges is not None:
            parents = ranges.dropna(subset=["parent_id"])
            above = ranges.set_index("range_id").loc[parents["parent_id"].astype(np.int64), "depth"]
            assert (above.to_numpy() + 1 == parents["depth"].to_numpy()).all()
            busy = ranges.dropna(subset=["gpu_busy_ns"]).astype(object)  # of a broken report, a span may take more than 64 bits
            assert (busy["gpu_busy_ns"] <= busy["gpu_end_ns"] - busy["gpu_start_ns"]).all()
        for table in ("kernels", "memory_ops", "api_calls"):
            if table in frames:
                assert (frames[table]["end_ns"] >= frames[table]["start_ns"]).all()
