"""Names that one room writes and another asks for: ceilings, phases, and sources of diagnostics, each written once.

`schema` prints them into the data dictionary. They are not closed sets: a run with other names can be read.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Literal

#: The collector of traces of PyTorch's profiler.
PYTORCH: Final = "pytorch_profiler"


#: What is asked of variants beside their times. A gate fails where it differs between two runs, unless that is allowed.
Asked = Literal["reference", "tolerance"]
REFERENCE: Final[Asked] = "reference"
TOLERANCE: Final[Asked] = "tolerance"
ASKED: Final[tuple[Asked, ...]] = (REFERENCE, TOLERANCE)


class Work(StrEnum):
    """A class of work of a kernel, which an experiment takes out."""

    GLOBAL_LOADS = "loads from global memory"
    GLOBAL_STORES = "stores to global memory"
    SHARED = "accesses of shared memory"
    LOCAL = "accesses of local memory"
    ATOMICS = "atomic operations"
    BARRIERS = "barriers"
    CONVERSIONS = "conversions between number types"
    SPECIAL = "special functions and divisions"
    INTEGER_DIVISION = "integer divisions"
    FP64 = "double-precision arithmetic"
    TENSOR = "tensor-core products"


class Experiment(StrEnum):
    """Column `experiment` of table `experiments`."""

    TIME = "time"
    WITHOUT = "without"
    DELAY = "delay"
    STAGE = "stage"
    ACCESS = "access"
    FACT = "fact"


#: Column `note` of a class that was done twice in place of not at all.
DONE_TWICE: Final = "done twice, and the time more taken off: its results choose addresses or branches"


class Fact(StrEnum):
    """Column `what` of table `experiments`, of the experiments `fact` and `access`."""

    BLOCKS = "blocks"
    THREADS = "threads of a block"
    MULTIPROCESSORS = "multiprocessors"
    USED_MULTIPROCESSORS = "multiprocessors with a block"
    RESIDENT_BLOCKS = "resident blocks of a multiprocessor"
    BUSY = "time with a block, of all multiprocessors"
    BUSY_FIRST_HALF = "time with a block, in the first half"
    SPILL_BYTES = "bytes of spills"
    CHASED = "address from the load before"
    SPLIT = "accesses at consecutive addresses"
    INSTRUCTIONS = "instructions"
    LANES = "active lanes of an instruction"
    TIMES = "times"
    ADDRESSES = "different addresses of a lane"
    SECTORS = "sectors over the least"
    BANK_PASSES = "passes of the banks"


class Ceiling:
    """Column `name` of table `ceilings`."""

    DEVICE_COPY: Final = "device_copy"
    DEVICE_READ: Final = "device_read"
    DEVICE_WRITE: Final = "device_write"
    DEVICE_8_TO_1: Final = "device_8_to_1"
    DEVICE_2_TO_1: Final = "device_2_to_1"
    DEVICE_1_TO_2: Final = "device_1_to_2"
    DEVICE_1_TO_8: Final = "device_1_to_8"
    FP32_FMA: Final = "fp32_fma"
    FP32_FMA_REGISTERS: Final = "fp32_fma_registers"
    FP64_FMA: Final = "fp64_fma"
    FP64_MMA: Final = "fp64_mma"
    TF32_MMA: Final = "tf32_mma"
    TF32_WGMMA: Final = "tf32_wgmma"
    TF32_CUBLAS: Final = "tf32_cublas"
    FP16_MMA: Final = "fp16_mma"
    FP16_WGMMA: Final = "fp16_wgmma"
    FP16_CUBLAS: Final = "fp16_cublas"
    BF16_MMA: Final = "bf16_mma"
    BF16_WGMMA: Final = "bf16_wgmma"
    BF16_CUBLAS: Final = "bf16_cublas"
    FP8_MMA: Final = "fp8_mma"
    FP8_WGMMA: Final = "fp8_wgmma"
    INT8_MMA: Final = "int8_mma"
    INT8_WGMMA: Final = "int8_wgmma"
    INT8_CUBLAS: Final = "int8_cublas"
    H2D_PAGEABLE: Final = "h2d_pageable"
    H2D_PINNED: Final = "h2d_pinned"
    D2H_PAGEABLE: Final = "d2h_pageable"
    D2H_PINNED: Final = "d2h_pinned"
    LAUNCH: Final = "launch"
    QUEUED_LAUNCH: Final = "queued_launch"
    GRAPH_NODE: Final = "graph_node"
    EVENT_OVERHEAD: Final = "event_overhead"
    EVENT_UNCERTAINTY: Final = "event_uncertainty"
    HOST_COPY: Final = "host_copy"
    HOST_FMA: Final = "host_fma"


CEILINGS: Final[Mapping[str, str]] = {
    Ceiling.DEVICE_COPY: "a kernel that copies device memory, bytes read and written, GB/s",
    Ceiling.DEVICE_READ: "a kernel that reads device memory, GB/s",
    Ceiling.DEVICE_WRITE: "a kernel that writes device memory, GB/s",
    Ceiling.DEVICE_8_TO_1: "a kernel that reads eight bytes of device memory for each byte that it writes, GB/s",
    Ceiling.DEVICE_2_TO_1: "a kernel that reads two bytes of device memory for each byte that it writes, GB/s",
    Ceiling.DEVICE_1_TO_2: "a kernel that writes two bytes of device memory for each byte that it reads, GB/s",
    Ceiling.DEVICE_1_TO_8: "a kernel that writes eight bytes of device memory for each byte that it reads, GB/s",
    Ceiling.FP32_FMA: "multiply-adds in fp32, one operand in uniform registers, TFLOP/s",
    Ceiling.FP32_FMA_REGISTERS: "multiply-adds in fp32, all operands in registers, TFLOP/s",
    Ceiling.FP64_FMA: "multiply-adds in fp64, TFLOP/s",
    Ceiling.FP64_MMA: "fp64 products of tensor cores by `mma.sync`, TFLOP/s",
    Ceiling.TF32_MMA: "TF32 products of tensor cores by `mma.sync`, TFLOP/s",
    Ceiling.TF32_WGMMA: "TF32 products of tensor cores by `wgmma`, TFLOP/s",
    Ceiling.TF32_CUBLAS: "TF32 products of cuBLAS, where the GPU has units that neither uses, TFLOP/s",
    Ceiling.FP16_MMA: "fp16 products with fp32 sums of tensor cores by `mma.sync`, TFLOP/s",
    Ceiling.FP16_WGMMA: "fp16 products with fp32 sums of tensor cores by `wgmma`, TFLOP/s",
    Ceiling.FP16_CUBLAS: "fp16 products with fp32 sums of cuBLAS, where the GPU has units that neither uses, TFLOP/s",
    Ceiling.BF16_MMA: "bf16 products with fp32 sums of tensor cores by `mma.sync`, TFLOP/s",
    Ceiling.BF16_WGMMA: "bf16 products with fp32 sums of tensor cores by `wgmma`, TFLOP/s",
    Ceiling.BF16_CUBLAS: "bf16 products with fp32 sums of cuBLAS, where the GPU has units that neither uses, TFLOP/s",
    Ceiling.FP8_MMA: "fp8 (E4M3) products with fp32 sums of tensor cores by `mma.sync`, TFLOP/s",
    Ceiling.FP8_WGMMA: "fp8 (E4M3) products with fp32 sums of tensor cores by `wgmma`, TFLOP/s",
    Ceiling.INT8_MMA: "int8 products with int32 sums of tensor cores by `mma.sync`, TFLOP/s",
    Ceiling.INT8_WGMMA: "int8 products with int32 sums of tensor cores by `wgmma`, TFLOP/s",
    Ceiling.INT8_CUBLAS: "int8 products with int32 sums of cuBLAS, where the GPU has units that neither uses, TFLOP/s",
    Ceiling.H2D_PAGEABLE: "copies from pageable host memory to the device, GB/s",
    Ceiling.H2D_PINNED: "copies from page-locked host memory to the device, GB/s",
    Ceiling.D2H_PAGEABLE: "copies from the device to pageable host memory, GB/s",
    Ceiling.D2H_PINNED: "copies from the device to page-locked host memory, GB/s",
    Ceiling.LAUNCH: "one empty kernel, us",
    Ceiling.QUEUED_LAUNCH: "each of many queued empty kernels, us",
    Ceiling.GRAPH_NODE: "each of many empty kernels in a CUDA graph, us",
    Ceiling.EVENT_OVERHEAD: "what two events add to the time of a kernel between them, us; taken off every device time of `cuda_events`",
    Ceiling.EVENT_UNCERTAINTY: "how far kernels of known length are from `event_overhead` at most, us",
    Ceiling.HOST_COPY: "a copy in host memory by all threads, bytes read and written, GB/s",
    Ceiling.HOST_FMA: "a product of matrices in fp32 by NumPy's BLAS, the quickest of up to 4096 x 4096, TFLOP/s",
}

#: Finds the bytes in the name of a ceiling that `nccl_allreduce` names.
NCCL_ALLREDUCE: Final = r"^nccl_allreduce_(\d+)_bytes$"


def nccl_allreduce(nbytes: int | str) -> str:
    """Name of the ceiling of NCCL's average of one array of so many bytes, us."""
    return f"nccl_allreduce_{nbytes}_bytes"


