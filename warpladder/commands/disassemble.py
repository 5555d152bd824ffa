"""`warpladder disassemble`: the machine code of the kernels in a file."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import click

from warpladder.commands.common import FILE, format_option, split
from warpladder.dashboard.text.formats import json_text
from warpladder.data.files import one_line
from warpladder.errors import Error
from warpladder.screen import say

if TYPE_CHECKING:
    from warpladder.collectors.cuda.kernels_of_file import KernelCode
    from warpladder.dashboard.core.sass import Code
    from warpladder.data.occupancy import Occupancy

Form = Literal["table", "json", "sass"]
#: Names of instructions that are shown of a loop, the most frequent first.
_MOST_NAMES: Final = 8
_MOST_THREADS: Final = 1024


@click.command("disassemble")
@click.argument("file", type=FILE, metavar="FILE")
@click.option(
    "--arch",
    "architectures",
    multiple=True,
    metavar="sm_90[,…]",
    help="Architectures. Default: sm_90 for a source, all that a program has.",
)
@click.option(
    "--kernel", "kernels", multiple=True, metavar="NAME", help="A kernel, such as 'transpose<2, 1>'; may be given again."
)
@click.option("--block", type=click.IntRange(1, _MOST_THREADS), help="Threads of a block, for the occupancy.")
@click.option("--ptx", is_flag=True, help="With the PTX of each kernel of a source.")
@format_option("kernels", get_args(Form))
def command(file: Path, architectures: Sequence[str], kernels: Sequence[str], block: int | None, ptx: bool, form: Form) -> None:
    """Print registers, spills and loops of kernels, without a GPU.

    With --format sass also their instructions.

    FILE: a .cu, which is compiled, a .py that declares a Benchmark, a .cubin, a program, an object file or a library.
    """
    from warpladder.collectors.cuda import disassembly, kernels_of_file

    if problem := disassembly.problem():
        raise Error(problem)
    codes = kernels_of_file.read(file, split(architectures), kernels)
    if not kernels and (templates := kernels_of_file.templates_of(file)):
        say(f"{file}: without {', '.join(templates)}: of a template, name the arguments, as in --kernel '{templates[0]}<4>'")
    if form == "json":
        print(json_text([_facts(each, block, ptx) for each in codes]), end="")
    else:
        print("\n\n".join("\n".join(_text(each, block, ptx, form)) for each in codes))


# -- what is shown -------------------------------------------------------------------------------------------------------------


def _code(kernel: "KernelCode") -> "Code":
    from warpladder.dashboard.core.sass import Code

    return Code.of(kernel.row["sass"], kernel.row["lines"])


def _occupancy(kernel: "KernelCode", block: int | None) -> "Occupancy | None":
    """The occupancy without dynamic shared memory; None without a block, and for an architecture whose limits are not known."""
    from warpladder.data.occupancy import limits_of, occupancy

    limits = limits_of(kernel.row["architecture"])
    if block is None or limits is None:
        return None
    return occupancy(limits, block, kernel.row["registers"], kernel.row["static_shared_bytes"])


def _mix(code: "Code") -> dict[str, int]:
    """The instructions of the hot loop by name, the most frequent first; empty for a kernel without a loop."""
    loop = code.hot_loop()
    if loop is None:
        return {}
    return {name: count for (_, name), count in sorted(code.mix(loop).items(), key=lambda each: (-each[1], each[0][1]))}


def _facts(kernel: "KernelCode", block: int | None, ptx: bool) -> dict[str, Any]:
    """The object of a kernel in JSON."""
    row, code = kernel.row, _code(kernel)
    loop, at_block = code.hot_loop(), _occupancy(kernel, block)
    facts = {
        "variant": kernel.variant,
        **{name: value for name, value in row.items() if name not in ("code", "sass", "lines", "ptx")},
    }
    facts |= {
        "instructions": len(code),
        "hot_loop": {"first": loop.first, "last": loop.last, "mix": _mix(code)} if loop else None,
        "occupancy": {
            "block": block,
            "blocks": at_block.blocks,
            "warps": at_block.warps,
            "percent": at_block.percent,
            "limiters": list(at_block.limiters),
        }
        if at_block
        else None,
        "sass": [{"text": each.text, "place": place} for each, place in zip(code.instructions, kernel.places, strict=True)],
    }
    return facts | ({"ptx": row["ptx"]} if ptx else {})


def _text(kernel: "KernelCode", block: int | None, ptx: bool, form: Form) -> Iterator[str]:
    """The lines of a kernel."""
    row, code = kernel.row, _code(kernel)
    yield one_line("  ".join(filter(None, (kernel.variant, row["kernel"], row["architecture"], row["compiler"]))))
    yield f"  {', '.join(_resources(row, len(code)))}"
    if loop := code.hot_loop():
        mix = [f"{count} {name}" for name, count in _mix(code).items()]
        more = [f"{len(mix) - _MOST_NAMES} more names"] if len(mix) > _MOST_NAMES else []
        yield f"  hot loop: instructions {loop.first} to {loop.last}: {', '.join(mix[:_MOST_NAMES] + more)}"
    else:
        yield "  no loop"
    if at_block := _occupancy(kernel, block):
        limiters = " and ".join(at_block.limiters)
        yield f"  occupancy with {block} threads: {at_block.percent:.4g} %, {at_block.blocks} blocks an SM, limited by {limiters}"
    elif block is not None:
        yield f"  occupancy: the limits of {row['architecture']} are not known"
    if form == "sass":
        yield from _listing(kernel, code)
    if ptx:
        yield from map(one_line, (row["ptx"] or "  no PTX: the file has machine code alone").expandtabs(4).splitlines())


def _resources(row: Any, instructions: int) -> Iterator[str]:
    yield f"{row['registers']} registers"
    yield f"{row['static_shared_bytes']} bytes of static shared memory"
    if row["spill_bytes"] is not None:
        yield f"{row['spill_bytes']} bytes of spills" if row["spill_bytes"] else "no spills"
    if row["stack_bytes"]:
        yield f"{row['stack_bytes']} bytes of stack"
    yield f"{instructions} instructions"


def _listing(kernel: "KernelCode", code: "Code") -> Iterator[str]:
    """The instructions with their offsets, each line of the source above the instructions that come from it."""
    before = ""
    for number, (instruction, place) in enumerate(zip(code.instructions, kernel.places, strict=True)):
        if place and place != before:
            yield one_line(f"    // {place}")
        before = place or before
        yield f"      {16 * number:04x}  {instruction.text}"
