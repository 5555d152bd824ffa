"""Names that one room writes and another asks for: ceilings, phases, and sources of diagnostics, each written once.

`schema` prints them into the data dictionary. They are not closed sets: a run with other names can be read.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
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


#: Column `note` of a class without which the kernel broke, so that its time is null.
BROKE: Final = "the altered kernel broke its process"
#: Column `note` of a class that was done twice in place of not at all.
DONE_TWICE: Final = "done twice, and the time more taken off: its results choose addresses or branches"


class Fact(StrEnum):
    """Column `what` of table `experiments`, of the experiments `fact` and `access`."""

    LAUNCHES = "launches"
    PART = "time of the kernel, of all launches"
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


def _named(meanings: dict[str, str], name: str, meaning: str) -> str:
    """The name, whose meaning the data dictionary gives."""
    meanings[name] = meaning
    return name


CEILINGS: Final[dict[str, str]] = {}
_ceiling: Final = partial(_named, CEILINGS)


class Ceiling:
    """Column `name` of table `ceilings`."""

    DEVICE_COPY: Final = _ceiling("device_copy", "a kernel that copies device memory, bytes read and written, GB/s")
    DEVICE_READ: Final = _ceiling("device_read", "a kernel that reads device memory, GB/s")
    DEVICE_WRITE: Final = _ceiling("device_write", "a kernel that writes device memory, GB/s")
    DEVICE_8_TO_1: Final = _ceiling(
        "device_8_to_1", "a kernel that reads eight bytes of device memory for each byte that it writes, GB/s"
    )
    DEVICE_2_TO_1: Final = _ceiling(
        "device_2_to_1", "a kernel that reads two bytes of device memory for each byte that it writes, GB/s"
    )
    DEVICE_1_TO_2: Final = _ceiling(
        "device_1_to_2", "a kernel that writes two bytes of device memory for each byte that it reads, GB/s"
    )
    DEVICE_1_TO_8: Final = _ceiling(
        "device_1_to_8", "a kernel that writes eight bytes of device memory for each byte that it reads, GB/s"
    )
    FP32_FMA: Final = _ceiling("fp32_fma", "multiply-adds in fp32, one operand in uniform registers, TFLOP/s")
    FP32_FMA_REGISTERS: Final = _ceiling("fp32_fma_registers", "multiply-adds in fp32, all operands in registers, TFLOP/s")
    FP64_FMA: Final = _ceiling("fp64_fma", "multiply-adds in fp64, TFLOP/s")
    FP64_MMA: Final = _ceiling("fp64_mma", "fp64 products of tensor cores by `mma.sync`, TFLOP/s")
    TF32_MMA: Final = _ceiling("tf32_mma", "TF32 products of tensor cores by `mma.sync`, TFLOP/s")
    TF32_WGMMA: Final = _ceiling("tf32_wgmma", "TF32 products of tensor cores by `wgmma`, TFLOP/s")
    TF32_CUBLAS: Final = _ceiling("tf32_cublas", "TF32 products of cuBLAS, where the GPU has units that neither uses, TFLOP/s")
    FP16_MMA: Final = _ceiling("fp16_mma", "fp16 products with fp32 sums of tensor cores by `mma.sync`, TFLOP/s")
    FP16_WGMMA: Final = _ceiling("fp16_wgmma", "fp16 products with fp32 sums of tensor cores by `wgmma`, TFLOP/s")
    FP16_CUBLAS: Final = _ceiling(
        "fp16_cublas", "fp16 products with fp32 sums of cuBLAS, where the GPU has units that neither uses, TFLOP/s"
    )
    BF16_MMA: Final = _ceiling("bf16_mma", "bf16 products with fp32 sums of tensor cores by `mma.sync`, TFLOP/s")
    BF16_WGMMA: Final = _ceiling("bf16_wgmma", "bf16 products with fp32 sums of tensor cores by `wgmma`, TFLOP/s")
    BF16_CUBLAS: Final = _ceiling(
        "bf16_cublas", "bf16 products with fp32 sums of cuBLAS, where the GPU has units that neither uses, TFLOP/s"
    )
    FP8_MMA: Final = _ceiling("fp8_mma", "fp8 (E4M3) products with fp32 sums of tensor cores by `mma.sync`, TFLOP/s")
    FP8_WGMMA: Final = _ceiling("fp8_wgmma", "fp8 (E4M3) products with fp32 sums of tensor cores by `wgmma`, TFLOP/s")
    INT8_MMA: Final = _ceiling("int8_mma", "int8 products with int32 sums of tensor cores by `mma.sync`, TFLOP/s")
    INT8_WGMMA: Final = _ceiling("int8_wgmma", "int8 products with int32 sums of tensor cores by `wgmma`, TFLOP/s")
    INT8_CUBLAS: Final = _ceiling(
        "int8_cublas", "int8 products with int32 sums of cuBLAS, where the GPU has units that neither uses, TFLOP/s"
    )
    H2D_PAGEABLE: Final = _ceiling("h2d_pageable", "copies from pageable host memory to the device, GB/s")
    H2D_PINNED: Final = _ceiling("h2d_pinned", "copies from page-locked host memory to the device, GB/s")
    D2H_PAGEABLE: Final = _ceiling("d2h_pageable", "copies from the device to pageable host memory, GB/s")
    D2H_PINNED: Final = _ceiling("d2h_pinned", "copies from the device to page-locked host memory, GB/s")
    LAUNCH: Final = _ceiling("launch", "one empty kernel, us")
    QUEUED_LAUNCH: Final = _ceiling("queued_launch", "each of many queued empty kernels, us")
    GRAPH_NODE: Final = _ceiling("graph_node", "each of many empty kernels in a CUDA graph, us")
    EVENT_OVERHEAD: Final = _ceiling(
        "event_overhead",
        "what two events add to the time of a kernel between them, us; taken off every device time of `cuda_events`",
    )
    EVENT_UNCERTAINTY: Final = _ceiling(
        "event_uncertainty", "how far kernels of known length are from `event_overhead` at most, us"
    )
    HOST_COPY: Final = _ceiling("host_copy", "a copy in host memory by all threads, bytes read and written, GB/s")
    HOST_FMA: Final = _ceiling(
        "host_fma", "a product of matrices in fp32 by NumPy's BLAS, the quickest of up to 4096 x 4096, TFLOP/s"
    )


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


PHASES: Final[dict[str, str]] = {}
_phase: Final = partial(_named, PHASES)


class Phase:
    """Scopes in `samples` of parts of an operation."""

    ALLOCATE: Final = _phase(f"{PHASE}allocate", "allocation of device memory")
    H2D: Final = _phase(f"{PHASE}h2d", "copies to the device")
    COMPUTE: Final = _phase(f"{PHASE}compute", "the kernels")
    D2H: Final = _phase(f"{PHASE}d2h", "copies from the device")
    FREE: Final = _phase(f"{PHASE}free", "release of device memory")
    ALLREDUCE: Final = _phase(f"{PHASE}allreduce", "averages over all ranks, of one more execution beside the operation")
    FIRST_CALL: Final = _phase(
        f"{PHASE}first_call",
        "a function's first call in a process, by the host's clock: it compiles, autotunes and loads; where those are phases of their own, the first hand-over, launch and wait",
    )
    FORWARD: Final = _phase(f"{PHASE}forward", "the function, of one more execution beside the operation")
    BACKWARD: Final = _phase(f"{PHASE}backward", "its gradients, of the same execution")
    CONTEXT: Final = _phase(f"{PHASE}context", "creation of the CUDA context in a fresh process")
    IMPORT: Final = _phase(f"{PHASE}import", "import of the packages that a call needs, in a fresh process")
    COMPILE: Final = _phase(f"{PHASE}compile", "compilation of the kernel in a fresh process, or finding it in a cache on disk")
    LOAD: Final = _phase(
        f"{PHASE}load",
        "load of the compiled code in a fresh process; part of `phase:compile` where a library does both in one",
    )
    HAND_OVER: Final = _phase(
        f"{PHASE}hand_over", "hand-over of all arrays of a case to a library, the mean of many in a fresh process"
    )


SPENT: Final[dict[str, str]] = {}
_spent: Final = partial(_named, SPENT)


class Spent:
    """Column `phase` of table `phases`."""

    PLAN: Final = _spent("plan", "workloads and the user's file are imported, and cases are planned")
    START: Final = _spent("start", "a measuring process starts, imports, and loads a workload")
    COMPILE: Final = _spent("compile", "kernels are compiled before the first case")
    CEILINGS: Final = _spent("ceilings", "ceilings are measured, or checked")
    INPUTS: Final = _spent("inputs", "inputs are made")
    REFERENCE: Final = _spent("reference", "references are computed")
    PREPARE: Final = _spent("prepare", "a cell is made ready, with its first call")
    VERIFY: Final = _spent("verify", "outputs are compared before the first sample and after the last one")
    WARM_UP: Final = _spent("warm_up", "executions before the first sample")
    SAMPLES: Final = _spent(
        "samples", "executions that are timed, with what has to surround them: a flush of the cache, a barrier"
    )
    BETWEEN: Final = _spent("between_samples", "between two samples: inputs change, settings are restored")
    CHECKS: Final = _spent("checks", "outputs of samples are compared, and cells are timed with inputs that they have not seen")
    MACHINE_CODE: Final = _spent("machine_code", "machine code is kept")
    WAITING: Final = _spent("waiting", "the rest: the recorder waits for a measuring process to answer or to end")


SOURCES: Final[dict[str, str]] = {}
_source: Final = partial(_named, SOURCES)


class Source:
    """Column `source` of table `diagnostics`."""

    ABOVE_CEILING: Final = _source(
        "above_ceiling", "a time below the floor of memory, of arithmetic or of copies, by more than a margin"
    )
    AGREEMENT: Final = _source("agreement", "how far CUDA events and the trace agree on the same executions")
    ATTRIBUTION: Final = _source("attribution", "device work that no range launched, or that was attributed by time")
    CEILINGS: Final = _source("ceilings", "ceilings could not be measured")
    COLLECTIVES: Final = _source(
        "collectives", "collectives that could not be matched between ranks, or clocks that could not be aligned"
    )
    COLLECTOR: Final = _source("collector", "a case could not be measured at all")
    COLUMNS: Final = _source("columns", "columns that a report lacks")
    CONSTANT_REFERENCE: Final = _source(
        "constant_reference", "a reference that hardly depends on the inputs, so that no variant can be trusted"
    )
    COPIES: Final = _source("copies", "copies of a report with unknown values")
    COUNTERS: Final = _source("counters", "no counters could be read")
    CUDA: Final = _source("cuda", "a report without CUDA activity or calls")
    CUT_OFF: Final = _source("cut_off", "the recording ended before its time and was finished by a later command")
    DATE: Final = _source("date", "the start of a capture is not known")
    DISASSEMBLY: Final = _source("disassembly", "kernels whose machine code is not kept")
    DROPPED: Final = _source("dropped", "records that a tracer dropped")
    ENERGY: Final = _source("energy", "cells without energy, and what else was in the energy of the others")
    EXPERIMENTS: Final = _source("experiments", "altered kernels that broke their process")
    FEWER_PROCESSES: Final = _source("fewer_processes", "processes that the time limit left out, with every case measured")
    FIRST_USE: Final = _source("first_use", "the steps of a first use that could not be timed")
    GPUS: Final = _source("gpus", "numbers of GPUs that a case cannot be shared among")
    GRAPHS: Final = _source("graphs", "CUDA graphs that were traced as a whole")
    INPUTS: Final = _source("inputs", "there are no other inputs to verify with, or a variant fails with altered ones")
    INTERRUPTED: Final = _source("interrupted", "the user interrupted the recording")
    LAUNCHES: Final = _source("launches", "device work whose launch is not in the report")
    LOAD: Final = _source("load", "other programs that took the processors meanwhile")
    LOST: Final = _source("lost", "samples whose device work is not in the trace")
    NEVER_SYNCHRONIZED: Final = _source("never_synchronized", "the clock was stopped while the device was at work")
    NOT_GROWING: Final = _source("not_growing", "a time that does not grow with the work")
    NOT_REACHED: Final = _source("not_reached", "cases that the time limit left out")
    NSIGHT_COMPUTE: Final = _source("nsight_compute", "what was counted in a report of Nsight Compute, and what it lacks")
    NSYS: Final = _source("nsys", "what Nsight Systems itself left in a report")
    NVTX: Final = _source("nvtx", "ranges that were never closed, or lack their thread")
    PROCESS_STATE: Final = _source("process_state", "a variant changed a setting of its whole process")
    PROTON: Final = _source("proton", "how times in a trace of Triton's profiler were read")
    RANKS: Final = _source("ranks", "ranks of a job without a usable profile, or whose iterations differ")
    REFERENCE: Final = _source("reference", "a reference that verifies less than it should")
    PROGRAMS: Final = _source("programs", "how whole programs were measured, and what they left behind")
    REPEATS_SKIPPED: Final = _source("repeats_skipped", "a kernel that is faster in a hot batch than a hot L2 can explain")
    REPORT: Final = _source("report", "a report that is incomplete")
    SANITIZER: Final = _source("sanitizer", "what compute-sanitizer found in the kernels of a variant at its smallest case")
    STRESS: Final = _source("stress", "what random delays in the kernels of a variant changed at its smallest case")
    TABLES: Final = _source("tables", "tables of a report that are not taken over")
    THROTTLING: Final = _source("throttling", "samples that were taken while the clock was slowed down")
    TIMES: Final = _source("times", "device work without start or end")
    TRACING: Final = _source("tracing", "what a tracer did to the times, or why a run has no trace")
    TRUST: Final = _source("trust", "the run could not be checked")
    VARIANT_FROM: Final = _source("variant-from", "ranges or launches that were taken as measurements")
    WAITS_INSIDE: Final = _source(
        "waits_inside",
        "a call that waits for the device inside or has more launches than the driver queues; or samples whose work was queued late",
    )


#: Sources of findings that the work of a cell was not done, not waited for, or not sound. A gate fails on them, though its outputs are
#: right.
NOT_DONE: Final = frozenset(
    {
        *(Source.ABOVE_CEILING, Source.NEVER_SYNCHRONIZED, Source.NOT_GROWING),
        *(Source.REPEATS_SKIPPED, Source.SANITIZER, Source.STRESS),
    }
)


#: Column `source` of the variants that are whole programs. Their `source_text` has hashes of the files that the command names; what a program
#: loads besides, such as modules and libraries, no run tells.
WHOLE_PROGRAM: Final = "a whole program, timed from its start to its exit"

_CELL: Final = ("workload", "variant", "config", "case")


def diagnostic_row(severity: str, source: str, text: str, about: Mapping[Any, Any] = MappingProxyType({})) -> dict[str, Any]:
    """A row of `diagnostics`.

    Args:
        severity, source, text: its columns.
        about: a row that names the cell that it is about; empty where it is about none.
    """
    return {"severity": severity, "source": source, "text": text, **{name: about.get(name) for name in _CELL}}
