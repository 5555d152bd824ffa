"""Every table of a run: its columns, types, units and meanings, each written once.

`store` refuses what does not fit this module, and `dictionary` prints it as `data/README.md`. `columns` has what a column is, and
`job_tables` and `kernel_tables` the tables of a job and of what is inside kernels. Other names that rooms share, of ceilings, phases and sources of diagnostics, stand in `names`.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from warpladder.data.columns import (
    CASE,
    CELL,
    CELL_KEY,
    DEVICE,
    END,
    FAR,
    LAUNCH_INDEX,
    START,
    STREAM,
    VARIANT,
    WORKLOAD,
    Column,
    Table,
    identifier,
    integer,
    real,
    text,
    time,
    work,
)
from warpladder.data.job_tables import COLLECTIVES, IDLE, ITERATIONS, RANK_DEVICES, RANK_KERNELS, RANKS
from warpladder.data.kernel_tables import EXPERIMENT_BLOCKS, EXPERIMENTS, INSTRUCTION_COUNTERS, LAUNCHES, MACHINE_CODE, RULES
from warpladder.data.names import SPENT

#: Version that is written. Version 2 added `samples.process`, version 3 the tables `cell_launches`, `machine_code`,
#: `instruction_counters` and `rules`, version 4 `operations`, `collectives`, `ranks`, `iterations`, `rank_kernels` and `idle`, version 5
#: `energy`, version 6 `rank_devices` and `synchronizations`, version 7 `phases`,
#: `memory_in_use`, `experiments` and `experiment_blocks`.
SCHEMA_VERSION: Final = 7
#: Versions that are read.
READABLE_VERSIONS: Final = (1, 2, 3, 4, 5, 6, 7)

RUN_KINDS: Final = ("recording", "import", "job")
VARIANT_KINDS: Final = ("cuda", "library", "host")
ROLES: Final = ("ceiling", "rung", "peer", "host", "specimen")
PRECISIONS: Final = ("fp32", "tf32", "3xtf32", "fp64", "fp16", "bf16", "fp8", "int8", "int", "mixed")
TRANSFERS: Final = ("pageable", "pinned", "overlapped")
STATUSES: Final = ("ok", "wrong_result", "skipped", "launch_error", "out_of_memory", "timeout")
CACHES: Final = ("cold", "hot")
SEVERITIES: Final = ("info", "warning", "error")
RANGE_STYLES: Final = ("push_pop", "start_end")
#: Name in `kernels` of a CUDA graph that was traced as a whole.
CUDA_GRAPH: Final = "[CUDA graph]"
SYNCHRONIZATION_KINDS: Final = ("stream_wait_event", "event", "stream", "context")
MEMORY_OP_KINDS: Final = ("h2d", "d2h", "d2d", "p2p", "h2h", "memset", "unified_h2d", "unified_d2h", "unknown")

_TWIN = integer("twin", "1 for the baseline's second copy (A/A)", bits=8, least=0, most=1)
#: The state of the GPU beside a measurement.
_STATE = (
    integer(
        "sm_clock_mhz",
        "SM clock that NVML tells beside the sample; the GPU may hold a lower one under load",
        "MHz",
        bits=32,
        nullable=True,
    ),
    real(
        "held_clock_mhz",
        "mean SM clock while it was measured: cycles over time of every multiprocessor, which kernels before and after it read; known of "
        "hot device samples and of loops",
        "MHz",
        nullable=True,
        later=True,
        least=0,
        most=1e6,
    ),
    integer("temperature_c", "GPU temperature", "°C", bits=16, nullable=True),
    real("power_w", "GPU power draw", "W", nullable=True),
    integer("throttle_reasons", "NVML bit mask; 0 where nothing slowed the clock", nullable=True),
)


def _or_null(columns: Iterable[Column], where: str) -> Iterator[Column]:
    """The same columns, which are null where their meaning has nothing to be about."""
    return (Column(each.name, each.type, f"{each.meaning}; null where {where}", nullable=True) for each in columns)


_PROCESS = identifier("process", "process id in the trace")
_CORRELATION = integer(
    "correlation", "joins an API call to the device work that it caused; unique within a process", least=-FAR, most=FAR
)
_RANGE = identifier("range_id", "innermost NVTX range open on the launching thread at the launch", nullable=True)
_TIME_RANGE = identifier(
    "time_range_id",
    "attribution by time: the innermost NVTX range open at the launch on the thread of the process that had a step open; else, where "
    "`range_id` is null, on the one other thread that had a range open; null if there is no such thread or it is the launching one, and in "
    "runs that are older than the column",
    nullable=True,
    later=True,
)

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
        integer(
            "cpu_threads", "threads of the processor that the recording could use", bits=32, nullable=True, later=True, least=1
        ),
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
        WORKLOAD,
        VARIANT,
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
        ),
    ),
    ("workload", "variant"),
)

CASES = Table(
    "cases",
    "Every case of the run, with its operations and bytes.",
    (
        WORKLOAD,
        CASE,
        integer(
            "size_rank",
            "order of the case on a size axis; null for a case that is verified and not charted",
            nullable=True,
        ),
        text("params", "JSON object: the workload's own axes", not_empty=True, json_object=True),
        integer("flops", "floating-point operations, a multiply-add counted as two", "FLOP", least=0),
        work("min_bytes", "each input read once and each output written once, in all passes together", "B"),
        work("h2d_bytes", "bytes copied to the device for one end-to-end operation", "B"),
        work("d2h_bytes", "bytes copied back from the device", "B"),
        integer("passes", "how often an operation goes over its arrays", later=True, default=1, least=1),
        text(
            "inputs_sha256",
            "SHA-256 of the source of the inputs' function; null where it is not the user's",
            nullable=True,
            later=True,
        ),
        text(
            "reference_sha256",
            "SHA-256 of the source of the reference; null where it is not the user's",
            nullable=True,
            later=True,
        ),
    ),
    ("workload", "case"),
)

RESULTS = Table(
    "results",
    "One row a cell, with its status. A cell that failed or was skipped has the reason in its row.",
    (
        *CELL,
        text("status", "how the cell ended", values=STATUSES),
        text("detail", "reason of the status, or why sampling stopped"),
        real("rel_l2_error", "norm(out - ref) / norm(ref) against float64", nullable=True, least=0, finite=False),
        real("max_rel_error", "max |out - ref| / max |ref| against float64", nullable=True, least=0, finite=False),
        real("tolerance", "largest rel_l2_error that passes", nullable=True, least=0),
        integer("verified_elements", "output elements compared", nullable=True, least=0),
    ),
    CELL_KEY,
)

SAMPLES = Table(
    "samples",
    "Every timed repetition.",
    (
        *CELL,
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
    (*CELL_KEY, "gpus", "rank", "cache", "scope", "twin", "round", "position"),
)

ENERGY = Table(
    "energy",
    "Readings of NVML's counter of the GPU's energy while a loop repeats a cell. An execution takes energy_mj * execution_ns / duration_ns - "
    "idle_w * execution_ns / 10^6 mJ; docs/collectors.md explains it.",
    (
        *CELL,
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
    (*CELL_KEY, "twin", "round"),
)

PHASES = Table(
    "phases",
    "Where the time of a recording went. The rows without a case are those of the recorder; the times add up to that of the recording, from "
    "its plan to the writing of the run.",
    (
        text("workload", "workload of the case; empty for what belongs to no case"),
        text("case", "the case; empty for what belongs to none"),
        integer("gpus", "number of GPUs, or of ranks, of the case; 0 for what belongs to none", bits=16, least=0),
        integer("process", "which of the run's processes, from 0", bits=32, least=0),
        text("phase", "what was done", values=tuple(SPENT)),
        text("scope", "scope of the samples; empty for other phases"),
        text("cache", "cache of the samples; empty for other phases"),
        integer("duration_ns", "time that the phase took, without the phases within it", "ns", least=1, most=FAR),
    ),
    ("workload", "case", "gpus", "process", "phase", "scope", "cache"),
)

RANGES = Table(
    "ranges",
    "NVTX ranges of a trace.",
    (
        identifier("range_id", "identifies the range within the run"),
        identifier("parent_id", "range that encloses this range on the same thread", nullable=True),
        integer("depth", "how many ranges enclose it", bits=32, least=0),
        _PROCESS,
        integer("thread", "thread id in the trace", least=-FAR, most=FAR),
        text("domain", "NVTX domain; empty for the default one"),
        text("text", "message"),
        text("style", "how it was opened and closed", values=RANGE_STYLES),
        START,
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
        *_or_null(CELL, "Warpladder did not open the range"),
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
        START,
        END,
        DEVICE,
        integer("context", "CUDA context id", nullable=True),
        STREAM,
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
        text(
            "collective",
            "what it communicates with other GPUs, e.g. `all_reduce`, by its arguments or its name; null where it only computes, where a graph "
            "was traced as a whole, and in runs that are older than the column",
            nullable=True,
            later=True,
        ),
    ),
    spans=(("start_ns", "end_ns"), ("launch_start_ns", "launch_end_ns")),
)

MEMORY_OPS = Table(
    "memory_ops",
    "Copies, sets and migrations of a trace.",
    (
        _CORRELATION,
        _PROCESS,
        START,
        END,
        text("kind", "direction", values=MEMORY_OP_KINDS),
        work("bytes", "bytes moved; null where the trace lacks them", "B", nullable=True),
        text("src_memory", "`pageable`, `pinned`, `device`, `managed`…; null where unknown", nullable=True),
        text("dst_memory", "likewise", nullable=True),
        DEVICE,
        STREAM,
        _RANGE,
        _TIME_RANGE,
    ),
    spans=(("start_ns", "end_ns"),),
)

MEMORY_IN_USE = Table(
    "memory_in_use",
    "Device memory in use over the time of a trace, a row for each change, by process, device and time. PyTorch's profiler records it with "
    "`profile_memory=True`, Nsight Systems with `--cuda-memory-usage=true`.",
    (
        _PROCESS,
        DEVICE,
        time("start_ns", "from when on, on the trace's clock"),
        text(
            "source",
            "who counts: PyTorch's caching allocator, or CUDA, whose allocations it makes",
            values=("allocator", "cuda"),
        ),
        work("bytes", "in use from then on", "B"),
        work("reserved_bytes", "held by the allocator, in use or not; null where that is not known", "B", nullable=True),
    ),
)

API_CALLS = Table(
    "api_calls",
    "CUDA runtime and driver calls of a trace.",
    (
        _CORRELATION,
        _PROCESS,
        START,
        END,
        integer("thread", "calling thread", least=-FAR, most=FAR),
        text("name", "function, without a version of four digits, as in `nsys stats`"),
        _RANGE,
    ),
    spans=(("start_ns", "end_ns"),),
)

SYNCHRONIZATIONS = Table(
    "synchronizations",
    "Waits of a trace: a stream or the host waited for an event or for all work of a stream or context. PyTorch's profiler records them with "
    "`enable_cuda_sync_events`, Nsight Systems by itself.",
    (
        _CORRELATION,
        _PROCESS,
        START,
        END,
        text(
            "kind",
            "a stream waits for an event; the host waits for an event, a stream, or a context",
            values=SYNCHRONIZATION_KINDS,
        ),
        DEVICE,
        integer("stream", "stream that waits, or that the host waits for; null where there is none", nullable=True),
        integer("event_stream", "stream on which the event was recorded; null where that is not known", nullable=True),
        integer("event_correlation", "`correlation` of the call that recorded the event; likewise", nullable=True),
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
        integer("thread", "calling thread", least=-FAR, most=FAR),
        START,
        END,
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
        _TIME_RANGE,
    ),
    ("operation_id",),
    (("start_ns", "end_ns"),),
)

COUNTERS = Table(
    "counters",
    "Hardware counters of one launch.",
    (
        *CELL,
        text("kernel", "kernel name"),
        LAUNCH_INDEX,
        text("metric", "the tool's own name of the metric"),
        real("value", "reading"),
        text("unit", "the tool's own unit; empty for a ratio"),
    ),
    (*CELL_KEY, "kernel", "launch_index", "metric"),
)

DIAGNOSTICS = Table(
    "diagnostics",
    "Data that the collector lost, could not attribute or distrusts.",
    (
        text("severity", "how much it matters", values=SEVERITIES),
        text("source", "check that reported it, e.g. `throttling`"),
        text("text", "the finding and its meaning"),
        *_or_null(CELL, "the finding is not about a single one"),
    ),
)

TABLES: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        *(RUN, CEILINGS, VARIANTS, CASES, RESULTS, SAMPLES, ENERGY, PHASES),
        *(RANGES, KERNELS, MEMORY_OPS, MEMORY_IN_USE, API_CALLS, SYNCHRONIZATIONS, OPERATIONS),
        *(COLLECTIVES, RANKS, RANK_DEVICES, ITERATIONS, RANK_KERNELS, IDLE),
        *(COUNTERS, LAUNCHES, MACHINE_CODE, INSTRUCTION_COUNTERS, RULES),
        *(EXPERIMENTS, EXPERIMENT_BLOCKS, DIAGNOSTICS),
    )
}
