"""Names of the generator's report: its workload, the parts of a generation, and the kinds of device work."""

from collections.abc import Mapping
from typing import Final

WORKLOAD: Final = "gan_tconv"
PINNED, OVERLAPPED = "pinned", "overlapped"
IN, COMPUTE, OUT, REST = "copies in", "kernels", "copies out", "launches and waiting"
#: Parts of a generation, in the order in which they are stacked.
PARTS: Final = (IN, COMPUTE, OUT, REST)
#: The project's aim: an overlapped generation takes at most this many times as long as its longest part.
AIM: Final = 1.25

#: Variants of the report's figures: one mixes two methods, and one overlaps its copies.
MIXED_VARIANT, OVERLAPPED_VARIANT = "v05_mixed", "v07_overlapped"
#: (variant, config) -> figure or section of the report, in the order of the chart's rows.
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
#: Kinds of kernels, then kinds of copies.
KINDS: Final = (PRODUCTS, OPERANDS, DIRECT, NORMS, DENSE, LAST, OTHER, *COPIES)
#: Name of a kernel or memory operation -> kind.
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
