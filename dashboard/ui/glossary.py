"""The words of the pages, with their meanings, which stand beside the texts that use them."""

import re
from collections.abc import Mapping
from typing import Final

from warpladder.dashboard.ui.text import plain

#: Each word with its meaning in Markdown, as the table of docs/words.md has them.
WORDS: Final[Mapping[str, str]] = {
    "workload": "a problem, such as tensor transposition",
    "variant": "one implementation of a workload, such as `v03_my_idea`",
    "rung": "a variant's place on the ladder from naive to best; also a variant that has such a place",
    "kind": "who computes: `cuda`, `library` (cuBLAS, cuDNN, cuTENSOR and others) or `host` (NumPy, Numba)",
    "role": (
        "what a variant is compared as: `rung`, `peer` (a library's), `ceiling` (the least that anyone must do, "
        "a copy), `host`, `specimen` (a known pitfall that the checks must catch)"
    ),
    "baseline": (
        "the variant that speedups are counted from, with its fastest config of each case; it runs twice in each round, and its second "
        "entry is its **twin**"
    ),
    "case": "one point of the workload's own axes, such as `n=512,perm=210`",
    "config": "a variant's tunables, such as `block=16`",
    "cell": "one variant with one config at one case",
    "precision": (
        "the arithmetic of the products: `fp32`, `tf32`, `3xtf32` (three TF32 products for each product), `fp64`, `fp16`, `bf16`, "
        "`fp8`, `int8`, `int` for other whole numbers, or `mixed` where the cases differ in it"
    ),
    "sample": "one timed repetition",
    "round": "one pass over all variants of a case, in shuffled order",
    "entry": "what runs in a round: a cell, or the twin of the baseline",
    "part": "a share of a case: the share of one rank, or one whose copies overlap the kernels of others",
    "scope": (
        "what a sample's clock covers: `device` (GPU time only), `operation` (seen by the host, launch to "
        "synchronise), `end_to_end` (with the copies in and out), `phase:NAME` (a named part of an operation). "
        "The reports call the first three GPUTime, OpTime and LayerTime."
    ),
    "cache": "`cold` (L2 flushed before each sample) or `hot`",
    "noise floor": "how far the baseline and its twin disagree; a difference within it is a tie",
    "ceiling": (
        "a rate or time that this device was measured to reach in the same run: bandwidth of reads, writes and mixes of both "
        "and their times by size, FMA and tensor rate, PCIe pinned and pageable each way, launch latency"
    ),
    "floor": (
        "the least time that a case could take: the larger of its operations over their ceiling and the time "
        "of its bytes in their mix of reads and writes; for `end_to_end` also its copies"
    ),
    "percent of floor": "floor over measured time",
    "energy": "of an execution: what the GPU takes above its idle power while it repeats the execution for a second or more",
    "idle power": "the power of a GPU without work, with the context of a process on it",
    "occupancy": "resident warps of a multiprocessor over the most that it can have, in percent",
    "wave": "the blocks that are resident on the GPU at once; a grid takes one wave after another, and the last may be filled in part",
    "status": "how a cell ended: `ok`, `wrong_result`, `skipped`, `launch_error`, `out_of_memory`, `timeout`",
    "verdict": "the result of a comparison of two times: `faster`, `slower`, `tied` or `unknown`; of two runs also `drifted`",
    "diagnostic": "what a collector lost, could not attribute or distrusts",
    "run": "one recording or one imported report; it is written once and never changed",
    "rank": "one MPI process with one GPU, or with none",
    "noise between runs": "how far two runs of the same source differ: 95 % of the cells with equal sources differ by less",
    "drifted": "verdict about a cell of equal code whose time differs by more than the noise between runs",
    "level": "a stretch of runs in which a variant's time is the same but for noise",
    "step": "the change from one level of a variant's time to the next",
    "trusted": "of a cell: no warning or error is about it, and it has at least six samples; only such a cell is called best",
    "loss": "by how much a variant is slower than the fastest variant of the case, in percent",
    "regret": "the loss of the fastest of several variants that are shipped together",
    "crossover": "the size at which one variant overtakes another",
    "machine code": "the instructions that a GPU executes, which the compiler made of a kernel",
    "SASS": "machine code of an NVIDIA GPU as text, one instruction a line",
    "PTX": "the intermediate code from which the driver or the compiler makes SASS",
    "launch": "one start of a kernel; an execution of a cell has one or more",
    "hot loop": "the loop of a kernel whose instructions are executed most often; without counts, the loop with the most arithmetic",
    "instruction mix": "how many instructions of each unit and name a loop or a kernel has",
    "spill": "a register that the compiler keeps in local memory, because a thread has too few registers",
    "collective": "one communication of all ranks of a group, such as an `all_reduce`",
    "transfer": "the part of a collective from the arrival of the last rank to the end; the part before is the wait",
    "bus bandwidth": "the size of a collective over the time of its transfer, times the factor that NCCL's tests have for its kind and number of ranks",
    "operator": "a function of PyTorch that its profiler records, such as `aten::mm`",
    "self time": "the time of an operator without that of the operators inside it",
    "critical path": "a chain of activities from the start to the end of an iteration, each of which waited for the one before it",
    "replay": "the dependencies of an iteration executed again with other durations, such as those of a faster kernel",
    "view": "one page of the dashboard, with sections that answer one question each",
}
#: The forms in which captions write a word, as patterns of what `plain` makes of them.
_FORMS: Final[Mapping[str, str]] = {
    "self time": r"self (?:device|host) time",
    "percent of floor": r"percent of floor|% of floor",
    "noise floor": r"noise floors?|A/A",
    "floor": r"floors?",
    "ceiling": r"ceilings?",
    "baseline": r"baselines?",
    "round": r"rounds?",
    "rung": r"rungs?",
    "config": r"configs?",
    "hot loop": r"hot loops?",
    "cache": r"cold|hot",
    "scope": r"device time|operation time|end\\-to\\-end",
    "status": r"status(?:es)?",
    "verdict": r"verdicts?",
    "rank": r"ranks?",
    "SASS": r"SASS",
    "PTX": r"PTX",
    "spill": r"spills?",
    "wave": r"waves?",
}
_NAMES: Final = {f"word{place}": word for place, word in enumerate(_FORMS)}
_FIND: Final = re.compile(
    rf"(?<![\w\\/-])(?:{'|'.join(f'(?P<{name}>{_FORMS[word]})' for name, word in _NAMES.items())})(?![\w-])"
)


def meanings(text: str) -> str:
    """The words of a text with their meanings, in Markdown, each once; empty where it has none."""
    found = dict.fromkeys(_NAMES[str(match.lastgroup)] for match in _FIND.finditer(plain(text)))
    return "\n\n".join(f"**{word}**: {WORDS[word]}" for word in found)