_BY_SIZE: Final = re.compile(r"^(.+)_(cold|hot)_(\d+)_bytes$")


def by_size(mix: str, cache: str, nbytes: int | str) -> str:
    """Name of the ceiling of a mix of reads and writes at a size, us.

    Args:
        mix: the ceiling of its rate, such as `device_copy`.
        cache: `cold` or `hot`.
        nbytes: bytes read and written.
    """
    return f"{mix}_{cache}_{nbytes}_bytes"


def found_by_size(name: str) -> tuple[str, str, int] | None:
    """The mix, the cache and the bytes of a name by `by_size`; None for other names."""
    match = _BY_SIZE.match(name)
    return (match[1], match[2], int(match[3])) if match else None


#: Names of ceilings by their bytes, of N bytes.
CEILINGS_BY_BYTES: Final[Mapping[str, str]] = {
    by_size("MIX", "CACHE", "N"): (
        "a kernel that reads and writes N bytes in the mix of `MIX`, such as `device_copy`, with a `cold` or `hot` L2, us; of "
        "`host_copy`, a thread that copies its share of N bytes"
    ),
    nccl_allreduce("N"): "NCCL's average of one array of N bytes, us",
}

#: How a scope in `samples` begins that is a part of an operation.
PHASE: Final = "phase:"


