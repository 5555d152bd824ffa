"""Names of the generator's report: its workload, the parts of a generation, and the kinds of device work."""

from collections.abc import Mapping
from typing import Final

WORKLOAD: Final = "gan_tconv"
PINNED, OVERLAPPED = "pinned", "overlapped"
IN, COMPUTE, OUT, REST = "copies in", "kernels", "copies out", "launches and waiting"
#: Parts of a generation, in the order in which they are stacked.
PARTS: Final = (IN, COMPUTE, OUT, REST)
#: The project's aim: how much longer than its longest part an overlapped generation may take.
AIM: Final = 1.25

#: Variants of the report's figures: the one that mixes two methods, and the one that overlaps its copies.
MIXED_VARIANT, OVERLAPPED_VARIANT = "v05_mixed", "v07_overlapped"
#: The report's figure or section of a (variant, config), in the order of the rows of our chart.
FIGURES: Final[Mapping[tuple[str, str], str]] = {
    (MIXED_VARIANT, "products=2"): "figure 2",
    (MIXED_VARIANT, "products=3"): "figure 3",
    (MIXED_VARIANT, "products=4"): "figure 4",
    ("v06_pinned", ""): "section 2.5.1",
    (OVERLAPPED_VARIANT, ""): "figure 6",
}
#: The case of the report's figure 6.
FIGURE_6_CASE: Final = "images=1000"

PRODUCTS, OPERANDS, DIRECT = "layer products", "expansions", "direct convolutions"
NORMS, DENSE, LAST, OTHER = "batch norm, ReLU", "dense layer", "tanh", "other"
COPIES: Final = (IN, OUT)
#: Kinds of kernels, and then of copies.
KINDS: Final = (PRODUCTS, OPERANDS, DIRECT, NORMS, DENSE, LAST, OTHER, *COPIES)
#: The kind of a kernel, or of a memory operation, by its name.
KIND_OF: Final[Mapping[str, str]] = {
    "multiply": PRODUCTS,
    "expand": OPERANDS,
    "flip_weights": OPERANDS,
    "tconv": DIRECT,
    "batch_norm": NORMS,
    "relu": NORMS,
    "dense": DENSE,
    "tanh_layer": LAST,
    "h2d": IN,
    "d2h": OUT,
}
#: The kernels among these names.
KERNELS: Final = tuple(name for name, kind in KIND_OF.items() if kind not in COPIES)
