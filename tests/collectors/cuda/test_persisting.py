"""Lines that persist in the L2 are reset before each flush, on a fake runtime."""

from types import SimpleNamespace

from warpladder.collectors.cuda.persisting import LIMIT, PersistingLines


def fakes(log: list[object], limit: int = 0, status: int = 0) -> tuple[SimpleNamespace, SimpleNamespace]:
    """A runtime whose limit is `limits[LIMIT]`, and a driver."""
    limits = {LIMIT: limit}
    runtime = SimpleNamespace(
        limits=limits,
        deviceGetLimit=limits.__getitem__,
        deviceSetLimit=lambda which, value: (limits.update({which: value}), log.append((which, value))),
    )
    return runtime, SimpleNamespace(cuCtxResetPersistingL2Cache=lambda: log.append("reset") or status)


def test_lines_are_reset_each_time_and_the_limit_where_a_variant_changed_it() -> None:
    log: list[object] = []
    runtime, driver = fakes(log, limit=1024)
    lines = PersistingLines(runtime, 1 << 20, driver)
    lines.reset()
    runtime.limits[LIMIT] = 1 << 20
    lines.reset()
    assert log == ["reset", (LIMIT, 1024), "reset"] and runtime.limits == {LIMIT: 1024}


def test_a_device_that_sets_nothing_aside_or_refuses_is_asked_no_more() -> None:
    log: list[object] = []
    PersistingLines(*fakes(log)[:1], 0).reset()
    assert not log
    runtime, driver = fakes(log, status=801)
    lines = PersistingLines(runtime, 1 << 20, driver)
    lines.reset()
    lines.reset()
    assert log == ["reset"]
