"""Every table of a run: its columns, types, units and meanings, each written once.

`store` refuses what does not fit this module, and `dictionary` prints it as `data/README.md`. `columns` has what a column is. Other names
that rooms share, of ceilings, phases and sources of diagnostics, stand in `names`.
"""

from typing import Final

import pyarrow as pa

from warpladder.data.columns import FAR, Column, Table, identifier, integer, real, text, time, work

#: Version that is written. Version 2 added `samples.process`, version 3 the tables `cell_launches`, `machine_code`,
#: `instruction_counters` and `rules`, version 4 `operations`, `collectives`, `ranks`, `iterations`, `rank_kernels` and `idle`, version 5
#: `energy`.
SCHEMA_VERSION: Final = 5
#: Versions that are read.
READABLE_VERSIONS: Final = (1, 2, 3, 4, 5)

RUN_KINDS: Final = ("recording", "import", "job")
VARIANT_KINDS: Final = ("cuda", "library", "host")
ROLES: Final = ("ceiling", "rung", "peer", "host", "specimen")
PRECISIONS: Final = ("fp32", "tf32", "3xtf32", "fp64", "fp16", "bf16", "fp8", "int", "mixed")
TRANSFERS: Final = ("pageable", "pinned", "overlapped")
STATUSES: Final = ("ok", "wrong_result", "skipped", "launch_error", "out_of_memory", "timeout")
SCOPES: Final = ("device", "operation", "end_to_end")
CACHES: Final = ("cold", "hot")
SEVERITIES: Final = ("info", "warning", "error")
RULE_SEVERITIES: Final = ("none", "ok", "optimization", "warning", "error")
RANGE_STYLES: Final = ("push_pop", "start_end")
#: Name in `kernels` of a CUDA graph that was traced as a whole.
CUDA_GRAPH: Final = "[CUDA graph]"
MEMORY_OP_KINDS: Final = ("h2d", "d2h", "d2d", "p2p", "h2h", "memset", "unified_h2d", "unified_d2h")

RANK_STATUSES: Final = ("ok", "broken", "missing")
#: What device work does. Communication is what NCCL or RCCL run, memory is copies and sets, compute is every other kernel.
WORK_KINDS: Final = ("compute", "communication", "memory")

_WORKLOAD = text("workload", "problem, e.g. `tensor_transpose`", not_empty=True)
_VARIANT = text("variant", "one implementation of the workload, e.g. `v03_shared_tile`", not_empty=True)
_CONFIG = text("config", "the variant's tunables, e.g. `block=16`; empty where it has none")
_CASE = text("case", "one point of the workload's axes, e.g. `n=512,perm=210`", not_empty=True)
_CELL = (_WORKLOAD, _VARIANT, _CONFIG, _CASE)
_LAUNCH_INDEX = integer("launch_index", "which launch of the cell", bits=32)
_TWIN = integer("twin", "1 for the baseline's second copy (A/A)", bits=8, least=0, most=1)
#: The state of the GPU beside a measurement.
_STATE = (
    integer("sm_clock_mhz", "SM clock read beside the sample", "MHz", bits=32, nullable=True),
    integer("temperature_c", "GPU temperature", "°C", bits=16, nullable=True),
    real("power_w", "GPU power draw", "W", nullable=True),
    integer("throttle_reasons", "NVML bit mask; 0 where nothing slowed the clock", nullable=True),
)
_CELL_KEY = ("workload", "variant", "config", "case")


def _of_ours(column: Column) -> Column:
    return Column(column.name, column.type, column.meaning + "; null where Warpladder did not open the range", nullable=True)


_START = time("start_ns", "start on the trace's clock")
_END = time("end_ns", "end on the trace's clock")
_PROCESS = identifier("process", "process id in the trace")
_CORRELATION = integer(
    "correlation", "joins an API call to the device work that it caused; unique within a process", least=-FAR, most=FAR
)
_RANGE = identifier("range_id", "innermost NVTX range open on the launching thread at the launch", nullable=True)
_TIME_RANGE = identifier(
    "time_range_id",
    "attribution by time, where `range_id` is null: the innermost NVTX range open at the launch on another thread of the "
    "process; null if no other thread or several other threads had an open range, and in runs that are older than the column",
    nullable=True,
    later=True,
)
_STREAM = integer("stream", "CUDA stream id in the trace", nullable=True)
_DEVICE = integer("device", "CUDA device ordinal", bits=32)