class Phase:
    """Scopes in `samples` of parts of an operation."""

    ALLOCATE: Final = f"{PHASE}allocate"
    H2D: Final = f"{PHASE}h2d"
    COMPUTE: Final = f"{PHASE}compute"
    D2H: Final = f"{PHASE}d2h"
    FREE: Final = f"{PHASE}free"
    ALLREDUCE: Final = f"{PHASE}allreduce"
    FIRST_CALL: Final = f"{PHASE}first_call"
    FORWARD: Final = f"{PHASE}forward"
    BACKWARD: Final = f"{PHASE}backward"
    CONTEXT: Final = f"{PHASE}context"
    IMPORT: Final = f"{PHASE}import"
    COMPILE: Final = f"{PHASE}compile"
    LOAD: Final = f"{PHASE}load"
    HAND_OVER: Final = f"{PHASE}hand_over"


PHASES: Final[Mapping[str, str]] = {
    Phase.ALLOCATE: "allocation of device memory",
    Phase.H2D: "copies to the device",
    Phase.COMPUTE: "the kernels",
    Phase.D2H: "copies from the device",
    Phase.FREE: "release of device memory",
    Phase.ALLREDUCE: "averages over all ranks, of one more execution beside the operation",
    Phase.FIRST_CALL: "a function's first call in a process, by the host's clock: it compiles, autotunes and loads; where those are phases "
    "of their own, the first hand-over, launch and wait",
    Phase.FORWARD: "the function, of one more execution beside the operation",
    Phase.BACKWARD: "its gradients, of the same execution",
    Phase.CONTEXT: "creation of the CUDA context in a fresh process",
    Phase.IMPORT: "import of the packages that a call needs, in a fresh process",
    Phase.COMPILE: "compilation of the kernel in a fresh process, or finding it in a cache on disk",
    Phase.LOAD: "load of the compiled code in a fresh process; part of `phase:compile` where a library does both in one",
    Phase.HAND_OVER: "hand-over of all arrays of a case to a library, the mean of many in a fresh process",
}


