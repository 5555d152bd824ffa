"""The ideas that made rungs faster, each with its page in docs/kernels/ and its rungs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Idea:
    """An idea that made at least one rung faster.

    Attributes:
        name: of its page, `docs/kernels/<name>.md`.
        title: a few words; the heading of the page.
        limit: what holds a kernel back without the idea.
        rungs: workload -> the rungs that have it.
    """

    name: str
    title: str
    limit: str
    rungs: Mapping[str, tuple[str, ...]]

    def sources(self) -> frozenset[str]:
        """The kernel files of the rungs, relative to the project."""
        return frozenset(kernel_of(name, variant) for name, variants in self.rungs.items() for variant in variants)


def kernel_of(workload: str, variant: str) -> str:
    """The kernel file of a rung, relative to the project."""
    return f"workloads/{workload}/kernels/{variant}.cu"


def ideas_of(source_path: str) -> tuple[Idea, ...]:
    """The ideas of the rung with this kernel file, relative to the project; none for any other source, such as a user's own."""
    return tuple(idea for idea in IDEAS if source_path in idea.sources())


#: In the order of the index, docs/kernels.md.
IDEAS: Final = (
    Idea(
        "coalesced-access",
        "Coalesced access",
        "neighbouring lanes read or write addresses far apart",
        {"conv2d": ("v03_coalesced",), "mlp_gemm": ("v02_two_dimensional",), "mlp_elementwise": ("v02_coalesced",)},
    ),
    Idea(
        "known-when-compiling",
        "Known when compiling",
        "instructions for addresses, bounds and conversions",
        {"tensor_transpose": ("v04_simple_template", "v06_shared_template"), "conv2d": ("v04_single_precision",)},
    ),
    Idea(
        "shared-tile",
        "Tile in shared memory",
        "one side of a transposition is scattered, or a block loads each value many times",
        {
            "tensor_transpose": ("v05_shared", "v06_shared_template", "v09_padded_tile", "v11_swizzled_tile"),
            "conv2d": ("v05_constant_shared", "v06_shared_halo", "v07_register_tile"),
            "mlp_gemm": ("v03_shared_tile", "v05_register_tile"),
            "mlp_elementwise": ("v02_coalesced",),
            "mlp_training": ("v02_on_the_gpu",),
            "cnn_conv": ("v04_shared_tile",),
        },
    ),
    Idea(
        "bank-conflicts",
        "Shared tiles without bank conflicts",
        "lanes of a warp meet in one bank of shared memory",
        {
            "tensor_transpose": ("v07_bank_padding", "v09_padded_tile", "v11_swizzled_tile"),
            "mlp_gemm": ("v05_register_tile", "v09_tensor_cores_tf32"),
            "mlp_elementwise": ("v03_vectorized",),
        },
    ),
    Idea(
        "wide-access",
        "16 bytes an access",
        "too few bytes in flight, one instruction for each 4 bytes",
        {
            "tensor_transpose": ("v10_register_tile", "v11_swizzled_tile"),
            "conv2d": ("v08_sliding_window", "v09_loads_first", "v10_stacked_warps"),
            "mlp_elementwise": ("v03_vectorized",),
        },
    ),
    Idea(
        "block-order",
        "Blocks in the order of memory",
        "blocks that run together read or write places far apart",
        {
            "tensor_transpose": ("v11_swizzled_tile",),
            "mlp_gemm": ("v07_warp_tile", "v08_split_sums", "v12_wgmma_tf32", "v13_wgmma_3xtf32", "v14_shared_columns_tf32"),
        },
    ),
    Idea(
        "loads-first",
        "All loads first",
        "a thread waits for memory several times, one load after another",
        {"conv2d": ("v09_loads_first", "v10_stacked_warps", "v11_shuffled_halo"), "mlp_elementwise": ("v03_vectorized",)},
    ),
    Idea(
        "halo-from-neighbours",
        "Halo from neighbouring warps and lanes",
        "strips that overlap load the shared rows and pixels again from L2",
        {"conv2d": ("v10_stacked_warps", "v11_shuffled_halo")},
    ),
    Idea(
        "register-tile",
        "Several results a thread",
        "one or two loads for each multiply-add",
        {
            "conv2d": ("v07_register_tile",),
            "cnn_conv": ("v05_register_tile", "v07_map_a_lane", "v09_channel_at_a_time"),
            "mlp_gemm": ("v04_column_strip", "v05_register_tile", "v06_double_buffer", "v07_warp_tile"),
            "mlp_training": ("v03_final", "v04_fused", "v09_full_waves"),
            "gan_tconv": ("v03_matrix_product", "v08_phases"),
        },
    ),
    Idea(
        "sliding-window",
        "Sliding window in registers",
        "rows are read again for each output row, by way of shared memory or L1",
        {
            "conv2d": ("v08_sliding_window", "v09_loads_first", "v10_stacked_warps", "v11_shuffled_halo"),
            "cnn_conv": ("v06_sliding_rows", "v08_uniform_weights", "v10_toeplitz_tf32", "v13_warpgroups_tf32"),
        },
    ),
    Idea(
        "warp-tiles",
        "Tiles loaded ahead, and warp tiles",
        "multiply-add units wait for the next tile, or for shared memory",
        {
            "mlp_gemm": (
                "v06_double_buffer",
                "v07_warp_tile",
                "v08_split_sums",
                "v09_tensor_cores_tf32",
                "v10_tensor_cores_3xtf32",
            ),
            "mlp_training": ("v04_fused", "v05_three_products", "v06_one_product", "v09_full_waves"),
            "gan_tconv": ("v10_three_products", "v11_one_product"),
        },
    ),
    Idea(
        "split-along-k",
        "Sums split along k",
        "fewer tiles than multiprocessors, or a last wave of tiles that is not full",
        {
            "mlp_gemm": ("v08_split_sums",),
            "mlp_training": ("v04_fused", "v05_three_products", "v06_one_product", "v08_warpgroups_tf32", "v09_full_waves"),
        },
    ),
    Idea(
        "equal-shares",
        "Equal shares of work",
        "multiprocessors that wait in the last wave of tiles",
        {
            "mlp_training": ("v08_warpgroups_tf32", "v09_full_waves"),
            "gan_tconv": ("v14_few_images", "v15_few_images_tf32"),
        },
    ),
    Idea(
        "uniform-weights",
        "Weights that a whole warp shares",
        "a load or a register of each lane for a weight that all lanes share",
        {
            "conv2d": ("v05_constant_shared",),
            "cnn_conv": ("v03_constant_weights", "v05_register_tile", "v08_uniform_weights", "v09_channel_at_a_time"),
        },
    ),
    Idea(
        "enough-blocks",
        "Enough blocks for the GPU",
        "one image, or a block an image, is too little work for all multiprocessors",
        {"cnn_conv": ("v02_parallel",), "gan_tconv": ("v04_batched",)},
    ),
    Idea(
        "no-zero-products",
        "Transposed convolution by phases",
        "three of four products have a zero as factor",
        {
            "gan_tconv": (
                "v02_stride_two",
                "v08_phases",
                "v09_graph",
                "v10_three_products",
                "v11_one_product",
                "v12_warpgroups_3xtf32",
                "v13_warpgroups_tf32",
                "v14_few_images",
                "v15_few_images_tf32",
                "v16_rounded_on_load_tf32",
            )
        },
    ),
    Idea(
        "fused-steps",
        "Steps fused into the product",
        "passes over memory and launches for bias, activation, normalisation, update",
        {
            "mlp_training": (
                "v04_fused",
                "v05_three_products",
                "v06_one_product",
                "v07_warpgroups_3xtf32",
                "v08_warpgroups_tf32",
                "v09_full_waves",
            ),
            "gan_tconv": (
                "v08_phases",
                "v12_warpgroups_3xtf32",
                "v13_warpgroups_tf32",
                "v14_few_images",
                "v15_few_images_tf32",
                "v16_rounded_on_load_tf32",
            ),
        },
    ),
    Idea(
        "cuda-graph",
        "One CUDA graph",
        "the host launches kernels one by one, with gaps between them",
        {
            "gan_tconv": (
                "v09_graph",
                "v10_three_products",
                "v11_one_product",
                "v12_warpgroups_3xtf32",
                "v13_warpgroups_tf32",
                "v14_few_images",
                "v15_few_images_tf32",
                "v16_rounded_on_load_tf32",
            ),
            "mlp_training": (
                "v04_fused",
                "v05_three_products",
                "v06_one_product",
                "v07_warpgroups_3xtf32",
                "v08_warpgroups_tf32",
                "v09_full_waves",
            ),
            "mlp_data_parallel": ("v02_nccl", "v03_overlapped", "v04_warpgroups_3xtf32"),
        },
    ),
    Idea(
        "tensor-cores",
        "Products on tensor cores",
        "multiply-add units, where TF32 is accurate enough",
        {
            "mlp_gemm": ("v09_tensor_cores_tf32", "v12_wgmma_tf32", "v14_shared_columns_tf32"),
            "gan_tconv": ("v11_one_product", "v13_warpgroups_tf32", "v15_few_images_tf32", "v16_rounded_on_load_tf32"),
            "mlp_training": ("v06_one_product", "v08_warpgroups_tf32"),
            "cnn_conv": ("v10_toeplitz_tf32", "v13_warpgroups_tf32"),
        },
    ),
    Idea(
        "toeplitz",
        "Convolution as a Toeplitz product",
        "multiply-add units, in a convolution of few channels and maps",
        {
            "cnn_conv": (
                "v10_toeplitz_tf32",
                "v11_toeplitz_3xtf32",
                "v12_bf16_corrections",
                "v13_warpgroups_tf32",
                "v14_warpgroups_3xtf32",
                "v15_warpgroups_bf16_corrections",
            )
        },
    ),
    Idea(
        "three-products",
        "Float32 by three products of TF32",
        "multiply-add units, where the result must be accurate to float32",
        {
            "mlp_gemm": ("v10_tensor_cores_3xtf32", "v13_wgmma_3xtf32"),
            "gan_tconv": ("v10_three_products", "v12_warpgroups_3xtf32"),
            "mlp_training": ("v05_three_products", "v07_warpgroups_3xtf32"),
            "mlp_data_parallel": ("v04_warpgroups_3xtf32",),
            "cnn_conv": ("v11_toeplitz_3xtf32", "v14_warpgroups_3xtf32"),
        },
    ),
    Idea(
        "bf16-corrections",
        "Corrections in BF16",
        "tensor cores, which do three products for one",
        {"cnn_conv": ("v12_bf16_corrections", "v15_warpgroups_bf16_corrections")},
    ),
    Idea(
        "warpgroups",
        "Warpgroups, TMA and a producer warp",
        "operands pass through registers on their way to the tensor cores",
        {
            "mlp_gemm": ("v12_wgmma_tf32", "v13_wgmma_3xtf32", "v14_shared_columns_tf32"),
            "gan_tconv": ("v12_warpgroups_3xtf32", "v13_warpgroups_tf32", "v16_rounded_on_load_tf32"),
            "mlp_training": ("v07_warpgroups_3xtf32", "v08_warpgroups_tf32"),
            "mlp_data_parallel": ("v04_warpgroups_3xtf32",),
            "cnn_conv": ("v13_warpgroups_tf32", "v14_warpgroups_3xtf32", "v15_warpgroups_bf16_corrections"),
        },
    ),
    Idea(
        "rounded-on-load",
        "Rounded to TF32 by the TMA",
        "instructions and launches that round operands, or operands that are cut off",
        {
            "mlp_gemm": ("v12_wgmma_tf32", "v14_shared_columns_tf32"),
            "mlp_training": ("v08_warpgroups_tf32",),
            "gan_tconv": ("v16_rounded_on_load_tf32",),
        },
    ),
    Idea(
        "clusters",
        "Thread block clusters",
        "blocks that add up sums by way of L2, or fetch the same operands",
        {"gan_tconv": ("v14_few_images", "v15_few_images_tf32"), "mlp_gemm": ("v14_shared_columns_tf32",)},
    ),
    Idea(
        "overlapped-copies",
        "Page-locked memory and overlapped copies",
        "copies to and from the host, which kernels wait for",
        {
            "gan_tconv": (
                "v06_pinned",
                "v07_overlapped",
                "v08_phases",
                "v09_graph",
                "v10_three_products",
                "v11_one_product",
                "v12_warpgroups_3xtf32",
                "v13_warpgroups_tf32",
                "v14_few_images",
                "v15_few_images_tf32",
                "v16_rounded_on_load_tf32",
            )
        },
    ),
    Idea(
        "nccl-average",
        "Averages between GPUs, in the graph",
        "gradients or weights that go through the host",
        {"mlp_data_parallel": ("v02_nccl", "v03_overlapped", "v04_warpgroups_3xtf32")},
    ),
)
