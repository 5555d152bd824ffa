"""The tensor report's table 2: the computed bank conflicts of its tiles."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, Look, blank
from warpladder.data import figures

BANKS: Final = 32
WARP: Final = 32
BLOCK: Final = (8, 8, 8)
DEFINITION: Final = (
    "Our count is the extra passes of a warp through the banks (the words of the busiest bank, less one), averaged "
    "over the 16 warps of an 8x8x8 block. The report does not say what it counts. Its padded tiles for (1,2,0) and (2,0,1) "
    "have no conflicts for the inverse permutation. For the store of its listing 0.4.4, the two tiles must be swapped."
)
WORKLOAD: Final = "tensor_transpose"

Address = Callable[[tuple[int, int, int]], int]


def bank_conflicts(tile_zyx: Sequence[int], perm: Sequence[int]) -> float:
    """The extra passes of a warp's permuted store to shared memory, averaged over the warps of an 8x8x8 block.

    Thread (z, y, x) stores to `tile[t[perm[0]]][t[perm[1]]][t[perm[2]]]` with t = (z, y, x), as in listing 0.4.4 of the tensor
    report. Shared memory has 32 banks of 4 bytes. A warp's store takes one pass for each word of the busiest bank.

    Args:
        tile_zyx: allocated extents of the shared array, such as (8, 12, 9) for a padded one.
        perm: the permutation, such as (2, 1, 0).
    """
    return _extra_passes(lambda thread: _linear(tile_zyx, [thread[axis] for axis in perm]))


def load_conflicts(tile_zyx: Sequence[int]) -> float:
    """The extra passes of the load after the store. In it, thread (z, y, x) reads `tile[z][y][x]`."""
    return _extra_passes(lambda thread: _linear(tile_zyx, thread))


def bank_conflict_table() -> pd.DataFrame:
    """The tensor report's table 2 beside the computed conflicts.

    Returns:
        One row for each (permutation, tile) of the report: `perm`, `tile` (such as `8x8x12`), `padded`, `published`, and as
        computed `store` (see `bank_conflicts`), `store_inverse` (of the inverse permutation) and `load` (see `load_conflicts`).
    """
    published = figures.read(WORKLOAD)
    rows = published[published["quantity"] == "bank_conflicts"]
    table = []
    for row in rows.to_dict("records"):
        digits = row["case"].rsplit("perm=", 1)[1]
        perm = [int(axis) for axis in digits]
        tile = [int(extent) for extent in row["config"].removeprefix("tile=").split("x")]
        table.append(
            {
                "perm": digits,
                "tile": "x".join(map(str, tile)),
                "padded": not row["variant"].startswith("F"),
                "published": row["value"],
                "store": bank_conflicts(tile, perm),
                "store_inverse": bank_conflicts(tile, [perm.index(axis) for axis in range(3)]),
                "load": load_conflicts(tile),
            }
        )
    return pd.DataFrame(table)


def _linear(tile_zyx: Sequence[int], index: Sequence[int]) -> int:
    return (index[0] * tile_zyx[1] + index[1]) * tile_zyx[2] + index[2]


def _extra_passes(address: Address) -> float:
    threads = list(itertools.product(range(BLOCK[0]), range(BLOCK[1]), range(BLOCK[2])))
    passes = []
    for first in range(0, len(threads), WARP):
        words = {address(thread) for thread in threads[first : first + WARP]}
        passes.append(np.bincount([word % BANKS for word in words], minlength=BANKS).max() - 1)
    return float(np.mean(passes))


_CONFLICT_COLUMNS: Final = {
    "published": "as published",
    "store": "store, ours",
    "store_inverse": "store, inverse<br>permutation",
    "load": "load, ours",
}


def chart(frame: pd.DataFrame, look: Look) -> Chart:
    """Heat map of `query.bank_conflict_table`."""
    frame = frame.sort_values("padded", kind="stable")
    figures = frame[list(_CONFLICT_COLUMNS)].to_numpy(dtype=float)
    rows = [f"({', '.join(row['perm'])})  {row['tile'].replace('x', '×')}" for row in frame.to_dict("records")]
    places = np.arange(len(rows)) + 0.6 * frame["padded"].to_numpy(dtype=float)
    figure = blank(look.theme, 30 * len(rows) + 110)
    light = look.theme == "light"
    scale = [[0, "#eef2f7" if light else "#1d2127"], [1, "#D55E00"]]
    for padded in (False, True):
        part = (frame["padded"] == padded).to_numpy()
        figure.add_heatmap(
            z=figures[part],
            y=places[part],
            x=list(_CONFLICT_COLUMNS.values()),
            zmin=0,
            zmax=16,
            colorscale=scale,
            showscale=False,
            xgap=3,
            ygap=3,
            text=[[f"{value:g}" for value in row] for row in figures[part]],
            texttemplate="%{text}",
            hovertemplate="%{x}: %{z:.3g}<extra></extra>",
        )
    figure.update_yaxes(
        tickvals=places,
        ticktext=rows,
        autorange="reversed",
        showgrid=False,
        zeroline=False,
        ticks="",
        tickfont={"color": look.tones.text},
    )
    figure.update_xaxes(side="top", showgrid=False, ticks="")
    clean = int((frame.loc[frame["padded"], "store"] == 0).sum())
    title = (
        f"The report's padded tiles leave no bank conflict in the store of {clean} of {int(frame['padded'].sum())} permutations"
    )
    note = (
        "Computed, not measured; shared memory of 32 banks of 4 bytes; tiles as depth × height × width. Plain tiles are "
        f"above, padded tiles below. {DEFINITION}"
    )
    return Chart("bank-conflicts", title, figure, frame, note)


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    if WORKLOAD in data.workloads:
        yield chart(bank_conflict_table(), look)
