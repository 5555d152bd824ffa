"""The source reports' own tables, from our samples or by computation."""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pandas as pd

from dashboard.core.axes import Timing, baseline, charted_cases, timings
from dashboard.core.cells import best_config, cells
from dashboard.core.compare import find_copy
from dashboard.core.intervals import paired_ratio
from dashboard.core.run_data import Copy, RunData
from data import figures

BANKS: Final = 32
WARP: Final = 32
BLOCK: Final = (8, 8, 8)
DEFINITION: Final = (
    "Ours counts the extra passes of a warp through the banks (the most words that one bank must serve, less one), averaged over the "
    "16 warps of an 8x8x8 block. The report does not say what it counts. Its padded tiles for (1,2,0) and (2,0,1) are free of "
    "conflicts for the inverse permutation; for the store of its listing 0.4.4 the two belong the other way round."
)
_PARTS: Final = {f"phase:{part}": part for part in ("allocate", "h2d", "compute", "d2h", "free")}
TENSOR: Final = "tensor_transpose"
MATRIX_AND_TENSOR: Final = {
    "v01_copy": "copy", "v06_shared_template": "3-D", "v07_bank_padding": "3-D", "v08_matrix_tile": "2-D",
}  # fmt: skip
_BLOCK_CONFIG: Final = re.compile(r"block=(\d+)")

Address = Callable[[tuple[int, int, int]], int]


def bank_conflicts(tile_zyx: Sequence[int], perm: Sequence[int]) -> float:
    """Extra passes through shared memory that a warp needs to store its part of an 8x8x8 block permuted, averaged over the warps.

    Thread (z, y, x) stores to `tile[t[perm[0]]][t[perm[1]]][t[perm[2]]]` with t = (z, y, x), as the tensor report's listing 0.4.4
    does. Shared memory has 32 banks of 4 bytes; a warp's store takes as many passes as the busiest bank has words to serve.

    Args:
        tile_zyx: allocated extents of the shared array, e.g. (8, 12, 9) for a padded one.
        perm: the permutation, e.g. (2, 1, 0).
    """
    return _extra_passes(lambda thread: _linear(tile_zyx, [thread[axis] for axis in perm]))


def load_conflicts(tile_zyx: Sequence[int]) -> float:
    """The same for the load that follows, in which thread (z, y, x) reads `tile[z][y][x]`."""
    return _extra_passes(lambda thread: _linear(tile_zyx, thread))


def bank_conflict_table() -> pd.DataFrame:
    """The tensor report's table 2 beside ours.

    Returns:
        One row a (permutation, tile) of the report: `perm`, `tile` (`8x8x12`), `padded`, `published`, and ours: `store` (see
        `bank_conflicts`), `store_inverse` (of the inverse permutation) and `load` (see `load_conflicts`).
    """
    published = figures.read(TENSOR)
    rows = published[published["quantity"] == "bank_conflicts"]
    table = []
    for row in rows.to_dict("records"):
        digits = row["case"].rsplit("perm=", 1)[1]
        perm = [int(axis) for axis in digits]
        tile = [int(extent) for extent in row["config"].removeprefix("tile=").split("x")]
        table.append(
            {
                "perm": digits, "tile": "x".join(map(str, tile)), "padded": not row["variant"].startswith("F"),
                "published": row["value"], "store": bank_conflicts(tile, perm),
                "store_inverse": bank_conflicts(tile, [perm.index(axis) for axis in range(3)]), "load": load_conflicts(tile),
            }
        )  # fmt: skip
    return pd.DataFrame(table)


