"""The search for stronger peers: its routes load, and it prints those that win."""

from inspect import Parameter, signature
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.peers.__main__ import stronger
from warpladder.workloads import registry
from warpladder.workloads.api import LibraryVariant

ROUTES = sorted(file for file in Path("benchmarks/peers").glob("[a-z]*.py") if file.stem != "routes")


@pytest.mark.parametrize("file", ROUTES, ids=lambda file: file.stem)
def test_each_workload_has_its_peers_and_routes_whose_functions_take_the_config(file: Path) -> None:
    (workload,) = registry.load_file(file)
    assert workload.name == file.stem and workload.variants[0].role == "peer"
    declared = {variant.name for variant in registry.load(file.stem).variants}
    assert not any(variant.name in declared and variant.role != "peer" for variant in workload.variants)
    assert any(variant.name not in declared for variant in workload.variants)
    for variant in workload.variants:
        assert isinstance(variant, LibraryVariant)
        names = list(signature(variant.prepare, follow_wrapped=False).parameters.values())[3:]
        for config in variant.configs:
            assert set(config) <= {each.name for each in names}
            assert {each.name for each in names if each.default is Parameter.empty} <= set(config)


def table(*rows: tuple[str, str, str, str, float]) -> pd.DataFrame:
    columns = ["case", "precision", "variant", "config", "median_ns"]
    return pd.DataFrame(rows, columns=columns).assign(status="ok")


def test_a_route_counts_against_the_best_config_of_the_best_peer_of_its_precision() -> None:
    cells = table(
        ("n=8", "fp32", "cublas", "", 1200.0),
        ("n=8", "fp32", "cublaslt", "a=rows", 1000.0),
        ("n=8", "fp32", "cublaslt", "a=columns", 1100.0),
        ("n=8", "fp32", "compiled", "mode=a", 990.0),  # 1 % faster
        ("n=8", "fp32", "cupy", "", 1150.0),
        ("n=8", "tf32", "cublas_tf32", "", 500.0),
        ("n=8", "tf32", "compiled_tf32", "mode=b", 480.0),
        ("n=9", "fp32", "cublas", "", 100.0),
        ("n=9", "fp32", "compiled", "mode=b", 50.0),
        ("n=9", "fp32", "compiled", "mode=a", 40.0),
    )
    found = stronger(cells, frozenset({"cublas", "cublaslt", "cublas_tf32"}))
    assert found.to_dict("records") == [
        {"case": "n=8", "precision": "tf32", "route": "compiled_tf32[mode=b]", "microseconds": 0.48, "peer": "cublas_tf32",
         "peer_microseconds": 0.5, "ratio": pytest.approx(1.0417, abs=1e-4)},
        {"case": "n=9", "precision": "fp32", "route": "compiled[mode=a]", "microseconds": 0.04, "peer": "cublas",
         "peer_microseconds": 0.1, "ratio": 2.5},
    ]  # fmt: skip


def test_what_failed_is_no_route() -> None:
    cells = table(("n=8", "fp32", "cublas", "", 100.0), ("n=8", "fp32", "wrong", "", 10.0))
    cells.loc[1, "status"] = "wrong"
    assert stronger(cells, frozenset({"cublas"})).empty
