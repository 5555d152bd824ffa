"""A comparison of two jobs as a table, Markdown, JSON and JUnit."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from warpladder.dashboard.compare.changes import BLIND
from warpladder.dashboard.compare.job_changes import GRAPHS, JobChange, JobComparison, JobData, unseen, where
from warpladder.dashboard.core.numbers import NOTHING, format_duration
from warpladder.dashboard.text.compare import Testcase, fact_lines, junit, markdown_head, ratio_text, row_text, titles
from warpladder.dashboard.text.formats import Comparison as Form
from warpladder.dashboard.text.formats import json_text
from warpladder.dashboard.ui.tables import markdown_table, markdown_text
from warpladder.dashboard.ui.text import plain_lines, plain_table
from warpladder.data.words import counted, cut, first_of

_HEADINGS: Final = ("verdict", "what", "rank", "A", "B", "B over A", "noise", "executions")
_MOST_ROWS: Final = 40
_MOST_NAMED: Final = 3
_MOST_LETTERS: Final = 90


@dataclass(frozen=True)
class JobGate:
    """The reasons for which a comparison fails.

    Attributes:
        above: a row fails where B is slower by more than this fraction.
        detect: see `job_changes.unseen`.
        partial: ranks that A alone has are no loss.
    """

    above: float = 0.0
    detect: float | None = None
    partial: bool = False

    def failures(self, comparison: JobComparison) -> tuple[JobChange, ...]:
        """The figures and kernels that are slower by more than the limit."""
        return tuple(each for each in comparison.changes if each.verdict == "slower" and each.ratio.value > 1 + self.above)

    def unseen(self, comparison: JobComparison) -> tuple[JobChange, ...]:
        """See `job_changes.unseen`."""
        return unseen(comparison, self.detect)

    def lines(self, comparison: JobComparison) -> list[str]:
        """A line for each reason for which the gate does not see."""
        lines, hidden = [], self.unseen(comparison)
        if hidden:
            blind = f"could not have shown {100 * (BLIND if self.detect is None else self.detect):g} %"
            what = "have no verdict" if all(each.verdict == "unknown" for each in hidden) else blind
            lines.append(
                f"NOT SEEN: {len(hidden)} of {len(comparison.changes)} rows {what}: {first_of(list(map(where, hidden)), _MOST_NAMED)}; "
                "profile more iterations"
            )
        if comparison.lost and not self.partial:
            lines.append(
                f"NOT SEEN: B has no profile of {counted(len(comparison.lost), 'rank')} of A ({first_of(comparison.lost, _MOST_NAMED)}); "
                "where that is meant, add --partial"
            )
        return lines


def render(comparison: JobComparison, a: JobData, b: JobData, gate: JobGate, form: Form) -> str:
    """A comparison as text that ends with a line feed.

    Args:
        gate: which rows fail.
        form: a table and Markdown list every figure, and the kernels that became slower or faster or that the gate cannot see; JSON and JUnit
            list every row.
    """
    kernels = [*_changed(comparison), *(each for each in gate.unseen(comparison) if each.kind != "figure")]
    rows = list(map(_row, (*comparison.figures, *kernels[:_MOST_ROWS])))
    below = [*_alone(comparison), *_left_out(kernels), *gate.lines(comparison)]
    match form:
        case "table":
            above = [*titles(a.info, b.info), *_lines(comparison)]
            return plain_lines([*above, *plain_table(_HEADINGS, rows), *below, comparison.sentence])
        case "markdown":
            points = (f"- {markdown_text(line)}" for line in (*_lines(comparison), *below))
            head = markdown_head(comparison.sentence, a.info, b.info)
            return plain_lines([*head, *points, "", *markdown_table(_HEADINGS, rows)])
        case "json":
            failed, hidden = (set(map(id, each(comparison))) for each in (gate.failures, gate.unseen))
            content = {
                "a": a.info["run_id"],
                "b": b.info["run_id"],
                "sentence": comparison.sentence,
                "compared": comparison.pairing,
                "shift": comparison.shift,
                "differences": [asdict(fact) for fact in comparison.facts],
                "new": [asdict(each) for each in comparison.new],
                "gone": [asdict(each) for each in comparison.gone],
                "changes": [
                    {**asdict(each), "failed": id(each) in failed, "unseen": id(each) in hidden} for each in comparison.changes
                ],
                "gate": gate.lines(comparison),
            }
            return json_text(content)
        case "junit":
            return junit(a.info, b.info, list(_testcases(comparison, gate)), ("failure", "error"))


def _testcases(comparison: JobComparison, gate: JobGate) -> Iterator[Testcase]:
    if comparison.lost and not gate.partial:
        yield Testcase("ranks", "ranks of A", "error", message=gate.lines(comparison)[-1])
    failed, hidden = (set(map(id, each(comparison))) for each in (gate.failures, gate.unseen))
    for change in comparison.changes:
        tag, text, message = ("system-out", "unknown", "") if change.verdict == "unknown" else ("", "", "")
        if id(change) in failed:
            tag, text, message = "failure", row_text(_HEADINGS, _row(change)), f"slower: {ratio_text(change.ratio)}"
        elif id(change) in hidden:
            tag, text, message = "error", "", f"not seen: {ratio_text(change.ratio) if change.ratio.known else 'unknown'}"
        kind = "figures" if change.kind == "figure" else "kernels"
        yield Testcase(kind, where(change), tag, text, message, change.b_ns)


def _lines(comparison: JobComparison) -> list[str]:
    """The differences between the recordings, what is compared, and the common shift."""
    lines = [*fact_lines(comparison.facts), f"compared: {comparison.pairing}"]
    if any(each.name == GRAPHS for each in comparison.figures):
        lines.append(
            "CUDA graphs were traced as a whole: what computes and communicates in them is not known, and not compared"
        )
    if not math.isnan(comparison.shift):
        lines.append(f"median of the kernels, B over A: {comparison.shift:.3f}")
    return lines


def _changed(comparison: JobComparison) -> list[JobChange]:
    return [each for each in comparison.kernels if each.verdict in ("slower", "faster")]


def _row(change: JobChange) -> Sequence[str]:
    counts = tuple(f"{count:.4g}" for count in (change.a_count, change.b_count))
    return (
        change.verdict,
        cut(change.name, _MOST_LETTERS),
        "all" if change.rank is None else str(change.rank),
        format_duration(change.a_ns),
        format_duration(change.b_ns),
        ratio_text(change.ratio) if change.ratio.known else NOTHING,
        NOTHING if change.kind == "figure" else f"{100 * (change.noise - 1):.1f} %",
        NOTHING if change.kind == "figure" else " → ".join(counts) if change.recounted else counts[0],
    )


def _left_out(kernels: Sequence[JobChange]) -> list[str]:
    """A line for the rows of kernels that are not shown."""
    more = len(kernels) - _MOST_ROWS
    return [f"{more} more kernels changed or could not be judged; --format json lists them"] if more > 0 else []


def _alone(comparison: JobComparison) -> list[str]:
    """A line each for kernels with other numbers of executions, and for those of one job alone."""
    lines = []
    recounted = [each for each in comparison.kernels if each.recounted and each.verdict in ("tied", "unknown")]
    if recounted:
        texts = [f"{cut(each.name, _MOST_LETTERS)} {each.a_count:.4g} → {each.b_count:.4g}" for each in recounted]
        lines.append(f"other numbers of executions: {first_of(texts, _MOST_NAMED)}")
    for text, kernels in (("new in B", comparison.new), ("gone in B", comparison.gone)):
        if kernels:
            texts = [
                f"{cut(each.name, _MOST_LETTERS)} ({format_duration(each.ns)}, {100 * each.share:.2g} % of busy)"
                for each in kernels
            ]
            lines.append(f"{text}: {first_of(texts, _MOST_NAMED)}")
    return lines
