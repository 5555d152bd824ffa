"""A comparison of two runs as a table, Markdown, JSON and JUnit."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from xml.etree import ElementTree

from warpladder.dashboard.compare.changes import BLIND, Change, Comparison, LostCell, loss_lines, sentence, unseen
from warpladder.dashboard.compare.differences import Fact
from warpladder.dashboard.core.cell import Estimate, name_of
from warpladder.dashboard.core.numbers import NOTHING, format_duration, format_ends
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text.formats import Comparison as Form
from warpladder.dashboard.text.formats import json_text
from warpladder.dashboard.ui.tables import markdown_table, markdown_text
from warpladder.dashboard.ui.text import plain_lines, plain_table
from warpladder.data.files import one_line
from warpladder.data.names import Asked
from warpladder.data.words import first_of

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
                "record both runs in more --processes and for more --seconds, with some variants that do not change"
            )
        return lines


def render(comparison: Comparison, a: RunData, b: RunData, gate: Gate, form: Form) -> str:
    """A comparison as text that ends with a line feed.

    Args:
        a, b: the two runs.
        gate: which cells fail.
        form: a table and Markdown list the cells that became slower or faster, the slowest first, those that drifted, and what was lost;
            JSON and JUnit list every cell.
    """
    return _RENDERERS[form](comparison, a, b, gate)


def _table(comparison: Comparison, a: RunData, b: RunData, gate: Gate) -> str:
    lines = [f"A: {title(a.info)}", f"B: {title(b.info)}"]
    lines += [*fact_lines(comparison.facts), *changed_sources(comparison), *plain_table(HEADINGS, _rows(comparison))]
    ends = (*_left_out(comparison), *gate.lines(comparison), sentence(comparison.changes, comparison.lost))
    return plain_lines((*lines, *alone(comparison), *ends))


def _markdown(comparison: Comparison, a: RunData, b: RunData, gate: Gate) -> str:
    summary = markdown_text(sentence(comparison.changes, comparison.lost))
    lines = [f"**{summary}**", "", f"A: {markdown_text(title(a.info))}  ", f"B: {markdown_text(title(b.info))}", ""]
    lines += [f"- {'**warning**: ' if fact.warning else ''}{markdown_text(fact.text)}" for fact in comparison.facts]
    lines += [
        f"- {markdown_text(line)}" for line in (*changed_sources(comparison), *alone(comparison), *gate.lines(comparison))
    ]
    if rows := _rows(comparison):
        lines += ["", *markdown_table(HEADINGS, rows)]
    commands = [str(a.info["command"]), str(b.info["command"])]
    # A fence ends at a line of as many marks.
    fence = "`" * max(3, 1 + max(len(marks) for command in commands for marks in re.findall("`+", command) or [""]))
    lines += ["", *_left_out(comparison), "To record both again:", "", f"{fence}sh", *commands, fence]
    return plain_lines(lines)


def _json(comparison: Comparison, a: RunData, b: RunData, gate: Gate) -> str:
    failed = set(map(id, gate.failures(comparison)))
    hidden = set(map(id, gate.unseen(comparison)))
    changes = [{**asdict(each), "failed": id(each) in failed, "unseen": id(each) in hidden} for each in comparison.changes]
    lost = [{**asdict(each), "reason": each.reason, "failed": each.fails} for each in comparison.lost]
    new = [
        {"workload": workload, "case": case, "cell": name, **asdict(timing)} for workload, case, name, timing in comparison.new
    ]
    content = {
        "a": a.info["run_id"],
        "b": b.info["run_id"],
        "sentence": sentence(comparison.changes, comparison.lost),
        "differences": [asdict(fact) for fact in comparison.facts],
        "changed_sources": comparison.changed_sources,
        "lost": lost,
        "new": new,
        "changes": changes,
        "gate": gate.lines(comparison),
    }
    return json_text(content)


def _junit(comparison: Comparison, a: RunData, b: RunData, gate: Gate) -> str:
    failed = set(map(id, gate.failures(comparison)))
    hidden = set(map(id, gate.unseen(comparison)))
    suite = ElementTree.Element("testsuite", name=one_line(f"{title(a.info)} to {title(b.info)}"))
    suite.set("tests", str(len(comparison.changes) + len(comparison.lost) + len(gate.other_questions(comparison))))
    questions = gate.other_questions(comparison)
    suite.set("failures", str(len(failed) + len(questions)))
    suite.set("errors", str(len(hidden - failed)))
    skipped = [each for each in comparison.lost if not each.fails]
    suite.set("skipped", str(len(skipped)))
    for fact in questions:
        element(element(suite, "testcase", classname="asked", name=fact.what), "failure", message=f"{fact.a} → {fact.b}")
    for each in comparison.lost:
        tag = "failure" if each.fails else "skipped"
        element(_testcase(suite, each), tag, f"A: {format_duration(each.a_ns.value)}", message=each.reason)
    for change in comparison.changes:
        case = _testcase(suite, change)
        case.set("time", f"{change.b_ns.value / 1e9:.9f}")
        if id(change) in failed:
            text = " ".join(f"{heading}: {cell};" for heading, cell in zip(HEADINGS, row(change), strict=True))
            element(case, "failure", text, message=f"slower: {ratio_text(change.ratio)}")
        elif id(change) in hidden:
            element(case, "error", message=f"not seen: {ratio_text(change.ratio)}, noise {noise_text(change)}")
        elif change.verdict == "drifted":
            element(case, "system-out", f"{change.verdict}: {ratio_text(change.ratio)}")
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _testcase(suite: ElementTree.Element, cell: Change | LostCell) -> ElementTree.Element:
    name = f"{cell.case} {cell.name} {cell.timing.scope} {cell.timing.cache}"
    return element(suite, "testcase", classname=cell.workload, name=name)


def element(parent: ElementTree.Element, tag: str, text: str = "", **attributes: str) -> ElementTree.Element:
    """A new element below another one. Its texts are without the characters that XML may not hold."""
    element = ElementTree.SubElement(parent, tag, {name: one_line(value) for name, value in attributes.items()})
    element.text = one_line(text) or None
    return element


_RENDERERS: Final[Mapping[Form, Callable[[Comparison, RunData, RunData, Gate], str]]] = {
    "table": _table,
    "markdown": _markdown,
    "json": _json,
    "junit": _junit,
}


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


def _rows(comparison: Comparison) -> list[Sequence[str]]:
    return [row(change) for change in comparison.of(*LISTED)[:_MOST_ROWS]]


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


def _left_out(comparison: Comparison) -> list[str]:
    changed = len(comparison.of(*LISTED))
    return [f"{changed - _MOST_ROWS} more cells changed; --format json lists them"] if changed > _MOST_ROWS else []


def alone(comparison: Comparison) -> list[str]:
    """A line for each reason for which B lacks cells of A, and one that names the new cells of B."""
    lines = [f"{'FAILED' if fails else 'not compared'}: {line}" for fails, line in loss_lines(comparison.lost)]
    if comparison.new:
        lines.append(f"new in B: {first_of((' '.join(each[:3]) for each in comparison.new), _MOST_NAMED)}")
    return lines
