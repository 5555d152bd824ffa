"""The answer in words, and as code that chooses the variant."""

import json
import keyword
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal

from warpladder.dashboard.compare.within_run import word
from warpladder.dashboard.core.cell import name_of
from warpladder.dashboard.core.numbers import format_percent, format_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.views.sizes.ship.dispatch import Branch, Crossing, Dispatch
from warpladder.dashboard.views.sizes.ship.query import Among, Contest, Shipment
from warpladder.data.words import counted, first_of, joined

AMONG: Final[Mapping[Among, str]] = {"rungs": "rungs", "peers": "rungs, peers", "hosts": "rungs, peers, hosts"}
_MOST_DOUBTS: Final = 3
_MOST_FASTER: Final = 2
COUNTS: Final = ("one", "two", "three")


def answer(contest: Contest, shipped: Shipment) -> str:
    """`Ship v10_x: at most 3 % slower than the fastest rung, 0.8 % on average over 5 cases.`"""
    return f"{_compared(contest, shipped)}{_not_timed(shipped)}{_faster(contest)}."


def _compared(contest: Contest, shipped: Shipment) -> str:
    """The variants to ship against the fastest of those that may be."""
    cases = len(contest.cases) - len(shipped.missing)
    over = f"over {cases} cases" if cases > 1 else f"at {shipped.worst_case}"
    if len(contest.variants) == 1:
        doubtful = "can be ranked" if contest.doubts else "was timed"
        return f"Ship {contest.variants[0]}: no other {contest.among or 'variant'} in {word(contest.precision)} {doubtful}"
    if shipped.worst.value <= 0:
        who = fastest(contest) if len(shipped.variants) == 1 else f"one of them is {fastest(contest)}"
        return f"Ship {joined(shipped.variants)}: {who} {over}{_ties(shipped.first - shipped.wins, cases)}"
    sentence = f"Ship {joined(shipped.variants)}: at most {_loss(shipped.worst.value)} slower than {fastest(contest)}"
    sentence += f", {_loss(shipped.mean.value)} on average {over}" if cases > 1 else f" {over}"
    if shipped.first == cases:
        sentence += ", each a tie or a win" if cases > 1 else ", which is a tie"
    return sentence


def _ties(ties: int, cases: int) -> str:
    """How many of the cases are ties, behind a comma."""
    if ties == cases:
        return ", each a tie" if cases > 1 else ", which is a tie"
    return "" if not ties else ", one of them a tie" if ties == 1 else f", {ties} of them ties"


def _not_timed(shipped: Shipment) -> str:
    return f"; not timed in {len(shipped.missing)} more" if shipped.missing else ""


def fastest(contest: Contest) -> str:
    """`the fastest rung`, or `the fastest` where all that was timed may be shipped."""
    return f"the fastest {contest.among}" if contest.among else "the fastest"


def _faster(contest: Contest) -> str:
    """`; triton is faster in 7 of 7 cases, by up to 1.33×`, about variants that may not be shipped; empty where none is faster."""
    if not contest.faster:
        return ""
    cells = contest.faster.values()
    most = format_ratio(max(each.ratio.value for each in cells))
    who = [each for each, _ in Counter(each.variant for each in cells).most_common()]
    are = "is" if len(who) == 1 else "are"
    return f"; {first_of(who, _MOST_FASTER)} {are} faster in {len(cells)} of {counted(len(contest.cases), 'case')}, by up to {most}"


def doubts(contest: Contest) -> tuple[str, ...]:
    """Words about the faster cells that may not be called best, with their cases: a few, then how many more."""
    lines = tuple(f"{case}: {words}" for case, words in contest.doubts.items())
    more = len(lines) - _MOST_DOUBTS
    return lines if more <= 0 else (*lines[:_MOST_DOUBTS], f"so in {more} more")


def title(contest: Contest, shipped: Shipment) -> str:
    where = f"{contest.workload}, {word(contest.precision)}"
    if shipped.worst.value <= 0:
        is_never = f"{'is' if len(shipped.variants) == 1 else 'are'} never"
        return f"{where}: {joined(shipped.variants)} {is_never} slower than {fastest(contest)}{_faster(contest)}"
    return f"{where}: {joined(shipped.variants)} at most {_loss(shipped.worst.value)} slower than {fastest(contest)}{_faster(contest)}"


def crossover(at: Crossing) -> str:
    """`between 512 and 1,024`."""
    left, right = (f"{end:,.12g}" for end in at.between)
    return f"between {left} and {right}"


def _loss(value: float) -> str:
    """A loss as in the tables, so that `at most` is not less than a figure there."""
    return format_percent(max(value, 0.0))


Language = Literal["C++", "Python", "JSON"]
LANGUAGES: Final[tuple[Language, ...]] = ("C++", "Python", "JSON")
#: Language -> its name for highlighting, the ending of its files, and their type.
FILES: Final[dict[Language, tuple[str, str, str]]] = {
    "C++": ("cpp", "hpp", "text/x-c++hdr"),
    "Python": ("python", "py", "text/x-python"),
    "JSON": ("json", "json", "application/json"),
}
_IN_CPP: Final = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""


def write(table: Dispatch, contest: Contest, data: RunData, language: Language) -> str:
    """The dispatch as code that stands alone.

    C++ and Python have a function `choose_WORKLOAD` of the size, or of the name of the case where there is no axis. It returns
    `variant` or `variant[config]`. Without an axis, it returns `nullptr` or None for a case that was not measured.
    """
    return {"JSON": _json, "C++": _cpp, "Python": _python}[language](table, contest, data)


