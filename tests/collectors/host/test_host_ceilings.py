"""The ceilings of a processor: their sizes, and that tests may have them small."""

import pytest

from warpladder.collectors.host.ceilings import SMALL_VARIABLE, host_ceilings


@pytest.mark.parametrize(("small", "copied", "side"), [("", "128 MiB", 1024), ("1", "1 MiB", 64)])
def test_each_ceiling_says_how_much_it_moved_or_multiplied(
    monkeypatch: pytest.MonkeyPatch, small: str, copied: str, side: int
) -> None:
    monkeypatch.setenv(SMALL_VARIABLE, small)
    copy, product = host_ceilings()
    assert (copy["name"], copy["unit"]) == ("host_copy", "GB/s")
    assert copy["method"].startswith(f"copy of {copied} by ") and copy["value"] > 0
    assert (product["name"], product["unit"]) == ("host_fma", "TFLOP/s")
    assert f"{side} x {side} matrices" in product["method"] and product["value"] > 0
