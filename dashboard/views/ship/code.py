"""A dispatch as C++, Python or JSON. A name from a run is a literal or a comment of the code, and never code."""

import json
import keyword
import math
import re
from typing import Any, Final, Literal

from warpladder.dashboard.core.precision import word
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.numbers import format_percent
from warpladder.dashboard.views.ship.dispatch import Branch, Dispatch
from warpladder.dashboard.views.ship.query import Contest
from warpladder.dashboard.views.ship.words import crossover, doubts

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


def write(found: Dispatch, of: Contest, data: RunData, language: Language) -> str:
    """The dispatch as code that stands alone.

    C++ and Python have a function `choose_WORKLOAD` of the size, or of the name of the case where there is no axis. It returns
    `variant` or `variant[config]`. Without an axis, it returns `nullptr` or None for a case that was not measured.
    """
    if language == "JSON":
        return _json(found, of, data)
    return _cpp(found, of, data) if language == "C++" else _python(found, of, data)


def name_of(variant: str, config: str) -> str:
    """`v04_sliding[rows=8]`."""
    return f"{variant}[{config}]" if config else variant


def _facts(found: Dispatch, of: Contest, data: RunData) -> list[str]:
    """Lines for a comment: the source of the figures, and the loss."""
    worst = f"{format_percent(found.worst.value)} at most ({found.worst_case})" if found.worst.value > 0 else "0 % at most"
    lines = [
        f"{of.workload}, {word(of.precision)}: {of.timing.label(on_gpu=data.on_gpu)} on {data.device or 'an unnamed device'}",
        f"Slower than the fastest: {format_percent(found.mean.value)} on average, {worst}",
    ]
    if found.axis:
        first, last = found.branches[0].first, found.branches[-1].last
        lines.append(f"Measured for {found.axis} from {first:g} to {last:g}; other sizes are extrapolated")
    return [_comment(line) for line in (*lines, *(f"Not chosen: {each}" for each in doubts(of)))]


def _comment(line: str) -> str:
    """A line that cannot end its comment, nor go on in the next line."""
    return re.sub(r"[^\x20-\x7e]", "?", " ".join(line.split())).replace("\\", "/").replace("?/", "/")


def _limit(branch: Branch) -> str:
    """`n` up to which a branch holds, as a number in code."""
    return str(int(branch.limit.value)) if branch.limit.value.is_integer() else repr(branch.limit.value)


def _interval(branch: Branch) -> str:
    """The interval of the limit, as a comment without its marks; says where there is no crossover."""
    if math.isnan(branch.limit.low):
        return "tied or unmeasured between the two sizes"
    return f"crossover {crossover(branch.limit, branch.between)}"


def _parameter(axis: str) -> str:
    """The axis as the name of a parameter in both languages; `size` where it is none."""
    taken = keyword.iskeyword(axis) or axis in _IN_CPP.split() or axis.startswith("_")
    return axis if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", axis) and not taken else "size"


def function_name(workload: str) -> str:
    """The name of the function, and the stem of the file."""
    return "choose_" + (re.sub(r"[^A-Za-z0-9]+", "_", workload).strip("_") or "variant")


def _cpp(found: Dispatch, of: Contest, data: RunData) -> str:
    lines = [f"// {line}" for line in _facts(found, of, data)]
    function = function_name(of.workload)
    if not found.axis:
        lines += ["#include <string_view>", ""]
        lines.append(f"inline const char* {function}(std::string_view name) {{")
        lines += [f"  if (name == {_literal(case)}) return {_literal(name_of(*run))};" for case, run in found.chosen.items()]
        return "\n".join([*lines, "  return nullptr;  // not measured", "}", ""])
    axis, kind = _parameter(found.axis), "long long" if found.whole else "double"
    unused = "[[maybe_unused]] " if len(found.branches) == 1 else ""
    lines.append(f"inline const char* {function}({unused}{kind} {axis}) {{")
    for branch in found.branches:
        result = f"return {_literal(name_of(branch.variant, branch.config))};"
        if math.isinf(branch.limit.value):
            lines.append(f"  {result}")
        else:
            lines.append(f"  if ({axis} < {_limit(branch)}) {result}  // {_interval(branch)}")
    return "\n".join([*lines, "}", ""])


def _literal(name: str) -> str:
    """A C++ literal of the name in UTF-8. Octal escapes have three digits, so that no digit after them belongs to them."""
    plain = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in _utf8(name))
    return f'"{"".join(plain)}"'


def _utf8(name: str) -> bytes:
    return name.encode(errors="replace")


def _python(found: Dispatch, of: Contest, data: RunData) -> str:
    lines = [f"# {line}" for line in _facts(found, of, data)]
    function = function_name(of.workload)
    if not found.axis:
        lines += [f"def {function}(name: str) -> str | None:", "    return {"]
        lines += [f"        {json.dumps(case)}: {json.dumps(name_of(*run))}," for case, run in found.chosen.items()]
        return "\n".join([*lines, "    }.get(name)  # None: not measured", ""])
    axis = _parameter(found.axis)
    lines.append(f"def {function}({axis}: {'int' if found.whole else 'float'}) -> str:")
    for branch in found.branches:
        result = f"return {json.dumps(name_of(branch.variant, branch.config))}"
        if math.isinf(branch.limit.value):
            lines.append(f"    {result}")
        else:
            lines += [f"    if {axis} < {_limit(branch)}:  # {_interval(branch)}", f"        {result}"]
    return "\n".join([*lines, ""])


def _json(found: Dispatch, of: Contest, data: RunData) -> str:
    content: dict[str, Any] = {
        "workload": of.workload,
        "precision": of.precision,
        "device": data.device,
        "scope": of.timing.scope,
        "cache": of.timing.cache,
        "loss_percent": {"mean": found.mean.value, "worst": found.worst.value, "worst_case": found.worst_case},
    }
    if found.axis:
        content |= {"axis": found.axis, "measured": [found.branches[0].first, found.branches[-1].last]}
        content["branches"] = [
            {
                "below": None if math.isinf(branch.limit.value) else branch.limit.value,
                "variant": branch.variant,
                "config": branch.config,
            }
            for branch in found.branches
        ]
    else:
        content["cases"] = {case: {"variant": run[0], "config": run[1]} for case, run in found.chosen.items()}
    return json.dumps(content, indent=2) + "\n"
