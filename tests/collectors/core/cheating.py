"""A workload whose host variants cheat, or are careless, between honest ones; for the tests of what verification catches."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from warpladder.workloads.api import Buffer, Case, HostVariant, Workload

calls: dict[str, int] = {}
kept: dict[str, Any] = {}


def count(name: str) -> int:
    """How often a variant has been called, this time included."""
    calls[name] = calls.get(name, 0) + 1
    return calls[name]


def honest(case: Case, inputs: Any, outputs: Any) -> None:
    np.multiply(inputs["x"], 2, out=outputs["y"])


def zeroes_input(case: Case, inputs: Any, outputs: Any) -> None:
    inputs["x"][:] = 0
    outputs["y"][:] = 0


def doubles_in_place(case: Case, inputs: Any, outputs: Any) -> dict[str, Any]:
    x = inputs["x"]
    x *= 2
    return {"y": x}


def replaces_input(case: Case, inputs: Any, outputs: Any) -> None:
    inputs["x"] = np.zeros_like(inputs["x"])
    outputs["y"][:] = 0


def unlocks_input(case: Case, inputs: Any, outputs: Any) -> None:
    inputs["x"].flags.writeable = True
    inputs["x"][:] = 0
    outputs["y"][:] = 0


def writes_by_pointer(case: Case, inputs: Any, outputs: Any) -> None:
    honest(case, inputs, outputs)
    ctypes.memset(inputs["x"].ctypes.data, 0, 4)


def changes_input_later(case: Case, inputs: Any, outputs: Any) -> None:
    honest(case, inputs, outputs)
    if count("changes_input_later") >= 5:
        ctypes.memset(inputs["x"].ctypes.data, 0, 4)


def wrong_from_the_fourth(case: Case, inputs: Any, outputs: Any) -> None:
    if count("wrong_from_the_fourth") < 4:
        honest(case, inputs, outputs)


def writes_only_over_nan(case: Case, inputs: Any, outputs: Any) -> None:
    if np.isnan(outputs["y"][0]):
        honest(case, inputs, outputs)


def keeps_a_copy(case: Case, inputs: Any, outputs: Any) -> None:
    if "copy" not in kept:
        kept["copy"] = 2 * inputs["x"]
    outputs["y"][:] = kept["copy"]


def returns_the_same_again(case: Case, inputs: Any, outputs: Any) -> dict[str, Any]:
    if "returned" not in kept:
        kept["returned"] = {"y": 2 * inputs["x"]}
    return kept["returned"]


def returns_a_launch(case: Case, inputs: Any, outputs: Any) -> Any:
    """As a Triton kernel does: an object that never ends when it is asked what is in it."""

    class Launched:
        def __getitem__(self, number: int) -> int:
            return number

    honest(case, inputs, outputs)
    return Launched()


def identity(case: Case, inputs: Any, outputs: Any) -> dict[str, Any]:
    return {"y": inputs["x"][:]}


def half(case: Case, inputs: Any) -> dict[str, Any]:
    return {"y": inputs["x"].astype(np.float64)}


def says_that_it_writes(case: Case, inputs: Any, outputs: Any) -> dict[str, Any]:
    return doubles_in_place(case, inputs, outputs)


CHEATS: tuple[Callable[..., Any], ...] = (
    zeroes_input,
    doubles_in_place,
    replaces_input,
    unlocks_input,
    writes_by_pointer,
    changes_input_later,
    wrong_from_the_fourth,
    writes_only_over_nan,
    keeps_a_copy,
    returns_the_same_again,
    returns_a_launch,
)


def _variant(function: Callable[..., Any], **options: Any) -> HostVariant:
    return HostVariant(function.__name__, function.__name__, "host", run=function, **options)


N = 1000
WORKLOAD = Workload(
    name="cheating",
    title="Doubling, not done",
    cases=(Case({"n": N}, flops=N, min_bytes=8 * N, sets=("quick",)),),
    variants=(
        _variant(CHEATS[0]),  # before all others: what is right is known already
        HostVariant("first", "honest", "host", run=honest),
        *(_variant(cheat) for cheat in CHEATS[1:]),
        _variant(identity, reference=half),
        _variant(says_that_it_writes, writes_inputs=True),
        HostVariant("last", "honest", "host", run=honest),
    ),
    buffers=lambda case: ({"x": Buffer((N,))}, {"y": Buffer((N,))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(N, dtype=np.float32)},
    reference=lambda case, inputs: {"y": 2.0 * inputs["x"].astype(np.float64)},
    host_baseline="first",
)
