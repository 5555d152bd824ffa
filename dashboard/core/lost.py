"""The cells that one run has and a later one lost: wrong, crashed, skipped, or not recorded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from warpladder.dashboard.core.cell import name_on
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.readings import Timed
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.timing import Timing
from warpladder.data.names import Source

#: What became of a cell that B has no verdict about.
LOST = "lost"
#: That of a cell whose times in B cannot be true.
DISTRUSTED = "distrusted"
_SKIPPED = "skipped"
_MOST_NAMED = 3


@dataclass(frozen=True)
class Lost:
    """A cell that ended well in A and has no times in B.

    Attributes:
        variant, config: of A.
        a_ns: median of A with its interval.
        status: of B, such as `wrong_result`; `lost` where B has no verdict, and `distrusted` where its work was not done.
        detail: why.
        fails: whether a gate fails on it.
    """

    workload: str
    case: str
    timing: Timing
    variant: str
    config: str
    gpus: int
    a_ns: Estimate
    status: str
    detail: str
    fails: bool

    @property
    def judged(self) -> bool:
        """Whether B has a verdict about the cell."""
        return self.status != LOST

    @property
    def name(self) -> str:
        """See `name_on`."""
        return name_on(self.variant, self.config, self.gpus)

    @property
    def reason(self) -> str:
        """`wrong_result: relative error 0.3`; `lost: not recorded in B`."""
        return f"{self.status}: {self.detail}" if self.detail else self.status


def not_done(cell: Timed, sources: Iterable[str]) -> Lost:
    """A cell of A whose work was not done in B, or not waited for, by these sources of findings."""
    workload, case, scope, cache, _, _, gpus = cell.key
    how = Timing(scope, cache)
    return Lost(
        workload, case, how, cell.variant, cell.config, gpus, cell.median_ns, DISTRUSTED, ", ".join(sources), fails=True
    )


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What B tells about cells that it has no times of.

    Attributes:
        results: workload, variant, case -> config -> status and detail.
        data: of B.
        partial: B recorded a part of A, so that a cell without a verdict is not lost.
    """

    results: Mapping[tuple[str, str, str], Mapping[str, tuple[str, str]]]
    data: RunData
    partial: bool

    @classmethod
    def of(cls, data: RunData, *, partial: bool) -> "Verdicts":
        found: dict[tuple[str, str, str], dict[str, tuple[str, str]]] = {}
        columns = ["workload", "variant", "case", "config", "status", "detail"]
        for workload, variant, case, config, status, detail in (
            data.results[columns].fillna("").itertuples(index=False, name=None)
        ):
            found.setdefault((workload, variant, case), {})[config] = status, detail
        return cls(found, data, partial)

    def about(self, cell: Timed, of_b: str, *, any_config: bool, other_variant: bool) -> Lost:
        """What became of a cell of A.

        Args:
            of_b: the variant of B that it is compared with; empty for the one of its name.
            any_config: the fastest configs are compared, not equal ones.
            other_variant: two variants are compared: one that cannot run, or was not asked for in a case, is no loss.
        """
        workload, case, scope, cache, _, _, gpus = cell.key
        variant = of_b or cell.variant
        every = self.results.get((workload, variant, case), {})
        asked = [verdict for config, verdict in every.items() if any_config or config == cell.config]
        bad = next(((status, detail) for status, detail in asked if status != "ok"), None)
        status, detail = bad or (LOST, self._why(workload, variant, case, Timing(scope, cache), timed=bool(asked)))
        fails = status not in (LOST, _SKIPPED) or not (other_variant or (self.partial and status == LOST))
        return Lost(
            workload, case, Timing(scope, cache), cell.variant, cell.config, gpus, cell.median_ns, status, detail, fails
        )

    def _why(self, workload: str, variant: str, case: str, timing: Timing, *, timed: bool) -> str:
        if timed:
            return f"B has no times of {timing.scope} {timing.cache}"
        if workload not in self.data.workloads:
            return "B has no such workload"
        variants = self.data.variants
        if variant not in set(variants.loc[variants["workload"] == workload, "variant"]):
            return "B has no such variant"
        told = self.data.diagnostics
        unreached = told.loc[told["source"] == Source.NOT_REACHED, "text"]
        if len(unreached) and not any((workload, case) == (of, at) for of, _, at in self.results):
            return str(unreached.iloc[0])
        return "not recorded in B"


def told(lost: Iterable[Lost]) -> list[tuple[bool, str]]:
    """A line for each reason in each workload, with its first cells; and whether a gate fails on it.

    `conv2d n=512 v03_tile, n=1024 v03_tile and 4 more: wrong_result: relative error 0.3`
    """
    together: dict[tuple[bool, str, str], list[str]] = {}
    for each in lost:
        together.setdefault((each.fails, each.workload, each.reason), []).append(f"{each.case} {each.name}")
    lines = []
    for (fails, workload, reason), every in together.items():
        cells = list(dict.fromkeys(every))
        more = f" and {len(cells) - _MOST_NAMED} more" if len(cells) > _MOST_NAMED else ""
        lines.append((fails, f"{workload} {', '.join(cells[:_MOST_NAMED])}{more}: {reason}"))
    return lines