def overheads(data: RunData, workload: str = "conv2d") -> pd.DataFrame:
    """Allocation, copies and release as a part of the whole run of an operation.

    Returns:
        One row a (case, variant, part): `case`, `size_rank`, `params`, `variant`, `title`, `config`, `part` (`allocate`, `h2d`, `compute`,
        `d2h`, `free`), `median_ns`, `low_ns`, `high_ns`, `n` and `fraction` of the sum of the parts. Of each variant the config that
        computes fastest. Empty where the run has no such phases.
    """
    every = cells(data)
    parts = every[(every["workload"] == workload) & every["scope"].isin(_PARTS) & every["size_rank"].notna() & (every["n"] > 0)]
    parts = parts[~parts["role"].isin(["ceiling", "specimen"])]
    chosen = best_config(parts[parts["scope"] == "phase:compute"])[["case", "variant", "config", "gpus", "cache"]]
    parts = parts.merge(chosen)
    parts["part"] = parts["scope"].map(_PARTS)
    parts["fraction"] = parts["median_ns"] / parts.groupby(["case", "variant"])["median_ns"].transform("sum")
    columns = [
        "case",
        "size_rank",
        "params",
        "variant",
        "title",
        "config",
        "part",
        "median_ns",
        "low_ns",
        "high_ns",
        "n",
        "fraction",
    ]
    return parts.sort_values(["size_rank", "case", "variant"], kind="stable")[columns].reset_index(drop=True)


def block_sensitivity(data: RunData, workload: str = "conv2d") -> pd.DataFrame:
    """How much the block size matters.

    Returns:
        Rows of `cells` of the rungs that were measured with several configs `block=N`, in the first view, with `block` (N) and
        `relative`: time over that of the fastest block, paired by round (+`relative_low`, `relative_high`).
    """
    found = timings(data, workload)
    every = cells(data)
    view = found[0] if found else Timing("", "")
    rows = every[
        (every["workload"] == workload) & (every["scope"] == view.scope) & (every["cache"] == view.cache)
        & (every["n"] > 0) & every["size_rank"].notna() & every["config"].str.fullmatch(_BLOCK_CONFIG.pattern)
    ]  # fmt: skip
    rows = rows[rows.groupby(["variant", "case"])["config"].transform("nunique") > 1]
    rows = rows.assign(block=rows["config"].str.extract(_BLOCK_CONFIG.pattern, expand=False).astype(int))
    fastest = (
        rows.loc[rows.groupby(["variant", "case"])["median_ns"].idxmin()].set_index(["variant", "case"])["config"].to_dict()
    )
    ratios = []
    for row in rows.to_dict("records"):
        rounds = data.rounds(workload, row["case"], view.scope, view.cache)
        best = Copy(row["variant"], fastest[row["variant"], row["case"]], int(row["gpus"]), 0)
        ratios.append(paired_ratio(rounds[best._replace(config=row["config"])], rounds[best])[:3])
    relative = pd.DataFrame(ratios, columns=["relative", "relative_low", "relative_high"], index=rows.index, dtype=float)
    return rows.join(relative).sort_values(["rung", "size_rank", "block"], kind="stable").reset_index(drop=True)