RUN = Table(
    "run",
    "One row: what was run, where, with what, and when.",
    (
        text("run_id", "name of the run's folder", not_empty=True),
        integer("schema_version", "version of this contract that wrote the run", bits=32),
        text("label", "the user's name for the run; empty where none was given"),
        text("kind", "recorded by Warpladder, imported from a profiler's report, or a job of many ranks", values=RUN_KINDS),
        Column("started_at", pa.timestamp("us", tz="UTC"), "when the run started", "UTC"),
        text("collector", "collector that measured it, e.g. `cuda_events`"),
        text("collector_version", "version of that collector's tool"),
        text("source", "file that an import came from; empty for a recording"),
        text("source_sha256", "SHA-256 of that file; null for folders and ranks of jobs", nullable=True, later=True),
        text("device_name", "name of the GPU; empty without one"),
        integer("device_count", "GPUs used", bits=16),
        text("compute_capability", "e.g. `9.0`; empty without a GPU"),
        integer("sm_count", "streaming multiprocessors of one GPU", bits=32, nullable=True),
        integer("l2_bytes", "L2 cache of one GPU", "B", nullable=True),
        integer("memory_bytes", "memory of one GPU", "B", nullable=True),
        text("driver_version", "NVIDIA driver; empty without one"),
        text("cuda_version", "CUDA runtime that ran the kernels; empty without one"),
        text("cpu_name", "name of the processor"),
        text("os", "operating system and its release"),
        text("python_version", "Python that ran the collector"),
        text("packages", "JSON object: version of each package that matters to a measurement", json_object=True),
        text("git_commit", "commit of this project; empty outside a checkout"),
        Column("git_dirty", pa.bool_(), "the checkout had uncommitted changes; null outside one", nullable=True),
        text("command", "command line, without the paths of the machine"),
    ),
    ("run_id",),
)

CEILINGS = Table(
    "ceilings",
    "Rates and times that this device reached, measured in the same run.",
    (
        text("name", "what was measured, e.g. `device_copy`"),
        text("device", "`cpu`, `cuda:0`, or `2 GPUs` for what they do together"),
        real("value", "the median over repetitions", least=1e-9, most=1e15),
        text("unit", "`GB/s`, `TFLOP/s` or `us`"),
        text("method", "how it was measured"),
    ),
    ("name", "device"),
)

VARIANTS = Table(
    "variants",
    "Every variant of the run's workloads, with its source as measured.",
    (
        _WORKLOAD,
        _VARIANT,
        integer("rung", "place on the ladder from naive to best; null off the ladder", bits=32, nullable=True),
        text("kind", "who computes", values=VARIANT_KINDS),
        text("role", "what it is compared as", values=ROLES),
        text("precision", "arithmetic of the products", values=PRECISIONS),
        text("title", "a few words for charts"),
        text("idea", "what this variant tries"),
        text("bottleneck", "what limits it"),
        text("next", "what the next rung changes"),
        text("source", "where the idea comes from"),
        text("source_path", "file within the project; empty for code outside the project"),
        text("source_text", "source code as measured"),
        text("source_sha256", "SHA-256 of `source_text`"),
        integer("registers", "registers a thread, the maximum over its kernels", bits=32, nullable=True),
        integer("shared_bytes", "static and dynamic shared memory a block, the maximum over its kernels", "B", nullable=True),
        integer("spill_bytes", "register spill stores a thread, the maximum over its kernels", "B", nullable=True),
        text("min_compute_capability", "least device it runs on, e.g. `7.5`; empty off the GPU"),
        text(
            "transfer",
            "how the scope `end_to_end` copies to the device and back; null where it does not copy, or where the run does not "
            "record it",
            nullable=True,
            values=TRANSFERS,
            later=True,
        ),
    ),
    ("workload", "variant"),
)

