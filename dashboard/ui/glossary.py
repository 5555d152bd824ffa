"""The words of the pages, with their meanings, which stand beside the texts that use them."""

import re
from collections.abc import Mapping
from typing import Final

from warpladder.dashboard.ui.text import plain

#: Each word that is explained beside a chart: its forms there, as a pattern of what `plain` makes of them, and its meaning in Markdown, as
#: docs/words.md has it. The first form that fits counts.
WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "self time": (r"self (?:device|host) time", "the time of an operator without the operators inside it"),
    "percent of floor": (r"percent of floor|% of floor", "floor over measured time"),
    "noise floor": (r"noise floors?|A/A", "how far the baseline and its twin disagree; a difference within it is a tie"),
    "floor": (
        r"floors?",
        "the least time that a case could take: the larger of its operations over their ceiling and the time "
        "of its bytes in their mix of reads and writes; for `end_to_end` also its copies",
    ),
    "ceiling": (
        r"ceilings?",
        "a rate or time that this device was measured to reach in the same run: bandwidth of reads, writes and mixes of both "
        "and their times by size, FMA and tensor rate, PCIe pinned and pageable each way, launch latency",
    ),
    "baseline": (
        r"baselines?",
        "the variant that speedups are counted from, with its fastest config of each case; it runs twice in each round, and its second "
        "copy is its **twin**",
    ),
    "round": (r"rounds?", "one pass over all variants of a case, in shuffled order"),
    "rung": (r"rungs?", "a variant's place on the ladder from naive to best; also a variant that has such a place"),
    "config": (r"configs?", "a variant's tunables, such as `block=16`"),
    "hot loop": (
        r"hot loops?",
        "the loop of a kernel whose instructions are executed most often; without counts, the loop with the most arithmetic",
    ),
    "cache": (r"cold|hot", "`cold` (L2 flushed before each sample) or `hot`"),
    "scope": (
        r"device time|operation time|end\\-to\\-end",
        "what a sample's clock covers: `device` (GPU time only), `operation` (seen by the host, launch to "
        "synchronise), `end_to_end` (with the copies in and out), `phase:NAME` (a named part of an operation). "
        "The student reports call the first three GPUTime, OpTime and LayerTime",
    ),
    "status": (
        r"status(?:es)?",
        "how a cell ended: `ok`, `wrong_result`, `skipped`, `launch_error`, `out_of_memory`, `timeout`",
    ),
    "verdict": (
        r"verdicts?",
        "the result of a comparison of two times: `faster`, `slower`, `tied` or `unknown`; of two runs also `drifted`",
    ),
    "rank": (r"ranks?", "one MPI process with one GPU, or with none"),
    "SASS": (r"SASS", "machine code of an NVIDIA GPU as text, one instruction a line"),
    "PTX": (r"PTX", "the intermediate code from which the driver or the compiler makes SASS"),
    "spill": (r"spills?", "a register that the compiler keeps in local memory, because a thread has too few registers"),
    "wave": (
        r"waves?",
        "the blocks that are resident on the GPU at once; the last wave of a grid may be filled in part",
    ),
}
_NAMES: Final = {f"word{place}": word for place, word in enumerate(WORDS)}
_FIND: Final = re.compile(
    rf"(?<![\w\\/-])(?:{'|'.join(f'(?P<{name}>{WORDS[word][0]})' for name, word in _NAMES.items())})(?![\w-])"
)


def meanings(text: str) -> str:
    """The words of a text with their meanings, in Markdown, each once; empty where it has none."""
    found = dict.fromkeys(_NAMES[str(match.lastgroup)] for match in _FIND.finditer(plain(text)))
    return "\n\n".join(f"**{word}**: {WORDS[word][1]}" for word in found)