def with_and_without_copies(data: RunData, workload: str = TENSOR) -> pd.DataFrame:
    """Speedups over the sequential host code, as the tensor report's tables 4 (without the copies) and 5 (with them).

    Returns:
        One row a (case, variant, copies) of the rungs and peers, each with its fastest config: `variant`, `title`, `config`, `case`,
        `size_rank`, `size` and `series` (see `axes.charted_cases`), `copies` (False: scope device with a hot L2, or operation where there is no device scope; True: end_to_end), `scope`,
        `cache`, `reference` (the host variant), `speedup`, `low`, `high`, `n`, `paired`. Host and device are
        not measured in the same rounds, so the ratios are not paired. Empty without host samples or without samples of a GPU.
    """
    columns = [
        "variant", "title", "config", "case", "size_rank", "size", "series", "copies", "scope", "cache", "reference", "speedup", "low", "high", "n",
        "paired",
    ]  # fmt: skip
    every = cells(data)
    best = best_config(every[(every["workload"] == workload) & (every["gpus"] > 0) & every["role"].isin(["rung", "peer"])])
    best = best.merge(charted_cases(data, workload)[["case", "size", "series"]], on="case")
    host = _host_reference(data, workload)
    rows = []
    for copies, scopes in ((False, ("device", "operation")), (True, ("end_to_end",))):
        scope = next((scope for scope in scopes if (best["scope"] == scope).any()), "")
        for row in best[(best["scope"] == scope) & (best["cache"] == "hot")].to_dict("records"):
            of_host = data.rounds(workload, row["case"], "operation", "hot")
            reference = find_copy(of_host, host, "")
            if reference is None:
                continue
            own = data.rounds(workload, row["case"], row["scope"], row["cache"])[
                Copy(row["variant"], row["config"], int(row["gpus"]), 0)
            ]
            ratio = paired_ratio(of_host[reference], own, independent=True)
            rows.append(
                {
                    **{column: row[column] for column in columns if column in row}, "copies": copies,
                    "reference": host, "speedup": ratio.ratio, "low": ratio.low, "high": ratio.high, "n": ratio.n,
                    "paired": ratio.paired,
                }
            )  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def sizes_to_choose(frame: pd.DataFrame, workload: str) -> tuple[tuple[str, ...], str]:
    """Sizes that `with_and_without_copies` is shown for one by one, and the one to show first: that of the report, else the largest.

    Returns:
        No sizes where the workload has one series: then size is the axis.
    """
    sizes = tuple(frame.sort_values("size_rank", kind="stable")["size"].unique())
    if frame["series"].nunique() < 2:
        return (), ""
    published = figures.read(workload)["case"] if workload in figures.reports() else pd.Series(dtype=str)
    of_report = frame.loc[frame["case"].isin(published), "size"]
    return sizes, str(of_report.iloc[0]) if len(of_report) else sizes[-1]


def matrix_and_tensor(data: RunData) -> pd.DataFrame:
    """The tensor report's figure 5: a stack of matrices transposed with 8x8 and 32x32 tiles, and as a tensor with 8x8x8 tiles.

    Returns:
        Rows of `cells` in the first view, of the permutation (0,2,1) and by variant, config and size, with `size` and `size_value`
        (see `axes.charted_cases`) and `what` (`2-D`, `3-D` or `copy`). Empty where the run lacks one of the two kinds.
    """
    every = cells(data)
    found = timings(data, TENSOR)
    view = found[0] if found else Timing("", "")
    cases = charted_cases(data, TENSOR)
    cases = cases.loc[cases["series"] == "perm=021", ["case", "size", "size_value"]]
    rows = every[
        (every["workload"] == TENSOR) & (every["scope"] == view.scope) & (every["cache"] == view.cache) & (every["n"] > 0)
        & every["variant"].isin(MATRIX_AND_TENSOR)
    ].merge(cases, on="case")  # fmt: skip
    rows["what"] = rows["variant"].map(MATRIX_AND_TENSOR)
    if not {"2-D", "3-D"} <= set(rows["what"]):
        return rows.iloc[:0]
    return rows.sort_values(["what", "variant", "config", "size_value"], kind="stable").reset_index(drop=True)


def _host_reference(data: RunData, workload: str) -> str:
    """The host variant that speedups are counted from, as a machine without a GPU would choose it; empty where there is none."""
    found = baseline(data, workload, Timing("operation", "hot"), on_host=True)
    return found.variant if found else ""


def _linear(tile_zyx: Sequence[int], index: Sequence[int]) -> int:
    return (index[0] * tile_zyx[1] + index[1]) * tile_zyx[2] + index[2]


def _extra_passes(address: Address) -> float:
    threads = list(itertools.product(range(BLOCK[0]), range(BLOCK[1]), range(BLOCK[2])))
    passes = []
    for first in range(0, len(threads), WARP):
        words = {address(thread) for thread in threads[first : first + WARP]}
        passes.append(np.bincount([word % BANKS for word in words], minlength=BANKS).max() - 1)
    return float(np.mean(passes))
