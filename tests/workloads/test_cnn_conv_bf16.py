"""The CNN layer in BF16: its tolerance, and the images that the kernel of whole images takes."""

import numpy as np
import pytest

from warpladder.collectors.core.agreement import compare
from warpladder.workloads.cnn_conv.problem import ODD_SHAPE
from warpladder.workloads.cnn_conv_bf16.problem import make_case
from warpladder.workloads.cnn_conv_bf16.workload import WORKLOAD
from warpladder.workloads.declare.cases import narrowed, widened

TMA = "the TMA copies rows of pixels whose bytes are a multiple of 16: a width that is a multiple of 8"


def test_the_tolerance_is_above_rounding_and_below_a_row_of_missing_results_of_the_odd_case():
    case = make_case({"layer": 2, "shape": ODD_SHAPE})
    y = WORKLOAD.reference(case, WORKLOAD.make_inputs(case, np.random.default_rng(3)))["y"]
    rounded = widened(narrowed(y.astype(np.float32), "bfloat16"), "bfloat16")
    lacking = rounded.copy()
    lacking[1, 3, 7] = 0.0
    for precision in ("bf16", "tf32", "fp32"):
        assert compare({"y": rounded}, {"y": y}, WORKLOAD.tolerance[precision] / 2).ok
        assert not compare({"y": lacking}, {"y": y}, WORKLOAD.tolerance[precision]).ok


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"batch": 133}, None),
        ({"shape": "5x36x40"}, None),
        ({"shape": ODD_SHAPE}, TMA),
        ({"shape": "2x72x40"}, "images and their outputs are larger than shared memory, or than the TMA copies at once"),
    ],
)
def test_whole_images_takes_rows_that_the_tma_copies_and_images_that_fit(params, reason):
    assert WORKLOAD.variant("v02_whole_images").skip(make_case({"layer": 2, **params}), {}) == reason
