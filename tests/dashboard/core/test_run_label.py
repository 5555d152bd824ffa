"""A run without a label gets one made of its workload, time and device."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.synthetic import made_runs
from warpladder.dashboard.core.run_index import label_from, label_of
from warpladder.data import store

INFO = {"label": "", "run_id": "20261124T150127Z-d9cc", "started_at": datetime(2026, 11, 24, 15, 1, tzinfo=UTC)}


def test_a_made_label_has_the_workload_the_time_and_the_device() -> None:
    info = {**INFO, "device_name": "", "cpu_name": "AMD EPYC"}
    assert label_from(info, ["my_kernel"]) == "my_kernel · 2026-11-24 15:01 · AMD EPYC"
    assert label_from(info, ["a", "b", "c", "d"]) == "a, b and 2 more · 2026-11-24 15:01 · AMD EPYC"
    assert label_from(info, []) == "20261124T150127Z-d9cc"
    assert label_from({**info, "source": "step.json.gz"}, []) == "step.json.gz · 2026-11-24 15:01"
    assert label_from({**info, "label": "mine,\nand yours"}, ["a"]) == r"mine,\nand yours"


def test_the_label_of_a_run_reads_its_cases(tmp_path: Path) -> None:
    made = made_runs.write_host_run(tmp_path, "host", rounds=6)
    table = pq.read_table(made / "run.parquet")
    place = table.schema.get_field_index("label")
    field = table.schema.field(place)
    pq.write_table(table.set_column(place, field, pa.array([""]).cast(field.type)), made / "run.parquet")
    run = store.open_run(made)
    assert label_of(run).startswith("tensor_transpose, conv2d · 2026-01-02") and label_of(run).endswith(
        str(run.info["cpu_name"])
    )