CASES = Table(
    "cases",
    "Every case of the run, with its operations and bytes.",
    (
        _WORKLOAD,
        _CASE,
        integer(
            "size_rank",
            "order of the case on a size axis; null for a case that is verified and not charted",
            nullable=True,
        ),
        text("params", "JSON object: the workload's own axes", not_empty=True, json_object=True),
        integer("flops", "floating-point operations, a multiply-add counted as two", "FLOP", least=0),
        work("min_bytes", "each input read once and each output written once", "B"),
        work("h2d_bytes", "bytes copied to the device for one end-to-end operation", "B"),
        work("d2h_bytes", "bytes copied back from the device", "B"),
    ),
    ("workload", "case"),
)

RESULTS = Table(
    "results",
    "One row a cell, with its status. A cell that failed or was skipped has the reason in its row.",
    (
        *_CELL,
        text("status", "how the cell ended", values=STATUSES),
        text("detail", "reason of the status, or why sampling stopped"),
        real("rel_l2_error", "norm(out - ref) / norm(ref) against float64", nullable=True, least=0, finite=False),
        real("max_rel_error", "max |out - ref| / max |ref| against float64", nullable=True, least=0, finite=False),
        real("tolerance", "largest rel_l2_error that passes", nullable=True, least=0),
        integer("verified_elements", "output elements compared", nullable=True, least=0),
    ),
    _CELL_KEY,
)

SAMPLES = Table(
    "samples",
    "Every timed repetition.",
    (
        *_CELL,
        integer(
            "gpus", "GPUs, or processes on the host, that worked together; 0 for one process on the host", bits=16, least=0
        ),
        integer(
            "rank",
            "number of the GPU or process that took the sample; the time of the whole is the time of the slowest rank in the "
            "round",
            bits=16,
            least=0,
        ),
        text(
            "cache",
            "L2 flushed before the sample, or not; for the phases of a first use: compiled code was not cached on disk, or was "
            "cached",
            values=CACHES,
        ),
        text(
            "scope",
            "`device`, `operation`, `end_to_end` or `phase:NAME`; `phase:allreduce` comes from one more execution beside the "
            "operation",
        ),
        _TWIN,
        integer(
            "process",
            "number of the measuring process that took the sample, in their order, from 0; 0 in runs of schema version 1",
            bits=16,
            later=True,
            default=0,
            least=0,
        ),
        integer("round", "pass over all variants of the case, counted over all processes of the run", bits=32, least=0),
        integer("position", "place within the round's shuffled order", bits=16, least=0),
        integer("duration_ns", "time of one execution; a batch is divided by its length", "ns", least=1, most=FAR),
        *_STATE,
    ),
    (*_CELL_KEY, "gpus", "rank", "cache", "scope", "twin", "round", "position"),
)

ENERGY = Table(
    "energy",
    "Readings of NVML's counter of the GPU's energy while a loop repeats a cell. An execution takes energy_mj * execution_ns / duration_ns - "
    "idle_w * execution_ns / 10^6 mJ; docs/energy.md explains it.",
    (
        *_CELL,
        _TWIN,
        integer("round", "pass over all variants of the case", bits=32, least=0),
        integer("energy_mj", "energy of the whole GPU between two readings of the counter", "mJ", least=0, most=FAR),
        integer("duration_ns", "time between the two readings", "ns", least=1, most=FAR),
        real(
            "execution_ns", "time of one execution in the loop, the mean between the two readings", "ns", least=1e-3, most=FAR
        ),
        real("idle_w", "power of the GPU without work, before the first loop of the process", "W", least=0, most=1e6),
        *_STATE,
    ),
    (*_CELL_KEY, "twin", "round"),
)

