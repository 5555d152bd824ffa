"""Known deceptions that are not looked for, and why.

Most of them are code that attacks the process that it runs in. It can read and write all memory of that process, so that no check in
the same process holds. Run code that you do not trust elsewhere, and measure it there.
"""

from typing import Final

from tests.specimens.catalogue import (
    DEEP_REINFORCE,
    EIGH,
    EXPLOITS,
    FIELD_GUIDE,
    JAXBENCH,
    REFERENCE_KERNELS,
    STATIC_CHECKER,
    Kind,
    OutOfScope,
)

_MEMORY: Final = "It reads or writes memory of the process that measures, which code in the same process can always do."
_CODE: Final = "It changes code of the process that measures, which code in the same process can always do."
_RESULTS: Final = "It writes to what the process that measures reports to, which code in the same process can always do."


def _exploit(name: str, kind: Kind, idea: str, reason: str) -> OutOfScope:
    return OutOfScope(name, kind, idea, f"{EXPLOITS}/submission_{name}.py", reason)


OUT_OF_SCOPE: Final = (
    _exploit(
        "gc_nan", Kind.HARNESS, "It finds the expected outputs by the garbage collector, and fills them with NaN.", _MEMORY
    ),
    _exploit("gc_copy", Kind.HARNESS, "It finds the expected outputs by the garbage collector, and copies them.", _MEMORY),
    _exploit("combined", Kind.HARNESS, "It fills the expected outputs with NaN, and is slow while warming up.", _MEMORY),
    _exploit("gpu_scan_zeros", Kind.HARNESS, "It scans device memory for the expected outputs, and overwrites them.", _MEMORY),
    _exploit("error_counter", Kind.HARNESS, "A thread sets the counter of wrong elements in device memory to zero.", _MEMORY),
    _exploit("event_array", Kind.CLOCK, "It overwrites the handles of CUDA events on the heap.", _MEMORY),
    _exploit("test_canary_direct", Kind.HARNESS, "It overwrites the state of the harness.", _MEMORY),
    _exploit(
        "test_canary_make_writeable", Kind.HARNESS, "It makes pages of the harness writable, and overwrites them.", _MEMORY
    ),
    _exploit("aes_key_recovery", Kind.HARNESS, "It reads the key that signs results, and signs its own.", _MEMORY),
    _exploit("proc_mem_bypass", Kind.HARNESS, "It reads the key through /proc/self/mem.", _MEMORY),
    _exploit("heap_sig_scan", Kind.HARNESS, "It scans the heap for the signature of results, and reports its own.", _MEMORY),
    _exploit("stack_sig_scan", Kind.HARNESS, "It scans the stack for pointers to the signature.", _MEMORY),
    _exploit("function_detour", Kind.CLOCK, "It writes a jump into cudaEventElapsedTime.", _CODE),
    _exploit("got_patch", Kind.CLOCK, "It replaces the address of cudaEventElapsedTime in a table of the linker.", _CODE),
    _exploit("ptrace", Kind.CLOCK, "A child process writes into cudaEventElapsedTime through ptrace.", _CODE),
    _exploit("seccomp_trap", Kind.HARNESS, "It has the kernel trap writes, and rewrites what is reported.", _RESULTS),
    _exploit("fd_overwrite", Kind.HARNESS, "It writes results of its own to the pipe of the harness.", _RESULTS),
    _exploit("thread_fd", Kind.HARNESS, "A thread rewrites the results after they were written.", _RESULTS),
    _exploit("file_struct", Kind.HARNESS, "It redirects the stream that results are written to.", _RESULTS),
    _exploit("pipe_interpose", Kind.HARNESS, "A thread stands between the harness and its pipe, and rewrites times.", _RESULTS),
    _exploit(
        "replace_torch",
        Kind.HARNESS,
        "It writes a file torch.py into the working folder.",
        "Variants run with the rights of the user, and may write files.",
    ),
    OutOfScope(
        "patched_timers",
        Kind.CLOCK,
        "It replaces methods that the harness takes times with, such as those of CuPy's events.",
        EIGH,
        _CODE,
    ),
    OutOfScope(
        "patched_statistics",
        Kind.HARNESS,
        "It replaces the function that summarises times.",
        EIGH,
        "The dashboard computes statistics in another process, from the samples. Replaced functions of the process that measures: "
        + _CODE,
    ),
    OutOfScope(
        "reads_its_callers",
        Kind.HARNESS,
        "It looks at the frames of its callers, to find out whether it is being timed.",
        f"{EXPLOITS}/submission_file_struct.py",
        "Frames, and what they hold, are memory of the process. " + _MEMORY,
    ),
    OutOfScope(
        "predicts_its_inputs",
        Kind.HARNESS,
        "It seeds a generator as the harness does, and computes the outputs of the timed inputs before they are asked for.",
        f"{REFERENCE_KERNELS}/pull/142",
        "Seeds are kept in the run, so that a recording can be repeated. Code that reads the process that measures can find them.",
    ),
    OutOfScope(
        "falls_back_to_a_library",
        Kind.SKIPPED,
        "An exception handler, or the whole variant, calls the library that it should replace.",
        STATIC_CHECKER,
        "Its outputs and its time are right. What a variant may call is a rule of a contest, and not a measurement.",
    ),
    OutOfScope(
        "precision_within_the_tolerance",
        Kind.NUMBERS,
        "It computes in a lower precision, and stays within the tolerance.",
        DEEP_REINFORCE,
        "The tolerance says what is right. A tolerance is chosen with the workload.",
    ),
    OutOfScope(
        "terms_that_are_zero",
        Kind.CONSTANT,
        "It leaves out a bias or a branch that the inputs of the workload make zero, while other terms are not.",
        JAXBENCH,
        "Outputs are right for all inputs that the workload makes. Only outputs that do not depend on inputs at all are warned about.",
    ),
    OutOfScope(
        "simpler_mathematics",
        Kind.SKIPPED,
        "It leaves out operations that cancel out for all inputs, such as a subtraction before a normalisation.",
        JAXBENCH,
        "Outputs are right for all inputs. The workload asks for less work than its author meant.",
    ),
    OutOfScope(
        "shared_memory_overrun",
        Kind.UNWRITTEN,
        "A kernel reads past its shared memory, and the values there happen to be right.",
        FIELD_GUIDE,
        "Values that are wrong are found. Values that happen to be right are not; Compute Sanitizer finds the access itself.",
    ),
    OutOfScope(
        "mean_of_ratios",
        Kind.CLOCK,
        "One size is made to take almost no time, so that a mean over all sizes is zero.",
        f"{REFERENCE_KERNELS}/pull/159",
        "No mean over cases is taken. A time below the floor of its case is flagged.",
    ),
)
