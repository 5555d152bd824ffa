"""A comparison of two runs as a table, Markdown, JSON and JUnit."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree

from warpladder.dashboard.compare.changes import BLIND, Change, Comparison, LostCell, loss_lines, sentence, unseen
from warpladder.dashboard.compare.differences import Fact
from warpladder.dashboard.compare.within_run import with_speedups
from warpladder.dashboard.core.cell import Cell, Estimate, name_of, name_on, records
from warpladder.dashboard.core.cells import best_config, cells, in_timing, timings
from warpladder.dashboard.core.numbers import NOTHING, format_duration, format_ends, format_over
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text.formats import Comparison as Form
from warpladder.dashboard.text.formats import json_text
from warpladder.dashboard.ui.tables import markdown_table, markdown_text
from warpladder.dashboard.ui.text import plain_lines, plain_table
from warpladder.data.files import one_line
from warpladder.data.names import Asked
from warpladder.data.words import counted, first_of

HEADINGS: Final = (
    "verdict",
    "workload",
    "case",
    "timing",
    "variant",
    "A",
    "B",
    "B over A",
    "unchanged",
    "noise",
)
_MOST_ROWS: Final = 40
_MOST_NAMED: Final = 3
LISTED: Final = ("slower", "faster", "drifted")


@dataclass(frozen=True)
class Gate:
    """The reasons for which a comparison fails.

    Attributes:
        above: a cell fails where B is slower by more than this fraction.
        detect: the slowdown that every cell must be able to show, a fraction; None where no sensitivity is asked for.
        allowed: what may differ of what was asked of the variants.
    """

    above: float = 0.0
    detect: float | None = None
    allowed: tuple[Asked, ...] = ()

    def failures(self, comparison: Comparison) -> tuple[Change | LostCell, ...]:
        """The cells that are wrong or lost, and those that are slower by more than the limit."""
        slower = (change for change in comparison.of("slower") if change.ratio.value > 1 + self.above)
        return (*(each for each in comparison.lost if each.fails), *slower)

    def other_questions(self, comparison: Comparison) -> tuple[Fact, ...]:
        """The demands that differ in B, and may not."""
        return tuple(fact for fact in comparison.facts if fact.asked and fact.asked not in self.allowed)

    def unseen(self, comparison: Comparison) -> tuple[Change, ...]:
        """See `changes.unseen`."""
        return unseen(comparison.changes, self.detect)

    def lines(self, comparison: Comparison) -> list[str]:
        """A line for each reason to fail that is no row of the table."""
        lines = [
            f"FAILED: {fact.what} differs; where that is meant, add --allow {fact.asked}"
            for fact in self.other_questions(comparison)
        ]
        cells = self.unseen(comparison)
        names = [f"{each.workload} {each.case} {each.name}" for each in cells]
        if cells:
            blind = f"could not have shown {100 * (BLIND if self.detect is None else self.detect):g} %"
            what = "have no verdict" if all(each.verdict == "unknown" for each in cells) and self.detect is None else blind
            lines.append(
                f"NOT SEEN: {len(cells)} of {len(comparison.changes)} cells {what}: {first_of(names, _MOST_NAMED)}; "
                "record in more --processes and for more --seconds, with some variants that do not change"
            )
        return lines


def render(comparison: Comparison, a: RunData, b: RunData, gate: Gate, form: Form) -> str:
    """A comparison as text that ends with a line feed.

    Args:
        a, b: the two runs.
        gate: which cells fail.
        form: a table and Markdown list the cells that became slower or faster, the slowest first, those that drifted, those that the gate
            cannot see, and what was lost; JSON and JUnit list every cell.
    """
    listed = (*comparison.of(*LISTED), *gate.unseen(comparison))
    rows = [row(change) for change in listed[:_MOST_ROWS]]
    told = sentence(comparison.changes, comparison.lost)
    more = len(listed) - _MOST_ROWS
    left_out = [f"{more} more cells changed or could not be judged; --format json lists them"] if more > 0 else []
    match form:
        case "table":
            above = [*fact_lines(comparison.facts), *changed_sources(comparison)]
            below = [*alone(comparison), *left_out, *gate.lines(comparison), told]
            return plain_lines([*titles(a.info, b.info), *above, *plain_table(HEADINGS, rows), *below])
        case "markdown":
            facts = [f"- {'**warning**: ' if fact.warning else ''}{markdown_text(fact.text)}" for fact in comparison.facts]
            points = (*changed_sources(comparison), *alone(comparison), *gate.lines(comparison))
            lines = [*markdown_head(told, a.info, b.info), *facts, *(f"- {markdown_text(line)}" for line in points)]
            table = ["", *markdown_table(HEADINGS, rows)] if rows else []
            return plain_lines([*lines, *table, "", *left_out, *_commands(str(a.info["command"]), str(b.info["command"]))])
        case "json":
            return json_text({"a": a.info["run_id"], "b": b.info["run_id"], "sentence": told, **_facts(comparison, gate)})
        case "junit":
            return junit(a.info, b.info, list(_testcases(comparison, gate)), ("failure", "error", "skipped"))


def _commands(*commands: str) -> list[str]:
    # A fence ends at a line of as many marks.
    fence = "`" * max(3, 1 + max(len(marks) for command in commands for marks in re.findall("`+", command) or [""]))
    different = list(dict.fromkeys(commands))
    return [f"To record {'both' if different[1:] else 'it'} again:", "", f"{fence}sh", *different, fence]


def _facts(comparison: Comparison, gate: Gate) -> dict[str, Any]:
    failed = set(map(id, gate.failures(comparison)))
    hidden = set(map(id, gate.unseen(comparison)))
    return {
        "differences": [asdict(fact) for fact in comparison.facts],
        "changed_sources": comparison.changed_sources,
        "lost": [{**asdict(each), "reason": each.reason, "failed": each.fails} for each in comparison.lost],
        "new": [
            {"workload": workload, "case": case, "cell": name, **asdict(timing)}
            for workload, case, name, timing in comparison.new
        ],
        "changes": [
            {**asdict(each), "failed": id(each) in failed, "unseen": id(each) in hidden} for each in comparison.changes
        ],
        "gate": gate.lines(comparison),
    }


class Testcase(NamedTuple):
    """A test case of a JUnit file, with the element that tells how it ended: none where it passed."""

    classname: str
    name: str
    tag: str = ""
    text: str = ""
    message: str = ""
    time_ns: float = math.nan


def _testcases(comparison: Comparison, gate: Gate) -> Iterator[Testcase]:
    for fact in gate.other_questions(comparison):
        yield Testcase("asked", fact.what, "failure", message=f"{fact.a} → {fact.b}")
    for each in comparison.lost:
        text = f"A: {format_duration(each.a_ns.value)}"
        yield Testcase(each.workload, _testname(each), "failure" if each.fails else "skipped", text, each.reason)
    failed = set(map(id, gate.failures(comparison)))
    hidden = set(map(id, gate.unseen(comparison)))
    for change in comparison.changes:
        tag, text, message, ratio = "", "", "", ratio_text(change.ratio)
        if id(change) in failed:
            tag, text, message = "failure", row_text(HEADINGS, row(change)), f"slower: {ratio}"
        elif id(change) in hidden:
            tag, message = "error", f"not seen: {ratio}, noise {noise_text(change)}"
        elif change.verdict == "drifted":
            tag, text = "system-out", f"{change.verdict}: {ratio}"
        yield Testcase(change.workload, _testname(change), tag, text, message, change.b_ns.value)


def _testname(cell: Change | LostCell) -> str:
    return f"{cell.case} {cell.name} {cell.timing.scope} {cell.timing.cache}"


def row_text(headings: Sequence[str], row: Sequence[str]) -> str:
    """`verdict: slower; workload: conv2d;`: a row of a table on one line."""
    return " ".join(f"{heading}: {cell};" for heading, cell in zip(headings, row, strict=True))


def junit(a: Mapping[str, Any], b: Mapping[str, Any], cases: Sequence[Testcase], tags: Sequence[str]) -> str:
    """A suite of test cases as XML, without the characters that XML may not hold.

    Args:
        a, b: rows of table `run`.
        tags: the elements whose number the suite has.
    """
    counts, plural = Counter(case.tag for case in cases), {"failure": "failures", "error": "errors"}
    suite = ElementTree.Element("testsuite", name=one_line(" to ".join(_names(a, b))), tests=str(len(cases)))
    for tag in tags:
        suite.set(plural.get(tag, tag), str(counts[tag]))
    for case in cases:
        element = ElementTree.SubElement(suite, "testcase", classname=one_line(case.classname), name=one_line(case.name))
        if not math.isnan(case.time_ns):
            element.set("time", f"{case.time_ns / 1e9:.9f}")
        if case.tag:
            result = ElementTree.SubElement(element, case.tag, {"message": one_line(case.message)} if case.message else {})
            result.text = one_line(case.text) or None
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def titles(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Two lines with the titles of the runs."""
    one, other = _names(a, b)
    return [f"A: {one}", f"B: {other}"]