RANGES = Table(
    "ranges",
    "NVTX ranges of a trace.",
    (
        identifier("range_id", "identifies the range within the run"),
        identifier("parent_id", "range that encloses this range on the same thread", nullable=True),
        integer("depth", "how many ranges enclose it", bits=32, least=0),
        _PROCESS,
        identifier("thread", "thread id in the trace"),
        text("domain", "NVTX domain; empty for the default one"),
        text("text", "message"),
        text("style", "how it was opened and closed", values=RANGE_STYLES),
        _START,
        time("end_ns", "end on the trace's clock; null where it was never closed", nullable=True),
        time("gpu_start_ns", "start of the first device work launched inside it", nullable=True),
        time("gpu_end_ns", "end of the last device work launched inside it", nullable=True),
        integer(
            "gpu_busy_ns",
            "time between these two in which device work launched inside it was running",
            "ns",
            nullable=True,
            least=0,
            most=FAR,
        ),
        *(
            integer(
                f"time_{name}",
                f"like `{name}`, but also with the work attributed by time to this range or to a range inside it; null without "
                "such work",
                "ns",
                nullable=True,
                later=True,
                least=least,
                most=FAR,
            )
            for name, least in (("gpu_start_ns", -FAR), ("gpu_end_ns", -FAR), ("gpu_busy_ns", 0))
        ),
        *(_of_ours(column) for column in _CELL),
        text("scope", "as in `samples`; null where Warpladder did not open the range", nullable=True),
        integer("round", "as in `samples`; null where Warpladder did not open the range", bits=32, nullable=True, least=0),
    ),
    ("range_id",),
    (("start_ns", "end_ns"), ("gpu_start_ns", "gpu_end_ns"), ("time_gpu_start_ns", "time_gpu_end_ns")),
)

KERNELS = Table(
    "kernels",
    f"Kernel executions of a trace. A CUDA graph that was traced as a whole is one row a launch, named `{CUDA_GRAPH}`: it starts with the "
    "graph's first node and ends with its last, and its grid, block, registers and shared memory are null.",
    (
        _CORRELATION,
        _PROCESS,
        _START,
        _END,
        _DEVICE,
        integer("context", "CUDA context id", nullable=True),
        _STREAM,
        text("name", "short name"),
        text("full_name", "demangled name with its template arguments"),
        *(integer(f"grid_{axis}", "blocks along the axis", bits=32, nullable=True) for axis in "xyz"),
        *(integer(f"block_{axis}", "threads along the axis", bits=32, nullable=True) for axis in "xyz"),
        integer("registers", "registers a thread", bits=32, nullable=True),
        integer("static_shared_bytes", "static shared memory a block", "B", nullable=True),
        integer("dynamic_shared_bytes", "dynamic shared memory a block", "B", nullable=True),
        _RANGE,
        _TIME_RANGE,
        time("launch_start_ns", "start of the API call that launched it", nullable=True),
        time("launch_end_ns", "end of that call", nullable=True),
        integer("graph_id", "CUDA graph in which it ran", nullable=True),
    ),
    spans=(("start_ns", "end_ns"), ("launch_start_ns", "launch_end_ns")),
)

MEMORY_OPS = Table(
    "memory_ops",
    "Copies, sets and migrations of a trace.",
    (
        _CORRELATION,
        _PROCESS,
        _START,
        _END,
        text("kind", "direction", values=MEMORY_OP_KINDS),
        work("bytes", "bytes moved", "B"),
        text("src_memory", "`pageable`, `pinned`, `device`, `managed`…; null where unknown", nullable=True),
        text("dst_memory", "likewise", nullable=True),
        _DEVICE,
        _STREAM,
        _RANGE,
        _TIME_RANGE,
    ),
    spans=(("start_ns", "end_ns"),),
)

API_CALLS = Table(
    "api_calls",
    "CUDA runtime and driver calls of a trace.",
    (
        _CORRELATION,
        _PROCESS,
        _START,
        _END,
        identifier("thread", "calling thread"),
        text("name", "function, without a version of four digits, as in `nsys stats`"),
        _RANGE,
    ),
    spans=(("start_ns", "end_ns"),),
)

