"""The hand-over of arrays in the detail of a verdict: written by collectors and read by the dashboard."""

import pytest

from warpladder.data import hand_over


@pytest.mark.parametrize("zero_copy", [True, False])
@pytest.mark.parametrize("interface", ["DLPack", "__cuda_array_interface__", "cupy.ndarray itself"])
@pytest.mark.parametrize("before", ["", "device cold: converged, n=40, ±0.31%; "])
@pytest.mark.parametrize("after", ["", "; hot: 64 queued launches"])
def test_what_is_written_is_read_back(zero_copy: bool, interface: str, before: str, after: str) -> None:
    detail = before + hand_over.text_of(zero_copy, interface) + after
    assert hand_over.of_detail(detail) == (zero_copy, interface)


@pytest.mark.parametrize(
    "detail", ["", "device cold: converged, n=40", "no hand-over: zero-copy by DLPack", "hand-over: by DLPack"]
)
def test_a_detail_that_does_not_tell_tells_nothing(detail: str) -> None:
    assert hand_over.of_detail(detail) is None
