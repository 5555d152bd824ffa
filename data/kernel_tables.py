"""The tables of what is inside kernels: their launches and machine code, counters by instruction, rules, and experiments."""

from typing import Final

from warpladder.data.columns import CELL, CELL_KEY, LAUNCH_INDEX, Table, integer, real, text, time
from warpladder.data.names import Experiment

RULE_SEVERITIES: Final = ("none", "ok", "optimization", "warning", "error")

LAUNCHES = Table(
    "cell_launches",
    "The kernel launches of one execution of a cell, and the machine code of each. Launches that are alike are one row: the first of them, "
    "and their number.",
    (
        *CELL,
        LAUNCH_INDEX,
        integer("count", "launches of the cell that are alike", bits=32, least=1),
        text("kernel", "name of the kernel with its template arguments"),
        text("code", "row of `machine_code`; null where the code is not known", nullable=True),
        *(integer(f"grid_{axis}", "blocks along the axis", bits=32, least=1) for axis in "xyz"),
        *(integer(f"block_{axis}", "threads along the axis", bits=32, least=1) for axis in "xyz"),
        integer("dynamic_shared_bytes", "dynamic shared memory a block", "B", bits=32, least=0),
    ),
    (*CELL_KEY, "launch_index"),
)

MACHINE_CODE = Table(
    "machine_code",
    "The machine code of each kernel, once for all cells that launch it.",
    (
        text("code", "identifies the code: a hash of its instructions, their lines and its resources", not_empty=True),
        text("kernel", "name of the kernel with its template arguments"),
        text("architecture", "what it was compiled for, e.g. `sm_90`"),
        text("compiler", "what compiled or disassembled it, e.g. `NVRTC 13.0`"),
        integer("registers", "registers a thread", bits=32, nullable=True, least=0),
        integer("static_shared_bytes", "static shared memory a block", "B", bits=32, nullable=True, least=0),
        integer("spill_bytes", "register spill stores a thread", "B", bits=32, nullable=True, least=0),
        integer(
            "stack_bytes",
            "stack a thread, with arrays that have no registers",
            "B",
            bits=32,
            nullable=True,
            later=True,
            least=0,
        ),
        text(
            "sass",
            "instructions (SASS), one a line, of 16 bytes each; a branch names its target as the offset in bytes from the first "
            "instruction",
        ),
        text("lines", "for each instruction, one a line, its line in `variants.source_text`; 0 where it has none"),
        text("ptx", "intermediate code (PTX) of the kernel; null where it is not known", nullable=True),
    ),
    ("code",),
)

INSTRUCTION_COUNTERS = Table(
    "instruction_counters",
    "Hardware counters of one launch by instruction. Instructions with a count of 0 have no row.",
    (
        *CELL,
        LAUNCH_INDEX,
        text("metric", "the tool's own name of the metric", not_empty=True),
        integer("instruction", "place of the instruction in `machine_code.sass`, from 0", bits=32, least=0),
        integer("value", "reading", least=0),
    ),
    (*CELL_KEY, "launch_index", "metric", "instruction"),
)

RULES = Table(
    "rules",
    "What the rules of Nsight Compute find about one launch.",
    (
        *CELL,
        LAUNCH_INDEX,
        text("section", "section of the report, e.g. `SpeedOfLight`"),
        text("rule", "the tool's own name of the rule, e.g. `SOLBottleneck`", not_empty=True),
        integer("place", "place among the findings of the launch", bits=32, least=0),
        text("severity", "how the tool marks it", values=RULE_SEVERITIES),
        text("title", "the tool's own title"),
        text("text", "the tool's own words"),
        real("speedup_percent", "the speedup that the tool estimates; null where it estimates none", "%", nullable=True),
        text("speedup_of", "of what: `global` or `local`; empty without an estimate"),
    ),
    (*CELL_KEY, "launch_index", "place"),
)

EXPERIMENTS = Table(
    "experiments",
    "What altered kernels of a cell showed, beside the original in the same rounds. docs/why.md explains each experiment.",
    (
        *CELL,
        integer("place", "place among the rows of the cell", bits=32, least=0),
        text("kernel", "the kernel that takes the most time, which is looked into"),
        text("experiment", "kind of the experiment", values=tuple(map(str, Experiment))),
        text("what", "the class of work, the mark, the stage or the fact", not_empty=True),
        real("value", "the time, the share or the number; null where the altered kernel broke its process", nullable=True),
        real("low", "lower end of the 95 % interval; null where the value was not measured in rounds", nullable=True),
        real("high", "upper end of the 95 % interval; null likewise", nullable=True),
        text("unit", "unit of the value: `ns`, `share`, `bytes`; empty for a number"),
        text("lines", "lines of the source, with commas between; empty where it is about no line"),
        text("note", "what qualifies it: the class of an access, the cost of the alteration, outputs that differ"),
    ),
    (*CELL_KEY, "place"),
)

EXPERIMENT_BLOCKS = Table(
    "experiment_blocks",
    "When blocks of a kernel with probes ran, of some multiprocessors, and their time in each stage.",
    (
        *CELL,
        integer("multiprocessor", "number of the multiprocessor", bits=32, least=0),
        integer("block", "number of the block in the grid", bits=32, least=0),
        time("start_ns", "start of the block, from the start of the kernel's first one"),
        time("end_ns", "end of the block"),
        text("stage", "stage of its warps, as in table `experiments`", not_empty=True),
        integer("stage_ns", "time in the stage, the mean of the warps; several visits together", "ns"),
    ),
    (*CELL_KEY, "block", "stage"),
    spans=(("start_ns", "end_ns"),),
)
