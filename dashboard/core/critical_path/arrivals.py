"""When the ranks arrived at the collectives of an iteration."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from warpladder.dashboard.core.critical_path.spans import Ranks, Span


@dataclass(frozen=True)
class Arrivals:
    """The arrivals at matched collectives that were under way in a span.

    Attributes:
        rank, time: by match, the rank that came last, and when, in ns on the job's clock.
        rows: `rank`, `match`, `wait_ns` until the last arrival, and `late`: the rank was not surely earlier than the last.
    """

    rank: dict[int, int]
    time: dict[int, int]
    rows: pd.DataFrame

    @classmethod
    def of(cls, ranks: Ranks, span: Span) -> "Arrivals":
        """The arrivals of all ranks."""
        rows = ranks.collectives
        rows = rows[rows["match"].notna() & (rows["finish_ns"] >= span.start_ns) & (rows["arrival_ns"] <= span.end_ns)]
        rows = rows[["rank", "match", "arrival_ns"]].astype("int64")
        last = rows.sort_values("arrival_ns", kind="stable").drop_duplicates("match", keep="last").set_index("match")
        wait, by = rows["match"].map(last["arrival_ns"]) - rows["arrival_ns"], rows["match"].map(last["rank"])
        late = wait <= ranks.doubt_ns(rows["rank"].to_numpy(), by.to_numpy())
        rank, time = (dict(zip(last.index.tolist(), last[name].tolist(), strict=True)) for name in ("rank", "arrival_ns"))
        return cls(rank, time, rows.assign(wait_ns=wait, late=late))

    def covering(self, chosen: list[int]) -> list[int]:
        """Ranks of which one is late at each collective: the given ones, and few others."""
        left, every = self.rows[self.rows["late"]], list(chosen)
        left = left[~left["match"].isin(left.loc[left["rank"].isin(every), "match"])]
        while len(left):
            every.append(int(np.bincount(left["rank"]).argmax()))
            left = left[~left["match"].isin(left.loc[left["rank"] == every[-1], "match"])]
        return every