OPERATIONS = Table(
    "operations",
    "Operators of PyTorch in a trace. Their device times are those of the kernels, copies and sets that they launched.",
    (
        identifier("operation_id", "identifies the operation within the run"),
        identifier("parent_id", "operation that encloses it on the same thread", nullable=True),
        _PROCESS,
        identifier("thread", "calling thread"),
        _START,
        _END,
        text("name", "operator, e.g. `aten::mm`"),
        text("input_dims", "shapes of the inputs as JSON; empty where the profiler recorded none"),
        text("input_types", "types of the inputs as JSON; likewise"),
        text("input_strides", "strides of the inputs as JSON; likewise"),
        text("concrete_inputs", "values of scalar inputs as JSON; likewise"),
        identifier("sequence", "number that an operation of the forward pass shares with its backward pass", nullable=True),
        integer("forward_thread", "thread of the forward pass, of an operation of the backward pass", nullable=True),
        identifier("forward_id", "operation of the forward pass whose gradient this one computes", nullable=True),
        text("stack", "calls of Python that led to it, the innermost first; empty where the profiler recorded none"),
        integer("launches", "kernels, copies and sets that it launched itself", bits=32, least=0),
        integer("self_device_ns", "their time", "ns", least=0, most=FAR),
        integer("device_ns", "the time of those that it or an operation inside it launched", "ns", least=0, most=FAR),
        _RANGE,
    ),
    ("operation_id",),
    (("start_ns", "end_ns"),),
)

_RANK = integer("rank", "number of the process in the job", bits=32, least=0)
_ITERATION = integer("iteration", "number of the step", nullable=True, least=0)


def _lasts(name: str, meaning: str, *, nullable: bool = False) -> Column:
    return integer(name, meaning, "ns", least=0, most=FAR, nullable=nullable)


#: Columns that break the time of a rank or an iteration down.
_BREAKDOWN = (
    _lasts("span_ns", "from the start of the first device work to the end of the last"),
    _lasts("busy_ns", "time of the span in which any device work ran"),
    _lasts("compute_ns", "time in which compute ran"),
    _lasts("communication_ns", "time in which communication ran"),
    _lasts("memory_ns", "time in which copies or sets ran"),
    _lasts("exposed_ns", "time in which communication ran and compute did not"),
    _lasts(
        "host_wait_ns", "time of the span without device work, where the next work had not been launched when the last ended"
    ),
    _lasts("kernel_wait_ns", "the same, where it had been launched, and less than 30 us passed"),
    _lasts("other_idle_ns", "the rest of the span without device work"),
)

COLLECTIVES = Table(
    "collectives",
    "Communication kernels of a trace or of the ranks of a job. Where the ranks of a group could be matched, times are also on the job's "
    "clock: a rank arrives when its kernel starts, and waits until the last rank arrives.",
    (
        _RANK,
        _ITERATION,
        text("collective", "what it does, e.g. `allreduce`; as the trace names it, or from the kernel's name"),
        text("kernel", "short name of the kernel"),
        text("group", "name of the process group; `stream N` or `communication stream N` where the trace lacks it"),
        text("group_ranks", "ranks of the group as JSON; empty where the trace lacks them"),
        integer("group_size", "ranks of the group", bits=32, nullable=True, least=0),
        integer("number", "which collective of its group on this rank, from 0", bits=32, least=0),
        integer("sequence", "number that the process group gave it", nullable=True),
        integer("in_elements", "elements of the input", nullable=True, least=0),
        integer("out_elements", "elements of the output", nullable=True, least=0),
        text("element_type", "type of the elements; empty where the trace lacks it"),
        work("bytes", "the larger of input and output; 0 where the trace lacks the elements", "B"),
        _STREAM,
        _START,
        _END,
        identifier(
            "match", "the collective of the job that this one is a part of; null where it was not matched", nullable=True
        ),
        time("arrival_ns", "start on the job's clock; null where it was not matched", nullable=True),
        time("finish_ns", "end on the job's clock; likewise", nullable=True),
        _lasts("wait_ns", "from its arrival to the arrival of the last rank; likewise", nullable=True),
        integer(
            "transfer_ns",
            "from the arrival of the last rank to its own end; likewise",
            "ns",
            nullable=True,
            least=-FAR,
            most=FAR,
        ),
    ),
    spans=(("start_ns", "end_ns"),),
)