def _names(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, str]:
    """The titles of two runs. Two versions in one run have its id once."""
    in_one_run = a["run_id"] == b["run_id"] and a["label"] and a["label"] != b["label"]
    return str(a["label"]) if in_one_run else title(a), title(b)


def markdown_head(told: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """The sentence and the titles of a comparison in Markdown."""
    one, other = map(markdown_text, titles(a, b))
    return [f"**{markdown_text(told)}**", "", f"{one}  ", f"{other}", ""]


def title(info: Mapping[str, Any]) -> str:
    """A run by its table `run`: its label, if it has one, and its id."""
    label = str(info["label"] or "")
    return f"{label} ({info['run_id']})" if label else str(info["run_id"])


def fact_lines(facts: Iterable[Fact]) -> list[str]:
    """A line for each difference between the recordings."""
    return [f"{'warning: ' if fact.warning else ''}{fact.text}" for fact in facts]


def changed_sources(comparison: Comparison) -> list[str]:
    """A line that names the variants whose sources differ, if there are any."""
    names = ", ".join(f"{workload} {variant}" for workload, variant in comparison.changed_sources)
    return [f"sources that differ: {names}"] if names else []


def row(change: Change) -> Sequence[str]:
    """The texts of a change under `HEADINGS`."""
    of_a, of_b = name_of(*change.of_a), name_of(change.variant, change.config)
    return (
        change.verdict,
        change.workload,
        change.case,
        f"{change.timing.scope} {change.timing.cache}",
        change.name if of_a == of_b else f"{of_a} → {change.name}",
        format_duration(change.a_ns.value),
        format_duration(change.b_ns.value),
        ratio_text(change.ratio),
        NOTHING if math.isnan(change.shift) else f"{change.shift:.3f}",
        noise_text(change),
    )


def noise_text(change: Change) -> str:
    """The noise in percent; a dash where it is not known."""
    return NOTHING if math.isnan(change.noise) else f"{100 * (change.noise - 1):.1f} %"


def ratio_text(ratio: Estimate) -> str:
    """`1.043 (1.040 to 1.046)`."""
    return f"{ratio.value:.3f} ({format_ends(ratio, lambda value: f'{value:.3f}')})"


def alone(comparison: Comparison) -> list[str]:
    """A line for each reason for which B lacks cells of A, and one that names the new cells of B."""
    lines = _losses(comparison)
    if comparison.new:
        lines.append(f"new in B: {first_of((' '.join(each[:3]) for each in comparison.new), _MOST_NAMED)}")
    return lines


def _losses(comparison: Comparison) -> list[str]:
    return [f"{'FAILED' if fails else 'not compared'}: {line}" for fails, line in loss_lines(comparison.lost)]


#: The headings of `brief`.
_BRIEF: Final = ("variant", "verdict", "case", "last", "now", "now over last", "noise", "over the baseline")
_MOST_BRIEF: Final = 16
_CELL: Final = ["workload", "case", "variant"]


def brief(comparison: Comparison, last: RunData, now: RunData) -> str:
    """The present version beside the last one, which ran in its rounds, as text that ends with a line feed.

    It has a row for each case of the variants whose code differs, by their fastest config, whatever the verdict: `new` where the last
    version has no times, and `mended` where it failed.
    """
    columns = ["workload", "variant", "source_sha256"]
    alike = set(last.variants[columns].itertuples(index=False, name=None))
    differ = {key[:2] for key in now.variants[columns].itertuples(index=False, name=None) if key not in alike}
    changes = {(each.workload, each.case, each.variant): each for each in comparison.changes}
    failed = set(last.results.loc[~last.results["status"].isin(["ok", "skipped"]), _CELL].itertuples(index=False, name=None))
    shown: list[Change] = []
    rows: list[tuple[str, ...]] = []
    for cell in (each for each in _with_ratios(now) if (each.workload, each.variant) in differ):
        change = changes.get(key := (cell.workload, cell.case, cell.variant))
        shown += [change] if change else []
        name = f"{f'{cell.workload} ' if len(now.workloads) > 1 else ''}{name_on(cell.variant, cell.config, cell.gpus, on_host=cell.kind == 'host')}"
        of_last = (
            (format_duration(change.a_ns.value), ratio_text(change.ratio), noise_text(change)) if change else (NOTHING,) * 3
        )
        verdict = "mended" if key in failed else change.verdict if change else "new"
        over = format_over(cell.speedup.value, cell.variant, cell.baseline, cell.verdict)
        rows.append((name, verdict, cell.case, of_last[0], format_duration(cell.median_ns.value), *of_last[1:], over))
    more = [f"and {counted(len(rows) - _MOST_BRIEF, 'more row')}"] if len(rows) > _MOST_BRIEF else []
    told = [sentence([each for each in comparison.changes if each in shown])] if shown else []
    return plain_lines([*plain_table(_BRIEF, rows[:_MOST_BRIEF]), *more, *_losses(comparison), *told])


def _with_ratios(data: RunData) -> Iterator[Cell]:
    """The cells of each workload in its first timing, by the fastest config of a variant, with the columns of `with_speedups`."""
    for workload in data.workloads:
        for timing in timings(data, workload)[:1]:
            fastest = best_config(in_timing(cells(data), workload, timing)).reset_index(drop=True)
            yield from records(with_speedups(data, workload, timing, fastest))