class Spent:
    """Column `phase` of table `phases`."""

    PLAN: Final = "plan"
    START: Final = "start"
    COMPILE: Final = "compile"
    CEILINGS: Final = "ceilings"
    INPUTS: Final = "inputs"
    REFERENCE: Final = "reference"
    PREPARE: Final = "prepare"
    VERIFY: Final = "verify"
    WARM_UP: Final = "warm_up"
    SAMPLES: Final = "samples"
    BETWEEN: Final = "between_samples"
    CHECKS: Final = "checks"
    MACHINE_CODE: Final = "machine_code"
    WAITING: Final = "waiting"


SPENT: Final[Mapping[str, str]] = {
    Spent.PLAN: "workloads and the user's file are imported, and cases are planned",
    Spent.START: "a measuring process starts, imports, and loads a workload",
    Spent.COMPILE: "kernels are compiled before the first case",
    Spent.CEILINGS: "ceilings are measured, or checked",
    Spent.INPUTS: "inputs are made",
    Spent.REFERENCE: "references are computed",
    Spent.PREPARE: "a cell is made ready, with its first call",
    Spent.VERIFY: "outputs are compared before the first sample and after the last one",
    Spent.WARM_UP: "executions before the first sample",
    Spent.SAMPLES: "executions that are timed, with what has to surround them: a flush of the cache, a barrier",
    Spent.BETWEEN: "between two samples: inputs change, settings are restored",
    Spent.CHECKS: "outputs of samples are compared, and cells are timed with inputs that they have not seen",
    Spent.MACHINE_CODE: "machine code is kept",
    Spent.WAITING: "the rest: the recorder waits for a measuring process to answer or to end",
}


class Source:
    """Column `source` of table `diagnostics`."""

    ABOVE_CEILING: Final = "above_ceiling"
    AGREEMENT: Final = "agreement"
    ATTRIBUTION: Final = "attribution"
    CEILINGS: Final = "ceilings"
    COLLECTIVES: Final = "collectives"
    COLLECTOR: Final = "collector"
    COLUMNS: Final = "columns"
    CONSTANT_REFERENCE: Final = "constant_reference"
    COPIES: Final = "copies"
    COUNTERS: Final = "counters"
    CUDA: Final = "cuda"
    CUT_OFF: Final = "cut_off"
    DATE: Final = "date"
    DISASSEMBLY: Final = "disassembly"
    DROPPED: Final = "dropped"
    ENERGY: Final = "energy"
    EXPERIMENTS: Final = "experiments"
    FIRST_USE: Final = "first_use"
    GPUS: Final = "gpus"
    GRAPHS: Final = "graphs"
    INPUTS: Final = "inputs"
    INTERRUPTED: Final = "interrupted"
    LAUNCHES: Final = "launches"
    LOAD: Final = "load"
    LOST: Final = "lost"
    NEVER_SYNCHRONIZED: Final = "never_synchronized"
    NOT_GROWING: Final = "not_growing"
    NOT_REACHED: Final = "not_reached"
    NSIGHT_COMPUTE: Final = "nsight_compute"
    NSYS: Final = "nsys"
    NVTX: Final = "nvtx"
    PROCESS_STATE: Final = "process_state"
    PROGRAMS: Final = "programs"
    RANKS: Final = "ranks"
    REFERENCE: Final = "reference"
    REPEATS_SKIPPED: Final = "repeats_skipped"
    REPORT: Final = "report"
    SANITIZER: Final = "sanitizer"
    TABLES: Final = "tables"
    THROTTLING: Final = "throttling"
    TIMES: Final = "times"
    TRACING: Final = "tracing"
    TRUST: Final = "trust"
    VARIANT_FROM: Final = "variant-from"
    WAITS_INSIDE: Final = "waits_inside"


