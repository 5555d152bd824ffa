"""How to get what a run lacks: of a trace, in the words of the tool that wrote it."""

from typing import Final, NamedTuple

from warpladder.data.names import PYTORCH

#: Names of profilers in column `collector` of table `run`.
NSIGHT_SYSTEMS: Final = "nsight_systems"
XLA_PROFILER: Final = "xla_profiler"
#: The workloads of the project that several GPUs can share.
RECORD_ON_SEVERAL_GPUS: Final = "warpladder record gan_tconv mlp_data_parallel --gpus 1,2,4"


class Advice(NamedTuple):
    """The advice to a user of a profiler for a trace that has more.

    Attributes:
        device: for the work of the device.
        ranges: for ranges.
        launches: for launches of work that the trace begins with.
        ranges_are: what the ranges of such a trace are called.
        code: an example with both, in Python; empty for `nsys profile`, whose options are named with each page.
    """

    device: str
    ranges: str
    launches: str
    ranges_are: str = "ranges"
    code: str = ""


_NSYS: Final = Advice(
    "profile with --trace cuda",
    "profile with --trace cuda,nvtx",
    "profile from the start of the program, or wait for the device (cudaDeviceSynchronize) before cudaProfilerStart",
    "NVTX ranges",
)
_ADVICE: Final = {
    PYTORCH: Advice(
        "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], or ProfilerActivity.XPU for an XPU",
        "mark parts of the program with torch.profiler.record_function",
        "call torch.cuda.synchronize() before the profiler starts",
        code="from torch.profiler import ProfilerActivity, profile, record_function\n\n"
        "with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:\n"
        '    with record_function("my part"):\n'
        "        run()\n"
        'profiler.export_chrome_trace("trace.json.gz")',
    ),
    XLA_PROFILER: Advice(
        "profile on a machine with a GPU or a TPU, with jax.profiler.trace",
        "mark parts of the program with jax.profiler.TraceAnnotation",
        "wait for the results (block_until_ready) before the profiler starts",
        code="import jax\n\n"
        'with jax.profiler.trace("profile"):\n'
        '    with jax.profiler.TraceAnnotation("my part"):\n'
        "        run().block_until_ready()",
    ),
}


def advice_of(collector: str) -> Advice:
    """The advice about a trace that a profiler wrote; that of Nsight Systems for any other tool."""
    return _ADVICE.get(collector, _NSYS)
