"""Every figure of the sections Collectives and Kernels of ranks, of tables made at random. No job ships."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.recomputed import collectives as jobs
from tests.recomputed.test_cells import SEED
from warpladder.dashboard.views.ranks.collectives import query as collectives
from warpladder.dashboard.views.ranks.job_kernels import query as job_kernels

RANKS = 6


def _rng(page: str) -> np.random.Generator:
    return np.random.default_rng([*f"{page} {SEED}".encode()])


def _arrow(frame: pd.DataFrame) -> pa.Table:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.string()).dictionary_encode())
    return table


def _made_collectives() -> pd.DataFrame:
    """Two groups, three kinds and three sizes; each collective has a row on each rank of its group."""
    rng, rows = _rng("collectives"), []
    for match in range(200):
        group = int(rng.integers(2))
        kind, size = str(rng.choice(["all_reduce", "all_gather", "sendrecv"])), int(rng.choice([1_000, 5_000, 80_000]))
        members = range(RANKS) if group == 0 else range(RANKS // 2)
        for rank in members:
            wait, transfer, start = (int(rng.integers(1, most)) for most in (10_000, 5_000, 1_000_000))
            rows.append(
                (
                    rank,
                    kind,
                    f"g{group}",
                    str(list(members)),
                    len(members),
                    size,
                    1 + size % 3,
                    start,
                    start + wait + transfer,
                    match,
                    wait,
                    transfer,
                )
            )
    return pd.DataFrame(rows, columns=list(collectives.COLUMNS))


@pytest.mark.slow
def test_collectives() -> None:
    table = _made_collectives()
    frame = collectives.by_size(_arrow(table), 0.0)
    assert frame["kernels"].sum() == sum(1 + size % 3 for size in table["bytes"])
    for row in frame.to_dict("records"):
        figures = jobs.collective(table, row)
        assert {name: row[name] for name in figures} == pytest.approx(figures)
        same = [
            each
            for each in frame.to_dict("records")
            if (each["group"], each["collective"]) == (row["group"], row["collective"])
        ]
        best = max(jobs.collective(table, each)["bus_gb_per_s"] for each in same)
        assert row["percent_of_best"] == pytest.approx(100 * figures["bus_gb_per_s"] / best)


def test_kernels_of_ranks() -> None:
    rng = _rng("job_kernels")
    rows = [
        (rank, step, name, kind, int(rng.integers(1, 5)), int(rng.integers(1_000, 9_000)))
        for rank in range(RANKS)
        for step in range(3)
        for name, kind in (("gemm", "compute"), ("relu", "compute"), ("h2d", "memory"), ("h2d", "compute"))
        if rng.random() < 0.8
    ]
    table = pd.DataFrame(rows, columns=list(job_kernels.COLUMNS))
    for step in (None, 1):
        frame = job_kernels.over_ranks(job_kernels.summed(_arrow(table), np.arange(RANKS), step))
        counted = table if step is None else table[table["iteration"] == step]
        for row in frame.to_dict("records"):
            figures = jobs.kernel(counted, RANKS, row)
            assert {name: row[name] for name in figures} == pytest.approx(figures)
