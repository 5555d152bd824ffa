"""The source reports, and what they count from."""

from typing import Final

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