SOURCES: Final[Mapping[str, str]] = {
    Source.ABOVE_CEILING: "a time below the floor of memory, of arithmetic or of copies, by more than a margin",
    Source.AGREEMENT: "how far CUDA events and the trace agree on the same executions",
    Source.ATTRIBUTION: "device work that no range launched, or that was attributed by time",
    Source.CEILINGS: "ceilings could not be measured",
    Source.COLLECTIVES: "collectives that could not be matched between ranks, or clocks that could not be aligned",
    Source.COLLECTOR: "a case could not be measured at all",
    Source.COLUMNS: "columns that a report lacks",
    Source.CONSTANT_REFERENCE: "a reference that hardly depends on the inputs, so that no variant can be trusted",
    Source.COPIES: "copies of a report with unknown values",
    Source.COUNTERS: "no counters could be read",
    Source.CUDA: "a report without CUDA activity or calls",
    Source.CUT_OFF: "the recording ended before its time and was finished by a later command",
    Source.DATE: "the start of a capture is not known",
    Source.DISASSEMBLY: "kernels whose machine code is not kept",
    Source.DROPPED: "records that a tracer dropped",
    Source.ENERGY: "cells without energy, and what else was in the energy of the others",
    Source.EXPERIMENTS: "altered kernels that broke their process",
    Source.FIRST_USE: "the steps of a first use that could not be timed",
    Source.GPUS: "numbers of GPUs that a case cannot be shared among",
    Source.GRAPHS: "CUDA graphs that were traced as a whole",
    Source.INPUTS: "there are no other inputs to verify with",
    Source.INTERRUPTED: "the user interrupted the recording",
    Source.LAUNCHES: "device work whose launch is not in the report",
    Source.LOAD: "other programs that took the processors meanwhile",
    Source.LOST: "samples whose device work is not in the trace",
    Source.NEVER_SYNCHRONIZED: "the clock was stopped while the device was at work",
    Source.NOT_GROWING: "a time that does not grow with the work",
    Source.NOT_REACHED: "cases and processes that the time limit left out",
    Source.NSIGHT_COMPUTE: "what was counted in a report of Nsight Compute, and what it lacks",
    Source.NSYS: "what Nsight Systems itself left in a report",
    Source.NVTX: "ranges that were never closed, or lack their thread",
    Source.PROCESS_STATE: "a variant changed a setting of its whole process",
    Source.RANKS: "ranks of a job without a usable profile, or whose iterations differ",
    Source.REFERENCE: "a reference that verifies less than it should",
    Source.PROGRAMS: "how whole programs were measured, and what they left behind",
    Source.REPEATS_SKIPPED: "a kernel that is faster in a hot batch than a hot L2 can explain",
    Source.REPORT: "a report that is incomplete",
    Source.SANITIZER: "what compute-sanitizer found in the kernels of a variant at its smallest case",
    Source.TABLES: "tables of a report that are not taken over",
    Source.THROTTLING: "samples that were taken while the clock was slowed down",
    Source.TIMES: "device work without start or end",
    Source.TRACING: "what a tracer did to the times, or why a run has no trace",
    Source.TRUST: "the run could not be checked",
    Source.VARIANT_FROM: "ranges or launches that were taken as measurements",
    Source.WAITS_INSIDE: "a call that waits for the device inside or has more launches than the driver queues; or samples whose work was queued late",
}

#: Sources of findings that the work of a cell was not done, not waited for, or not sound. A gate fails on them, though its outputs are
#: right.
NOT_DONE: Final = frozenset(
    {Source.ABOVE_CEILING, Source.NEVER_SYNCHRONIZED, Source.NOT_GROWING, Source.REPEATS_SKIPPED, Source.SANITIZER}
)


_CELL: Final = ("workload", "variant", "config", "case")


def diagnostic_row(severity: str, source: str, text: str, about: Mapping[Any, Any] = MappingProxyType({})) -> dict[str, Any]:
    """A row of `diagnostics`.

    Args:
        severity, source, text: its columns.
        about: a row that names the cell that it is about; empty where it is about none.
    """
    return {"severity": severity, "source": source, "text": text, **{name: about.get(name) for name in _CELL}}
