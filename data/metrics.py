"""The hardware counters that Warpladder collects and shows, each once, under Nsight Compute's own names.

Two rooms share this list: the collector asks Nsight Compute for these metrics, and the dashboard joins, names and shows them.
Each metric costs passes over the kernel, so this list has only metrics that a page shows. The meanings are in our words;
`docs.nvidia.com/nsight-compute/ProfilingGuide` has the definitions.
"""

from dataclasses import dataclass
from typing import Final, Literal

#: How the launches of one cell are combined: their sum, their average weighted by device time, or their largest value.
Combine = Literal["sum", "mean", "max"]


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: Nsight Compute's.
        group: what it is shown with on the page Why.
        meaning: a few words.
        combine: how the launches of a cell are combined.
    """

    name: str
    group: str
    meaning: str
    combine: Combine = "mean"


TIME: Final = "gpu__time_duration.sum"
COMPUTE: Final = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY: Final = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM: Final = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
L2: Final = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
L1: Final = "l1tex__throughput.avg.pct_of_peak_sustained_active"
TENSOR: Final = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
TENSOR_ELAPSED: Final = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
FMA: Final = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"
ALU: Final = "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed"
FP64: Final = "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed"
XU: Final = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed"
LSU: Final = "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed"
L1_DATA: Final = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
SHARED_DATA: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed"
ISSUED: Final = "sm__inst_issued.avg.pct_of_peak_sustained_elapsed"
DRAM_READ: Final = "dram__bytes_read.sum"
DRAM_WRITE: Final = "dram__bytes_write.sum"
L1_HIT: Final = "l1tex__t_sector_hit_rate.pct"
L2_HIT: Final = "lts__t_sector_hit_rate.pct"
L2_SECTORS: Final = "lts__t_sectors_srcunit_tex.sum"
LOAD_REQUESTS: Final = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
LOAD_SECTORS: Final = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
STORE_REQUESTS: Final = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
STORE_SECTORS: Final = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
LOAD_WAVEFRONTS: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
LOAD_CONFLICTS: Final = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
STORE_WAVEFRONTS: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
STORE_CONFLICTS: Final = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
WAVEFRONTS: Final = "l1tex__data_pipe_lsu_wavefronts.sum"
SHARED_WAVEFRONTS: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
ALL_L2_SECTORS: Final = "lts__t_sectors.sum"
INSTRUCTIONS: Final = "smsp__inst_executed.sum"
LOCAL_LOADS: Final = "smsp__sass_inst_executed_op_local_ld.sum"
LOCAL_STORES: Final = "smsp__sass_inst_executed_op_local_st.sum"
CYCLES: Final = "sm__cycles_elapsed.avg"
ACTIVE_CYCLES: Final = "sm__cycles_active.avg"
WARPS: Final = "smsp__warps_active.avg.per_cycle_active"
CLOCK: Final = "gpc__cycles_elapsed.avg.per_second"
OCCUPANCY: Final = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL: Final = "sm__maximum_warps_per_active_cycle_pct"
WAVES: Final = "launch__waves_per_multiprocessor"
REGISTERS: Final = "launch__registers_per_thread"
SHARED_BYTES: Final = "launch__shared_mem_per_block"
GRID: Final = "launch__grid_size"
BLOCK: Final = "launch__block_size"
ISSUE: Final = "smsp__issue_active.avg.pct_of_peak_sustained_active"

#: Metric of the most blocks on a multiprocessor that a resource allows -> name of the resource. The smallest one limits the
#: occupancy.
LIMITS: Final = {
    "launch__occupancy_limit_registers": "registers",
    "launch__occupancy_limit_shared_mem": "shared memory",
    "launch__occupancy_limit_warps": "warps",
    "launch__occupancy_limit_blocks": "blocks",
    "launch__occupancy_limit_barriers": "barriers",
}

#: State of a warp -> what it does or waits for. In the first two states it does not wait.
STALLS: Final = {
    "selected": "issues an instruction",
    "not_selected": "is ready, and another warp was taken",
    "long_scoreboard": "waits for global, local or texture memory",
    "short_scoreboard": "waits for shared memory or a special function",
    "lg_throttle": "waits: the queue to global and local memory is full",
    "mio_throttle": "waits: the queue to shared memory and special functions is full",
    "tex_throttle": "waits: the queue to the texture unit is full",
    "math_pipe_throttle": "waits: the arithmetic unit is busy",
    "barrier": "waits at a barrier of its block",
    "membar": "waits at a memory fence",
    "wait": "waits for the fixed latency of its last instruction",
    "gmma": "waits for the tensor core",
    "branch_resolving": "waits for the target of a branch",
    "dispatch_stall": "waits for the dispatcher",
    "no_instruction": "waits for its next instruction to be fetched",
    "imc_miss": "waits for a constant that its cache does not hold",
    "drain": "has ended and waits for its stores",
    "sleeping": "sleeps",
    "misc": "waits for another reason",
}
#: States in which a warp does not wait.
ISSUING: Final = ("selected", "not_selected")

#: By precision: arithmetic instruction -> number of operations that it counts as.
OPERATIONS: Final = {
    "fp32": {"fadd": 1, "fmul": 1, "ffma": 2},
    "fp64": {"dadd": 1, "dmul": 1, "dfma": 2},
}


def stall_metric(reason: str) -> str:
    """The metric of a state of `STALLS`: warps in that state for each issued instruction. This equals the cycles that a warp
    spends in the state between two instructions."""
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


def operation_metric(instruction: str) -> str:
    """The metric of an instruction of `OPERATIONS`, counted by thread, without threads that are predicated off."""
    return f"smsp__sass_thread_inst_executed_op_{instruction}_pred_on.sum"


METRICS: Final = (
    Metric(TIME, "speed of light", "time on the device", "sum"),
    Metric(COMPUTE, "speed of light", "the busiest unit of the multiprocessors, of its peak"),
    Metric(MEMORY, "speed of light", "the busiest part of the memory system, of its peak"),
    Metric(DRAM, "speed of light", "device memory, of its peak"),
    Metric(L2, "speed of light", "L2 cache, of its peak"),
    Metric(L1, "speed of light", "L1 cache and shared memory, of their peak while active"),
    Metric(TENSOR, "speed of light", "tensor cores, of their peak while active"),
    Metric(ISSUE, "speed of light", "cycles in which an instruction was issued, while active"),
    Metric(ISSUED, "speed of light", "issue slots, of all of them"),
    Metric(TENSOR_ELAPSED, "speed of light", "tensor cores, of their peak"),
    Metric(FMA, "speed of light", "FMA pipe, of its peak"),
    Metric(ALU, "speed of light", "ALU pipe, of its peak"),
    Metric(FP64, "speed of light", "FP64 pipe, of its peak"),
    Metric(XU, "speed of light", "special functions and conversions (XU), of their peak"),
    Metric(LSU, "speed of light", "instructions of the load and store unit (LSU), of their peak"),
    Metric(SHARED_DATA, "speed of light", "data path of L1 and shared memory for shared memory alone, of its peak"),
    Metric(L1_DATA, "speed of light", "data path of L1 and shared memory, of its peak"),
    Metric(CYCLES, "speed of light", "cycles of a multiprocessor", "sum"),
    Metric(ACTIVE_CYCLES, "speed of light", "cycles in which it had a warp, the mean over the multiprocessors", "sum"),
    Metric(CLOCK, "speed of light", "clock of the multiprocessors"),
    Metric(DRAM_READ, "memory", "bytes read from device memory", "sum"),
    Metric(DRAM_WRITE, "memory", "bytes written to device memory", "sum"),
    Metric(L1_HIT, "memory", "sectors found in L1"),
    Metric(L2_HIT, "memory", "sectors found in L2"),
    Metric(L2_SECTORS, "memory", "sectors of 32 bytes that L1 asked L2 for", "sum"),
    Metric(LOAD_REQUESTS, "memory", "loads of a warp from global memory", "sum"),
    Metric(LOAD_SECTORS, "memory", "sectors that they touched", "sum"),
    Metric(STORE_REQUESTS, "memory", "stores of a warp to global memory", "sum"),
    Metric(STORE_SECTORS, "memory", "sectors that they touched", "sum"),
    Metric(LOAD_WAVEFRONTS, "memory", "passes that loads from shared memory took", "sum"),
    Metric(LOAD_CONFLICTS, "memory", "those of them that a bank conflict added", "sum"),
    Metric(STORE_WAVEFRONTS, "memory", "passes that stores to shared memory took", "sum"),
    Metric(STORE_CONFLICTS, "memory", "those of them that a bank conflict added", "sum"),
    Metric(WAVEFRONTS, "memory", "passes of the data path of L1 and shared memory", "sum"),
    Metric(SHARED_WAVEFRONTS, "memory", "those of them for shared memory", "sum"),
    Metric(ALL_L2_SECTORS, "memory", "sectors of 32 bytes that L2 was asked for", "sum"),
    Metric(INSTRUCTIONS, "operations", "instructions, by warp", "sum"),
    Metric(LOCAL_LOADS, "operations", "loads from local memory, by warp", "sum"),
    Metric(LOCAL_STORES, "operations", "stores to local memory, by warp", "sum"),
    Metric(WARPS, "occupancy", "warps resident on a scheduler, while active"),
    Metric(OCCUPANCY, "occupancy", "warps resident, of the most that fit, while active"),
    Metric(THEORETICAL, "occupancy", "warps that this launch can have resident, of the most that fit"),
    *(Metric(name, "occupancy", f"blocks on a multiprocessor that {what} allow", "max") for name, what in LIMITS.items()),
    Metric(WAVES, "occupancy", "times that the grid fills the device"),
    Metric(REGISTERS, "occupancy", "registers a thread", "max"),
    Metric(SHARED_BYTES, "occupancy", "shared memory a block", "max"),
    Metric(GRID, "occupancy", "blocks", "max"),
    Metric(BLOCK, "occupancy", "threads a block", "max"),
    *(Metric(stall_metric(reason), "stalls", f"cycles that a warp {what}") for reason, what in STALLS.items()),
    *(
        Metric(operation_metric(instruction), "operations", f"{precision} {instruction} by thread", "sum")
        for precision, instructions in OPERATIONS.items()
        for instruction in instructions
    ),
)

#: Counters by instruction, without the samples of warps. Their sum over the instructions is the kernel's own counter.
EXECUTED: Final = "inst_executed"
THREADS_EXECUTED: Final = "thread_inst_executed_true"
SECTORS: Final = "memory_l2_theoretical_sectors_global"
SECTORS_IDEAL: Final = "memory_l2_theoretical_sectors_global_ideal"
PASSES: Final = "memory_l1_wavefronts_shared"
PASSES_IDEAL: Final = "memory_l1_wavefronts_shared_ideal"
SAMPLED: Final = "smsp__pcsamp_sample_count"
#: How the names of the samples of a state begin.
SAMPLED_IN: Final = "smsp__pcsamp_warps_issue_stalled_"
BY_INSTRUCTION: Final = (EXECUTED, THREADS_EXECUTED, SECTORS, SECTORS_IDEAL, PASSES, PASSES_IDEAL, SAMPLED)

BY_NAME: Final = {metric.name: metric for metric in METRICS}