RANKS = Table(
    "ranks",
    "One row a rank of a job. A rank that is broken or missing has the reason, and nothing else.",
    (
        _RANK,
        text("status", "whether its profile was imported", values=RANK_STATUSES),
        text("detail", "why it was not"),
        text("host", "machine that it ran on; empty where the profile lacks it"),
        text("device_name", "name of its GPU; likewise"),
        text("file", "name of its profile"),
        integer("bytes", "size of that file", "B", least=0),
        integer("events", "events in it", least=0),
        *_BREAKDOWN,
        integer("launches", "kernels, copies and sets whose launch is in the profile", least=0),
        _lasts("launch_ns", "time of the calls that launched them"),
        _lasts("copy_calls_ns", "time of the host in calls that copy"),
        _lasts("delay_ns", "time from the end of such a call to the start of its work, in sum"),
        integer("delayed", "launches with a delay of more than 100 us", least=0),
        integer("short_kernels", "kernels that are shorter than the call that launched them", least=0),
        integer("collectives", "communication kernels that were matched with those of other ranks", least=0),
        _lasts("wait_ns", "time that it waited in them for other ranks; null where none was matched", nullable=True),
        integer("last", "how often it came last", nullable=True, least=0),
        real(
            "offset_ns",
            "its clock less the job's at the middle of the job; null where clocks could not be aligned",
            "ns",
            nullable=True,
        ),
        time("offset_at_ns", "the middle of the job on the job's clock; likewise", nullable=True),
        real("drift_ppm", "how much faster its clock is; likewise", "ppm", nullable=True),
        real(
            "uncertainty_ns",
            "how far its aligned ends are from those of the other ranks, as a standard deviation; likewise",
            "ns",
            nullable=True,
        ),
        real(
            "wait_uncertainty_ns",
            "standard deviation of `wait_ns` where it is compared with the wait of another rank; likewise",
            "ns",
            nullable=True,
        ),
        Column("late", pa.bool_(), "the other ranks wait for it: no rank waits less, beyond the uncertainty"),
        text(
            "cause", "why the other ranks wait for it: `compute`, `work`, `host`, `copies` or `clock`; empty where they do not"
        ),
    ),
    ("rank",),
)

ITERATIONS = Table(
    "iterations",
    "One row an iteration and rank. Device work belongs to the iteration in which it was launched.",
    (
        _RANK,
        integer("iteration", "number of the step", least=0),
        _START,
        _END,
        time("device_start_ns", "start of its first device work on the trace's clock; null without any", nullable=True),
        time("device_end_ns", "end of its last device work; likewise", nullable=True),
        *_BREAKDOWN,
        integer("collectives", "communication kernels that were matched with those of other ranks", least=0),
        _lasts("wait_ns", "time that it waited in them for other ranks; null where none was matched", nullable=True),
        integer("last", "how often it came last", nullable=True, least=0),
    ),
    ("rank", "iteration"),
    (("start_ns", "end_ns"), ("device_start_ns", "device_end_ns")),
)

RANK_KERNELS = Table(
    "rank_kernels",
    "Executions of each kernel by rank and iteration; copies and sets are named by their kind.",
    (
        _RANK,
        _ITERATION,
        text("name", "short name of the kernel", not_empty=True),
        text("kind", "what it does", values=WORK_KINDS),
        integer("count", "executions", least=1),
        _lasts("total_ns", "their time"),
        _lasts("least_ns", "time of the shortest"),
        _lasts("most_ns", "time of the longest"),
        real("square_ns2", "sum of the squares of their times", "ns^2", least=0),
    ),
)

