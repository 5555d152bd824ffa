"""The sums of an imported trace are those of `key_averages()` of PyTorch's profiler for the same capture."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from warpladder.collectors.kineto.parse import import_report
from warpladder.data import store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kineto"
NAMES = sorted(path.name.removesuffix(".sums.json") for path in FIXTURES.glob("*.sums.json"))
#: The oracle has float64 of microseconds.
NS = 0.51


def averages(name: str, device: str) -> dict[str, dict[str, Any]]:
    rows = json.loads((FIXTURES / f"{name}.sums.json").read_text())
    return {row["key"]: row for row in rows if row["device"] == f"DeviceType.{device}"}


@pytest.fixture(scope="module", params=NAMES)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, store.Run]:
    folder = tmp_path_factory.mktemp("runs")
    run_id = import_report(FIXTURES / f"{request.param}.json.gz", folder, "", None, [])
    return request.param, store.open_run(folder / run_id)


def test_kernels_copies_and_sets_have_the_sums_of_the_profiler(imported: tuple[str, store.Run]) -> None:
    name, run = imported
    found: dict[str, list[int]] = defaultdict(list)
    kernels = run.table("kernels")
    for full_name, duration in zip(kernels["full_name"], kernels["end_ns"] - kernels["start_ns"], strict=True):
        found[full_name].append(duration)
    ranges = set(run.table("ranges", ["text"])["text"])
    expected = {key: row for key, row in averages(name, "CUDA").items() if key not in ranges}
    memory = {key: expected.pop(key) for key in list(expected) if key.startswith(("Memcpy", "Memset"))}
    assert {key: len(times) for key, times in found.items()} == {key: row["count"] for key, row in expected.items()}
    for key, row in expected.items():
        assert sum(found[key]) == pytest.approx(1000 * row["self_device_us"], abs=NS * len(found[key]) + 1e-6)
    operations = run.table("memory_ops")
    assert len(operations) == sum(row["count"] for row in memory.values())
    total = (operations["end_ns"] - operations["start_ns"]).sum()
    assert total == pytest.approx(1000 * sum(row["self_device_us"] for row in memory.values()), abs=NS * len(operations) + 1e-6)


#: Operators around `Activity Buffer Request`, whose copy PyTorch counts twice in the total of device time.
COUNTED_TWICE = {"resnet18_train_h2d": {"aten::to", "aten::_to_copy", "aten::copy_"}, "graph_and_two_streams": set()}


def as_averaged(operations: pd.DataFrame) -> pd.DataFrame:
    """Without operators that are the only one inside another of the same name, which PyTorch leaves out of its averages."""
    children = operations["parent_id"].value_counts()
    names = operations.set_index("operation_id")["name"]
    parent = operations["parent_id"]
    again = (parent.map(names) == operations["name"]) & (parent.map(children) == 1)
    moved = operations[again].groupby("parent_id")["self_device_ns"].sum()
    own = operations["self_device_ns"] + operations["operation_id"].map(moved).fillna(0)
    return operations.assign(self_device_ns=own)[~again]


def test_operators_have_the_sums_of_the_profiler(imported: tuple[str, store.Run]) -> None:
    name, run = imported
    operations = as_averaged(run.table("operations"))
    operations["cpu_ns"] = operations["end_ns"] - operations["start_ns"]
    sums = operations.groupby("name")[["device_ns", "self_device_ns", "cpu_ns"]].sum()
    counts = operations["name"].value_counts()
    copies = run.table("memory_ops")
    first_copy = (copies["end_ns"] - copies["start_ns"])[copies["kind"] == "h2d"].head(1).sum()
    expected = averages(name, "CPU")
    assert {key for key in expected if key.startswith("aten::")} == {key for key in sums.index if key.startswith("aten::")}
    for key, row in sums.iterrows():
        oracle = expected[str(key)]
        most = NS * counts[key] + 1e-3
        twice = first_copy if key in COUNTED_TWICE[name] else 0
        assert counts[key] == oracle["count"]
        assert row["self_device_ns"] == pytest.approx(1000 * oracle["self_device_us"], abs=most), key
        assert row["device_ns"] + twice == pytest.approx(1000 * oracle["device_us"], abs=most), key
        assert row["cpu_ns"] == pytest.approx(1000 * oracle["cpu_us"], abs=most), key