def _facts(table: Dispatch, contest: Contest, data: RunData) -> list[str]:
    """Lines for a comment: the source of the figures, and the loss."""
    worst = f"{format_percent(table.worst.value)} at most ({table.worst_case})" if table.worst.value > 0 else "0 % at most"
    lines = [
        f"{contest.workload}, {word(contest.precision)}: {contest.timing.label(on_gpu=data.on_gpu)} on "
        f"{data.device or 'an unnamed device'}",
        f"Slower than {fastest(contest)}: {format_percent(table.mean.value)} on average, {worst}",
    ]
    if table.axis:
        first, last = table.branches[0].first, table.branches[-1].last
        lines.append(f"Measured for {table.axis} from {first:g} to {last:g}; other sizes are extrapolated")
    if beaten := _faster(contest):
        lines.append(f"Not chosen: {beaten.removeprefix('; ').replace('×', 'x')}")
    return [_comment(line) for line in (*lines, *(f"Not chosen: {each}" for each in doubts(contest)))]


def _comment(line: str) -> str:
    """A line that cannot end its comment, nor go on in the next line."""
    return re.sub(r"[^\x20-\x7e]", "?", " ".join(line.split())).replace("\\", "/").replace("?/", "/")


def _limit(branch: Branch) -> str:
    """`n` up to which a branch holds, as a number in code."""
    return str(int(branch.limit)) if branch.limit.is_integer() else repr(branch.limit)


def _reason(branch: Branch) -> str:
    """Why the branch ends at its limit, as a comment without its marks."""
    return f"crossover {crossover(branch.crossing)}" if branch.crossing else "tied or unmeasured between the two sizes"


def _parameter(axis: str) -> str:
    """The axis as the name of a parameter in both languages; `size` where it is none."""
    reserved = keyword.iskeyword(axis) or axis in _IN_CPP.split() or axis.startswith("_")
    return axis if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", axis) and not reserved else "size"


def function_name(workload: str) -> str:
    """The name of the function, and the stem of the file."""
    return "choose_" + (re.sub(r"[^A-Za-z0-9]+", "_", workload).strip("_") or "variant")


def _cpp(table: Dispatch, contest: Contest, data: RunData) -> str:
    lines = [f"// {line}" for line in _facts(table, contest, data)]
    function = function_name(contest.workload)
    if not table.axis:
        lines += ["#include <string_view>", ""]
        lines.append(f"inline const char* {function}(std::string_view name) {{")
        lines += [f"  if (name == {_literal(case)}) return {_literal(name_of(*run))};" for case, run in table.chosen.items()]
        return "\n".join([*lines, "  return nullptr;  // not measured", "}", ""])
    axis, kind = _parameter(table.axis), "long long" if table.integral else "double"
    unused = "[[maybe_unused]] " if len(table.branches) == 1 else ""
    lines.append(f"inline const char* {function}({unused}{kind} {axis}) {{")
    for branch in table.branches:
        result = f"return {_literal(name_of(branch.variant, branch.config))};"
        if math.isinf(branch.limit):
            lines.append(f"  {result}")
        else:
            lines.append(f"  if ({axis} < {_limit(branch)}) {result}  // {_reason(branch)}")
    return "\n".join([*lines, "}", ""])


def _literal(name: str) -> str:
    """A C++ literal of the name in UTF-8. Octal escapes have three digits, so that no digit after them belongs to them."""
    plain = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in name.encode(errors="replace")
    )
    return f'"{"".join(plain)}"'


def _python(table: Dispatch, contest: Contest, data: RunData) -> str:
    lines = [f"# {line}" for line in _facts(table, contest, data)]
    function = function_name(contest.workload)
    if not table.axis:
        lines += [f"def {function}(name: str) -> str | None:", "    return {"]
        lines += [f"        {json.dumps(case)}: {json.dumps(name_of(*run))}," for case, run in table.chosen.items()]
        return "\n".join([*lines, "    }.get(name)  # None: not measured", ""])
    axis = _parameter(table.axis)
    lines.append(f"def {function}({axis}: {'int' if table.integral else 'float'}) -> str:")
    for branch in table.branches:
        result = f"return {json.dumps(name_of(branch.variant, branch.config))}"
        if math.isinf(branch.limit):
            lines.append(f"    {result}")
        else:
            lines += [f"    if {axis} < {_limit(branch)}:  # {_reason(branch)}", f"        {result}"]
    return "\n".join([*lines, ""])


def _json(table: Dispatch, contest: Contest, data: RunData) -> str:
    content: dict[str, Any] = {
        "workload": contest.workload,
        "precision": contest.precision,
        "device": data.device,
        "scope": contest.timing.scope,
        "cache": contest.timing.cache,
        "loss_percent": {"mean": table.mean.value, "worst": table.worst.value, "worst_case": table.worst_case},
    }
    if table.axis:
        content |= {"axis": table.axis, "measured": [table.branches[0].first, table.branches[-1].last]}
        limits = [None if math.isinf(branch.limit) else branch.limit for branch in table.branches]
        content["branches"] = [
            {"below": limit, "variant": branch.variant, "config": branch.config}
            for limit, branch in zip(limits, table.branches, strict=True)
        ]
    else:
        content["cases"] = {case: {"variant": run[0], "config": run[1]} for case, run in table.chosen.items()}
    return json.dumps(content, indent=2) + "\n"