IDLE = Table(
    "idle",
    "Gaps between the device work of a stream, by cause, and the work that waits in it.",
    (
        _RANK,
        _STREAM,
        *(
            column
            for cause, meaning in (
                ("host_wait", "gaps whose next work was not launched when the last ended"),
                ("kernel_wait", "gaps below 30 us whose next work had been launched"),
                ("other", "all other gaps"),
            )
            for column in (integer(f"{cause}_count", meaning, least=0), _lasts(f"{cause}_ns", "their time"))
        ),
        integer("queued", "changes of the number of launched and not started kernels", least=0),
        real("queue_mean", "mean of that number over the changes; null without one", nullable=True),
        integer("queue_most", "the largest number; likewise", nullable=True),
    ),
)

COUNTERS = Table(
    "counters",
    "Hardware counters of one launch.",
    (
        *_CELL,
        text("kernel", "kernel name"),
        _LAUNCH_INDEX,
        text("metric", "the tool's own name of the metric"),
        real("value", "reading"),
        text("unit", "the tool's own unit; empty for a ratio"),
    ),
    (*_CELL_KEY, "kernel", "launch_index", "metric"),
)

LAUNCHES = Table(
    "cell_launches",
    "The kernel launches of one execution of a cell, and the machine code of each. Launches that are alike are one row: the first of them, "
    "and their number.",
    (
        *_CELL,
        _LAUNCH_INDEX,
        integer("count", "launches of the cell that are alike", bits=32, least=1),
        text("kernel", "name of the kernel with its template arguments"),
        text("code", "row of `machine_code`; null where the code is not known", nullable=True),
        *(integer(f"grid_{axis}", "blocks along the axis", bits=32, least=1) for axis in "xyz"),
        *(integer(f"block_{axis}", "threads along the axis", bits=32, least=1) for axis in "xyz"),
        integer("dynamic_shared_bytes", "dynamic shared memory a block", "B", bits=32, least=0),
    ),
    (*_CELL_KEY, "launch_index"),
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
        *_CELL,
        _LAUNCH_INDEX,
        text("metric", "the tool's own name of the metric", not_empty=True),
        integer("instruction", "place of the instruction in `machine_code.sass`, from 0", bits=32, least=0),
        integer("value", "reading", least=0),
    ),
    (*_CELL_KEY, "launch_index", "metric", "instruction"),
)

RULES = Table(
    "rules",
    "What the rules of Nsight Compute find about one launch.",
    (
        *_CELL,
        _LAUNCH_INDEX,
        text("section", "section of the report, e.g. `SpeedOfLight`"),
        text("rule", "the tool's own name of the rule, e.g. `SOLBottleneck`", not_empty=True),
        integer("place", "place among the findings of the launch", bits=32, least=0),
        text("severity", "how the tool marks it", values=RULE_SEVERITIES),
        text("title", "the tool's own title"),
        text("text", "the tool's own words"),
        real("speedup_percent", "the speedup that the tool estimates; null where it estimates none", "%", nullable=True),
        text("speedup_of", "of what: `global` or `local`; empty without an estimate"),
    ),
    (*_CELL_KEY, "launch_index", "place"),
)

DIAGNOSTICS = Table(
    "diagnostics",
    "Data that the collector lost, could not attribute or distrusts.",
    (
        text("severity", "how much it matters", values=SEVERITIES),
        text("source", "check that reported it, e.g. `throttling`"),
        text("text", "the finding and its meaning"),
        *(
            Column(c.name, c.type, c.meaning + "; null where the finding is not about a single one", nullable=True)
            for c in _CELL
        ),
    ),
)

TABLES: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        RUN,
        CEILINGS,
        VARIANTS,
        CASES,
        RESULTS,
        SAMPLES,
        ENERGY,
        RANGES,
        KERNELS,
        MEMORY_OPS,
        API_CALLS,
        OPERATIONS,
        COLLECTIVES,
        RANKS,
        ITERATIONS,
        RANK_KERNELS,
        IDLE,
        COUNTERS,
        LAUNCHES,
        MACHINE_CODE,
        INSTRUCTION_COUNTERS,
        RULES,
        DIAGNOSTICS,
    )
}
