"""A detail: a table or figure that belongs to one of the source reports, with its charts; and the reports themselves."""

from dataclasses import dataclass, field
from typing import Final

from warpladder.dashboard.ui.view import OfRun, OfWorkload


@dataclass(frozen=True)
class Names:
    """The names that a detail looks for in a run. A test checks that the shipped runs have each of them.

    Attributes:
        workload: the only workload that has the detail; empty where any can have it.
        variants: variants of the workload.
        configs: pairs of a variant and a config of the workload.
        cases: cases of the workload.
        scopes: scopes of samples.
        kernels: names of traced kernels.
        beginnings: beginnings of the names of traced kernels.
    """

    workload: str = ""
    variants: tuple[str, ...] = ()
    configs: tuple[tuple[str, str], ...] = ()
    cases: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Detail:
    """A table or figure of the page Details.

    Attributes:
        name: in URLs.
        title: its title on the page.
        charts: its charts in an export.
        place: the place of its charts in an export, among the charts of the other details.
    """

    name: str
    title: str
    charts: OfRun | OfWorkload
    place: int
    names: Names = field(default_factory=Names)


#: Workload -> the report that its figures come from, with the hardware that the report names.
CITATIONS: Final = {
    "call_routes": 'E. Sgarbanti, "Advanced Computer Architectures Report", undated, section 0.3. GeForce GTX 1070, Core i5-4690K.',
    "tensor_transpose": 'E. Sgarbanti, "Advanced Computer Architectures Report", undated. GeForce GTX 1070, Core i5-4690K.',
    "conv2d": (
        'G. Matthews and M. Klobukov, "CUDA Assignment 3: 2D Convolution", Drexel University, 2017. GPU and CPU not named.'
    ),
    "cnn_conv": (
        'J. Danner, K. Torng and Y. Deng, "ECE 408 Final Project Report", University of Illinois, undated. '
        "GPU and CPU not named."
    ),
    "gan_tconv": 'S. Yi, "SHPC 2021 Fall Term Project Report", 2021. Two nodes of four GPUs; the report does not name them.',
    "mlp_elementwise": 'M. L. Wong, "CME213 Final Project Report", undated. GPU and CPU not named.',
    "mlp_training": 'M. L. Wong, "CME213 Final Project Report", undated. GPU and CPU not named.',
}
#: The host variant that corresponds to the reports' sequential code. The reports count their speedups from that code.
SEQUENTIAL: Final = "numba_serial"
#: The workloads of the two reports that use several GPUs.
ON_SEVERAL_GPUS: Final = ("gan_tconv", "mlp_data_parallel")
