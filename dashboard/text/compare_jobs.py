"""A comparison of two jobs as a table, Markdown, JSON and JUnit."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

from warpladder.dashboard.compare.job_changes import GRAPHS, JobChange, JobComparison, JobData, where
from warpladder.dashboard.core.numbers import NOTHING, format_duration
from warpladder.dashboard.text.compare import Testcase, fact_lines, junit, markdown_head, ratio_text, row_text, titles
from warpladder.dashboard.text.formats import Comparison as Form
from warpladder.dashboard.text.formats import json_text
from warpladder.dashboard.ui.tables import markdown_table, markdown_text
from warpladder.dashboard.ui.text import plain_lines, plain_table
from warpladder.data.words import cut, first_of

_HEADINGS: Final = ("verdict", "what", "rank", "A", "B", "B over A", "noise", "executions")
_MOST_ROWS: Final = 40
_MOST_NAMED: Final = 3
_MOST_LETTERS: Final = 90


def render(comparison: JobComparison, a: JobData, b: JobData, limit: float, form: Form) -> str:
    """A comparison as text that ends with a line feed.

    Args:
        limit: a row fails where B is slower by more than this fraction.
        form: a table and Markdown list every figure, and the kernels that became slower or faster; JSON and JUnit list every row.
    """
    rows = list(map(_row, (*comparison.figures, *_changed(comparison)[:_MOST_ROWS])))
    match form:
        case "table":
            above = [*titles(a.info, b.info), *_lines(comparison)]
            return plain_lines([*above, *plain_table(_HEADINGS, rows), *_alone(comparison), comparison.sentence])
        case "markdown":
            points = (f"- {markdown_text(line)}" for line in (*_lines(comparison), *_alone(comparison)))
            head = markdown_head(comparison.sentence, a.info, b.info)
            return plain_lines([*head, *points, "", *markdown_table(_HEADINGS, rows)])
        case "json":
            failed = set(map(id, failures(comparison, limit)))
            content = {
                "a": a.info["run_id"],
                "b": b.info["run_id"],
                "sentence": comparison.sentence,
                "compared": comparison.pairing,
                "shift": comparison.shift,
                "differences": [asdict(fact) for fact in comparison.facts],
                "new": [asdict(each) for each in comparison.new],
                "gone": [asdict(each) for each in comparison.gone],
                "changes": [{**asdict(each), "failed": id(each) in failed} for each in comparison.changes],
            }
            return json_text(content)
        case "junit":
            return junit(a.info, b.info, list(_testcases(comparison, limit)), ("failure",))


def _testcases(comparison: JobComparison, limit: float) -> Iterator[Testcase]:
    failed = set(map(id, failures(comparison, limit)))
    for change in comparison.changes:
        tag, text, message = ("system-out", "unknown", "") if change.verdict == "unknown" else ("", "", "")
        if id(change) in failed:
            tag, text, message = "failure", row_text(_HEADINGS, _row(change)), f"slower: {ratio_text(change.ratio)}"
        kind = "figures" if change.kind == "figure" else "kernels"
        yield Testcase(kind, where(change), tag, text, message, change.b_ns)


def failures(comparison: JobComparison, limit: float) -> tuple[JobChange, ...]:
    """The figures and kernels that are slower by more than the limit, a fraction."""
    return tuple(each for each in comparison.changes if each.verdict == "slower" and each.ratio.value > 1 + limit)


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


def _alone(comparison: JobComparison) -> list[str]:
    """A line each for the rows that are not shown, for kernels with other numbers of executions, and for those of one job alone."""
    lines = []
    if (more := len(_changed(comparison)) - _MOST_ROWS) > 0:
        lines.append(f"{more} more kernels changed; --format json lists them")
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
