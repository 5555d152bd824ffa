"""The pairs of rungs that show what each idea of `data/ideas.py` gains, by which the tables of docs/kernels/ are made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Gain:
    """A rung before an idea and a rung with it, at one case of both.

    Attributes:
        before: the variant with its fastest config, or `variant[config]` for that config.
        after: the same with the idea.
        scope: `device` is taken with a cold L2, the other scopes with a hot one.
        gpus: GPUs that work together.
    """

    workload: str
    case: str
    before: str
    after: str
    scope: str = "device"
    gpus: int = 1


#: Name of the idea -> its pairs: where it gains most, and where it gains nothing or loses.
GAINS: Final[Mapping[str, tuple[Gain, ...]]] = {
    "coalesced-access": (
        Gain("mlp_gemm", "n=4096", "v01_one_dimensional", "v02_two_dimensional"),
        Gain("conv2d", "n=8192", "v02_naive_global", "v03_coalesced"),
        Gain("conv2d", "n=512", "v02_naive_global", "v03_coalesced"),
        Gain("mlp_elementwise", "op=transpose,n=8192", "v01_naive", "v02_coalesced"),
        Gain("mlp_elementwise", "op=sigmoid,n=8192", "v01_naive", "v02_coalesced"),
    ),
    "known-when-compiling": (
        Gain("tensor_transpose", "n=512,perm=102", "v05_shared", "v06_shared_template"),
        Gain("tensor_transpose", "n=512,perm=102", "v03_simple", "v04_simple_template"),
        Gain("tensor_transpose", "n=512,perm=210", "v03_simple", "v04_simple_template"),
        Gain("conv2d", "n=8192", "v03_coalesced", "v04_single_precision"),
    ),
    "shared-tile": (
        Gain("tensor_transpose", "n=512,perm=210", "v04_simple_template", "v06_shared_template"),
        Gain("mlp_gemm", "n=4096", "v02_two_dimensional", "v03_shared_tile"),
        Gain("conv2d", "n=8192", "v04_single_precision", "v06_shared_halo"),
        Gain("conv2d", "n=8192", "v04_single_precision", "v05_constant_shared"),
        Gain("cnn_conv", "layer=2,batch=10000", "v02_parallel", "v04_shared_tile"),
    ),
    "bank-conflicts": (
        Gain("tensor_transpose", "n=64,perm=210", "v06_shared_template", "v07_bank_padding"),
        Gain("tensor_transpose", "n=512,perm=201", "v06_shared_template", "v07_bank_padding"),
        Gain("tensor_transpose", "n=512,perm=210", "v06_shared_template", "v07_bank_padding"),
    ),
    "wide-access": (
        Gain("mlp_elementwise", "op=sigmoid,n=8192", "v02_coalesced", "v03_vectorized"),
        Gain("mlp_elementwise", "op=subtract,n=8192", "v02_coalesced", "v03_vectorized"),
        Gain("tensor_transpose", "n=64,perm=021", "v09_padded_tile", "v10_register_tile"),
        Gain("tensor_transpose", "n=512,perm=021", "v09_padded_tile", "v10_register_tile"),
        Gain("tensor_transpose", "n=512,perm=210", "v09_padded_tile", "v10_register_tile"),
    ),
    "block-order": (
        Gain("tensor_transpose", "n=512,perm=210", "v09_padded_tile", "v11_swizzled_tile"),
        Gain("tensor_transpose", "n=512,perm=201", "v09_padded_tile", "v11_swizzled_tile"),
        Gain("tensor_transpose", "n=512,perm=120", "v09_padded_tile", "v11_swizzled_tile"),
        Gain("tensor_transpose", "n=512,perm=021", "v09_padded_tile", "v11_swizzled_tile"),
    ),
    "loads-first": (
        Gain("conv2d", "n=512", "v08_sliding_window", "v09_loads_first"),
        Gain("conv2d", "n=8192", "v08_sliding_window", "v09_loads_first"),
        Gain("mlp_elementwise", "op=softmax,n=1000", "v02_coalesced", "v03_vectorized"),
        Gain("mlp_elementwise", "op=softmax,n=8192", "v02_coalesced", "v03_vectorized"),
        Gain("mlp_elementwise", "op=column_sum,n=8192", "v02_coalesced", "v03_vectorized"),
    ),
    "halo-from-neighbours": (
        Gain("conv2d", "shape=513x1027", "v09_loads_first", "v10_stacked_warps"),
        Gain("conv2d", "n=4096", "v09_loads_first", "v10_stacked_warps"),
        Gain("conv2d", "n=2048", "v09_loads_first", "v10_stacked_warps"),
        Gain("conv2d", "shape=513x1027", "v10_stacked_warps", "v11_shuffled_halo"),
        Gain("conv2d", "n=8192", "v10_stacked_warps", "v11_shuffled_halo"),
    ),
    "register-tile": (
        Gain("cnn_conv", "layer=2,batch=10000", "v02_parallel", "v05_register_tile"),
        Gain("mlp_gemm", "n=4096", "v03_shared_tile", "v04_column_strip"),
        Gain("mlp_gemm", "n=4096", "v04_column_strip", "v05_register_tile"),
        Gain("conv2d", "n=8192", "v06_shared_halo", "v07_register_tile"),
        Gain("conv2d", "n=512", "v06_shared_halo", "v07_register_tile"),
        Gain("mlp_gemm", "n=512", "v03_shared_tile", "v05_register_tile"),
    ),
    "sliding-window": (
        Gain("conv2d", "n=8192", "v07_register_tile", "v08_sliding_window"),
        Gain("conv2d", "n=512", "v07_register_tile", "v08_sliding_window"),
        Gain("cnn_conv", "layer=1,batch=10000", "v05_register_tile", "v06_sliding_rows"),
        Gain("cnn_conv", "layer=1,batch=100", "v05_register_tile", "v06_sliding_rows"),
    ),
    "warp-tiles": (
        Gain("mlp_gemm", "n=1024", "v05_register_tile", "v06_double_buffer"),
        Gain("mlp_gemm", "n=4096", "v05_register_tile", "v06_double_buffer"),
        Gain("mlp_gemm", "n=1024", "v06_double_buffer", "v07_warp_tile"),
        Gain("mlp_gemm", "n=4096", "v06_double_buffer", "v07_warp_tile"),
    ),
    "split-along-k": (
        Gain("mlp_gemm", "n=512", "v07_warp_tile", "v08_split_sums"),
        Gain("mlp_gemm", "n=1024", "v07_warp_tile", "v08_split_sums"),
        Gain("mlp_gemm", "n=2048", "v07_warp_tile", "v08_split_sums"),
        Gain("mlp_gemm", "n=4096", "v07_warp_tile", "v08_split_sums"),
    ),
    "equal-shares": (
        Gain("gan_tconv", "images=10", "v09_graph", "v14_few_images"),
        Gain("gan_tconv", "images=10", "v13_warpgroups_tf32", "v15_few_images_tf32"),
        Gain("mlp_training", "batch=8192", "v04_fused", "v09_full_waves"),
        Gain("mlp_training", "batch=8192", "v06_one_product", "v08_warpgroups_tf32"),
        Gain("mlp_training", "batch=800", "v06_one_product", "v08_warpgroups_tf32"),
        Gain("mlp_training", "batch=100", "v04_fused", "v09_full_waves"),
    ),
    "uniform-weights": (
        Gain("cnn_conv", "layer=2,batch=10000", "v07_map_a_lane", "v09_channel_at_a_time"),
        Gain("cnn_conv", "layer=2,batch=10000", "v02_parallel", "v03_constant_weights[over=grid]"),
        Gain("cnn_conv", "layer=1,batch=10000", "v06_sliding_rows", "v08_uniform_weights"),
        Gain("cnn_conv", "layer=1,batch=100", "v06_sliding_rows", "v08_uniform_weights"),
    ),
    "enough-blocks": (
        Gain("gan_tconv", "images=100", "v03_matrix_product", "v04_batched"),
        Gain("gan_tconv", "images=3", "v03_matrix_product", "v04_batched"),
        Gain("cnn_conv", "layer=2,batch=100", "v01_milestone3", "v02_parallel"),
        Gain("cnn_conv", "layer=2,batch=10000", "v01_milestone3", "v02_parallel"),
    ),
    "no-zero-products": (
        Gain("gan_tconv", "images=100", "v01_naive_grid", "v02_stride_two"),
        Gain("gan_tconv", "images=1000", "v05_mixed", "v08_phases"),
        Gain("gan_tconv", "images=10", "v02_stride_two", "v08_phases"),
    ),
    "fused-steps": (
        Gain("mlp_training", "batch=100", "v02_on_the_gpu", "v04_fused"),
        Gain("mlp_training", "batch=800", "v02_on_the_gpu", "v04_fused"),
        Gain("mlp_training", "batch=8192", "v02_on_the_gpu", "v04_fused"),
    ),
    "cuda-graph": (
        Gain("gan_tconv", "images=10", "v08_phases", "v09_graph", "operation"),
        Gain("gan_tconv", "images=10", "v08_phases", "v09_graph", "end_to_end"),
        Gain("gan_tconv", "images=10", "v08_phases", "v09_graph"),
        Gain("gan_tconv", "images=1000", "v08_phases", "v09_graph"),
    ),
    "tensor-cores": (
        Gain("mlp_gemm", "n=4096", "v08_split_sums", "v09_tensor_cores_tf32"),
        Gain("gan_tconv", "images=1000", "v09_graph", "v11_one_product"),
        Gain("mlp_training", "batch=8192", "v04_fused", "v06_one_product"),
        Gain("mlp_gemm", "n=512", "v08_split_sums", "v09_tensor_cores_tf32"),
    ),
    "toeplitz": (
        Gain("cnn_conv", "layer=2,batch=10000", "v09_channel_at_a_time", "v10_toeplitz_tf32"),
        Gain("cnn_conv", "layer=2,batch=100", "v09_channel_at_a_time", "v10_toeplitz_tf32"),
        Gain("cnn_conv", "layer=2,batch=10000", "v09_channel_at_a_time", "v12_bf16_corrections"),
        Gain("cnn_conv", "layer=1,batch=10000", "v08_uniform_weights", "v10_toeplitz_tf32"),
    ),
    "three-products": (
        Gain("mlp_gemm", "n=4096", "v08_split_sums", "v13_wgmma_3xtf32"),
        Gain("mlp_gemm", "n=4096", "v08_split_sums", "v10_tensor_cores_3xtf32"),
        Gain("mlp_gemm", "n=1024", "v08_split_sums", "v10_tensor_cores_3xtf32"),
        Gain("gan_tconv", "images=1000", "v09_graph", "v10_three_products"),
        Gain("cnn_conv", "layer=2,batch=10000", "v09_channel_at_a_time", "v11_toeplitz_3xtf32"),
        Gain("mlp_training", "batch=8192", "v04_fused", "v05_three_products"),
    ),
    "bf16-corrections": (
        Gain("cnn_conv", "layer=2,batch=10000", "v14_warpgroups_3xtf32", "v15_warpgroups_bf16_corrections"),
        Gain("cnn_conv", "layer=2,batch=10000", "v11_toeplitz_3xtf32", "v12_bf16_corrections"),
        Gain("cnn_conv", "layer=1,batch=10000", "v11_toeplitz_3xtf32", "v12_bf16_corrections"),
    ),
    "warpgroups": (
        Gain("mlp_gemm", "n=4096", "v09_tensor_cores_tf32", "v12_wgmma_tf32"),
        Gain("mlp_gemm", "n=4096", "v10_tensor_cores_3xtf32", "v13_wgmma_3xtf32"),
        Gain("gan_tconv", "images=1000", "v11_one_product", "v13_warpgroups_tf32"),
        Gain("mlp_training", "batch=8192", "v05_three_products", "v07_warpgroups_3xtf32"),
        Gain("cnn_conv", "layer=2,batch=10000", "v10_toeplitz_tf32", "v13_warpgroups_tf32"),
        Gain("mlp_training", "batch=100", "v05_three_products", "v07_warpgroups_3xtf32"),
        Gain("cnn_conv", "layer=2,batch=100", "v10_toeplitz_tf32", "v13_warpgroups_tf32"),
    ),
    "results-by-tma": (
        Gain("mlp_gemm", "n=4096", "v12_wgmma_tf32", "v15_staged_results_tf32"),
        Gain("mlp_gemm", "n=8192", "v12_wgmma_tf32", "v15_staged_results_tf32"),
        Gain("mlp_gemm", "n=1024", "v12_wgmma_tf32", "v15_staged_results_tf32"),
        Gain("cnn_conv", "layer=2,batch=10000", "v13_warpgroups_tf32", "v16_whole_images_tf32"),
        Gain("cnn_conv", "layer=2,batch=100", "v13_warpgroups_tf32", "v16_whole_images_tf32"),
    ),
    "rounded-on-load": (
        Gain("gan_tconv", "images=10", "v13_warpgroups_tf32", "v16_rounded_on_load_tf32"),
        Gain("gan_tconv", "images=100", "v13_warpgroups_tf32", "v16_rounded_on_load_tf32"),
        Gain("gan_tconv", "images=1000", "v13_warpgroups_tf32", "v16_rounded_on_load_tf32"),
    ),
    "clusters": (
        Gain("gan_tconv", "images=3", "v09_graph", "v14_few_images"),
        Gain("gan_tconv", "images=10", "v13_warpgroups_tf32", "v15_few_images_tf32"),
        Gain("gan_tconv", "images=100", "v09_graph", "v14_few_images"),
        Gain("gan_tconv", "images=1000", "v09_graph", "v14_few_images"),
        Gain("mlp_gemm", "n=1024", "v08_split_sums", "v16_cluster_sums"),
        Gain("mlp_gemm", "n=4096", "v12_wgmma_tf32", "v14_shared_columns_tf32"),
        Gain("mlp_gemm", "n=8192", "v12_wgmma_tf32", "v14_shared_columns_tf32"),
        Gain("mlp_gemm", "n=1024", "v12_wgmma_tf32", "v14_shared_columns_tf32"),
    ),
    "overlapped-copies": (
        Gain("gan_tconv", "images=10", "v05_mixed", "v06_pinned", "end_to_end"),
        Gain("gan_tconv", "images=1000", "v05_mixed", "v06_pinned", "end_to_end"),
        Gain("gan_tconv", "images=1000", "v06_pinned", "v07_overlapped", "end_to_end"),
        Gain("gan_tconv", "images=10", "v06_pinned", "v07_overlapped", "end_to_end"),
    ),
    "nccl-average": (
        Gain("mlp_data_parallel", "batch=400", "v01_host_staged", "v02_nccl", "operation", 2),
        Gain("mlp_data_parallel", "batch=8192", "v01_host_staged", "v02_nccl", "operation", 2),
        Gain("mlp_data_parallel", "batch=32768", "v02_nccl", "v03_overlapped", "operation", 2),
        Gain("mlp_data_parallel", "batch=400", "v02_nccl", "v03_overlapped", "operation", 2),
    ),
}
