"""The input sets of a case on a GPU, here of a CuPy that computes nothing."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.collectors.cuda.fake_cuda import FakeArray, install


def test_a_damaged_copy_is_found_before_the_next_variant_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log = list[object]()
    device = SimpleNamespace(stream=SimpleNamespace(synchronize=lambda: None), fingerprint=lambda array: array.values.tobytes())
    sets = [{"x": np.full(4, number, np.float32)} for number in (1, 2)]
    x = FakeArray(log, (4,), name="x", values=sets[0]["x"])
    kept = install(monkeypatch, log, "input_sets").InputSets(device, {"x": x}, sets[0])
    kept.keep(sets)
    kept.load({"x": np.full(4, 3, np.float32)})
    assert kept.changed() == ()
    for copy in (kept._sets[1]["x"], kept._new_on_device["x"]):  # as a kernel that writes past the end of a buffer would
        copy.values[0] = 9
        assert (kept.changed(), kept.changed()) == (("x",), ())
    kept.use(1)
    assert (x.values == 2).all() and kept.changed() == ()
    x.values[0] = 9
    assert (kept.changed(), x.values[0]) == (("x",), 2)
