"""The generator in BF16: its tolerance, and the tiles that only the student report's network has."""

import numpy as np
import pytest

from tests.emulator.emulator import needs_compiler
from tests.workloads.declared import agreements
from warpladder.collectors.core.agreement import compare
from warpladder.workloads.declare.cases import narrowed, widened
from warpladder.workloads.gan_tconv_bf16.problem import make_case
from warpladder.workloads.gan_tconv_bf16.workload import WORKLOAD

pytestmark = pytest.mark.slow
WARPGROUPS = WORKLOAD.variant("v02_warpgroups")
FEW_IMAGES = WORKLOAD.variant("v03_few_images")


def test_the_tolerance_is_above_rounding_and_below_one_missing_pixel_of_the_odd_case():
    case = make_case({"images": 3})
    images = WORKLOAD.reference(case, WORKLOAD.make_inputs(case, np.random.default_rng(3)))["images"]
    rounded = widened(narrowed(images.astype(np.float32), "bfloat16"), "bfloat16")
    assert compare({"images": rounded}, {"images": images}, WORKLOAD.tolerance["bf16"]).ok
    lacking = rounded.copy()
    lacking[1, 30, 30] = 0.0
    error = compare({"images": lacking}, {"images": images}, 1.0).rel_l2_error
    assert compare({"images": rounded}, {"images": images}, 1.0).rel_l2_error < WORKLOAD.tolerance["bf16"] / 2 < error


@needs_compiler
@pytest.mark.thorough
@pytest.mark.parametrize("images", [3, 129, 257])
def test_wide_tiles_compute_the_reference(images):
    """A network of the student report's channels on one pixel: its layers take tiles of one, two and four outputs."""
    case = make_case({"images": images, "channels": 512, "side": 1})
    assert all(verdict.ok for verdict in agreements(WORKLOAD, WARPGROUPS, case, {}, ("forward",)))


@pytest.mark.parametrize(("images", "columns"), [(1, 64), (128, 64), (129, 128), (256, 128), (257, 256), (1000, 256)])
def test_few_images_have_narrow_tiles(images, columns):
    kernels = [launch.kernel for launch in WARPGROUPS.launches(make_case({"images": images}), {})]
    assert {f"layer_product<1, {columns}, true", f"layer_product<1, {columns}, false"} == {
        kernel.rpartition(",")[0] for kernel in kernels if "<1," in kernel
    }


def test_channels_that_the_tma_cannot_copy_are_skipped():
    case = make_case({"images": 3, "channels": 32})
    assert WARPGROUPS.skip(case, {}) == "takes eight channels at a time, in every layer: 32 is no multiple of 64 up to 512"


@needs_compiler
@pytest.mark.parametrize(
    ("images", "channels", "side"),
    [(10, 64, 2), pytest.param(3, 512, 1, marks=pytest.mark.thorough), pytest.param(64, 64, 1, marks=pytest.mark.thorough)],
)
def test_rows_of_pixels_compute_the_reference(images, channels, side):
    """Tiles that end within a line of pixels, of parts that a cluster adds; tiles of 128 columns; and tiles without parts."""
    case = make_case({"images": images, "channels": channels, "side": side})
    assert all(verdict.ok for verdict in agreements(WORKLOAD, FEW_IMAGES, case, {"columns": 64}, ("forward",)))


def test_blocks_that_share_the_steps_of_a_tile_fit_the_multiprocessors_at_once():
    launches = FEW_IMAGES.launches(make_case({"images": 10}), {"columns": 64})
    # Four outputs; 2, 7 and 23 tiles of 220, 780 and 2860 rows; 4, 2 and 1 of 256, 128 and 64 channels.
    assert [(each.kernel, each.grid[0]) for each in launches[1:-1]] == [
        ("row_product<64, 8, 4>", 4 * 2 * 4 * 4),
        ("row_product<64, 8, 2>", 4 * 7 * 2 * 2),
        ("row_product<64, 8, 1>", 4 * 23),
    ]
    assert [each.early for each in launches] == [False, True, True, True, True]


@pytest.mark.parametrize(("images", "reason"), [(64, None), (65, "rows of a product are pixels of all images: for at most 64")])
def test_rows_of_pixels_are_for_few_images(images, reason):
    assert FEW_IMAGES.skip(make_case({"images": images}), {}) == reason
