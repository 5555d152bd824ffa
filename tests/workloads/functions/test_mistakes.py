"""Generated mistakes: whatever a function of a benchmark returns or raises is told in one line, and hangs nothing."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.limits import cpu_seconds
from warpladder import Benchmark
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.measure import measure_case
from warpladder.collectors.core.plan import Job, WorkloadRef, cells_of
from warpladder.collectors.core.rounds import Limits, Turn
from warpladder.collectors.host.host_clock import HostBench
from warpladder.data import schema
from warpladder.workloads.api import WorkloadError

_TURN: Final = Turn(0, 0, Limits(min_rounds=1, max_rounds=1))
_SETTINGS: Final = settings(max_examples=8, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
_LARGE: Final = 10**7
_STATUSES: Final = {status for column in schema.RESULTS.columns if column.name == "status" for status in column.values}

#: Coroutines within tuples and lists stay unawaited.
pytestmark = [pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning"), pytest.mark.slow]

Make = Callable[[], Any]


class Hostile:
    """Fails at whatever it is asked."""

    def _fail(self, *_: Any) -> Any:
        raise RuntimeError("hostile")

    __getattribute__ = __repr__ = __str__ = __len__ = __iter__ = __eq__ = __hash__ = __bool__ = __getitem__ = _fail  # type: ignore[assignment]


class Agreeable:
    """Has every attribute, and says that it is an array."""

    def __getattr__(self, name: str) -> Any:
        return Agreeable()

    def __call__(self, *_: Any, **__: Any) -> "Agreeable":
        return self

    def __getitem__(self, _: Any) -> "Agreeable":
        return self

    def __len__(self) -> int:
        return 2**40

    def __repr__(self) -> str:
        return "x" * _LARGE


class Claims:
    """Says that it is an array on a GPU, in the words of the interface."""

    def __init__(self, interface: Any) -> None:
        self.__cuda_array_interface__ = self.__array_interface__ = interface


class Endless:
    """An iterator without end."""

    def __iter__(self) -> "Endless":
        return self

    def __next__(self) -> int:
        return 0


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("mute")


async def coroutine() -> None: ...


_MADE: Final[tuple[Make, ...]] = (
    Hostile, Agreeable, Endless, Mute, object, itertools.count, coroutine, asyncio.Event,
    lambda: Claims(None),
    lambda: Claims({}),
    lambda: Claims({"data": (1, False), "shape": (8, 9), "typestr": "<f4", "version": 3}),
    lambda: (row for row in itertools.count()),
    lambda: Hostile, lambda: np, lambda: int, lambda: _MADE, lambda: {1, 2}, lambda: frozenset(), lambda: range(10**12),
    lambda: memoryview(b"12345678"), lambda: bytearray(8), lambda: "x" * _LARGE, lambda: 10**4000, lambda: ..., lambda: NotImplemented,
    lambda: np.ma.masked, lambda: np.dtype("f4"), lambda: np.array([object()], object), lambda: np.zeros((8, 9), "f4,i4"),
    lambda: np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (8, 9), (0, 0)),
    lambda: [[1.0], [1.0, 2.0]], lambda: np.float32(1), lambda: np.zeros((0, 9), np.float32), lambda: np.zeros((8, 9)).T,
)  # fmt: skip
_LEAVES: Final[st.SearchStrategy[Make]] = st.one_of(
    st.sampled_from(_MADE),
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text("a\n\0é\U0001f600"), st.binary(),
        arrays.arrays(st.one_of(arrays.scalar_dtypes(), arrays.array_dtypes()), arrays.array_shapes(min_dims=0, min_side=0)),
        arrays.arrays(np.float32, (8, 9)),
    ).map(lambda value: lambda: value),
)  # fmt: skip


def _together(makes: list[Make]) -> st.SearchStrategy[Make]:
    names = [f"x{number}" for number in range(len(makes))]
    return st.sampled_from((
        lambda: [make() for make in makes],
        lambda: tuple(make() for make in makes),
        lambda: {name: make() for name, make in zip(names, makes, strict=True)},
        lambda: dict(enumerate(make() for make in makes)),
        lambda: {"out": [make() for make in makes]},
    ))  # fmt: skip


_JUNK: Final = st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=3).flatmap(_together), max_leaves=5)
_RAISED: Final = st.sampled_from(
    (ValueError, Mute, SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, EOFError, BrokenPipeError, OSError, MemoryError,
     RecursionError, BaseException, asyncio.CancelledError, UnicodeDecodeError.__mro__[1], Warning)
)  # fmt: skip


class Kept:
    """Keeps what is measured, as the recorder would."""

    def __init__(self) -> None:
        self.tables: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)

    def working_on(self, cell: Cell) -> None: ...

    def rows(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        self.tables[table] += rows


def _measured(inputs: Callable[..., Any], reference: Callable[..., Any], variant: Callable[..., Any]) -> dict[str, Any] | str:
    """The results by variant, of one between two right ones; or the one line that refuses the benchmark."""
    bench = Benchmark("generated", n=[8])
    bench.inputs(inputs)
    bench.reference(reference)
    bench.variant(lambda x: x * np.float32(2), name="first")
    bench.variant(variant, name="wrong")
    bench.variant(lambda x: x + x, name="last")
    kept = Kept()
    try:
        workload = bench.workload
        [case] = workload.cases
        job = Job(WorkloadRef("generated"), case.name, cells_of(workload, case, workload.variants), 0)
        measure_case(job, workload, {"host": HostBench}, _TURN, kept)
    except WorkloadError as error:
        return _checked(str(error))
    results = kept.tables["results"]
    assert sorted(row["variant"] for row in results) == ["first", "last", "wrong"]
    assert {row["status"] for row in results} <= _STATUSES
    for text in (*(row["detail"] for row in results), *(row["text"] for row in kept.tables["diagnostics"])):
        _checked(text)
    return {row["variant"]: row for row in results}


def _checked(text: str) -> str:
    assert isinstance(text, str) and text.strip() and "\n" not in text and len(text) < 1500
    return text


def inputs(n: int, rng: np.random.Generator) -> Any:
    return rng.standard_normal((n, n + 1), np.float32)


def reference(x: Any) -> Any:
    return x * 2


def _raising(error: type[BaseException]) -> Callable[..., Any]:
    def raises(*_: Any) -> Any:
        raise error

    return raises


@_SETTINGS
@given(_JUNK)
def test_whatever_a_variant_returns_is_judged_and_the_others_are_measured(make: Make) -> None:
    with cpu_seconds(5):
        found = _measured(inputs, reference, lambda x: make())
    assert isinstance(found, dict)
    assert (found["first"]["status"], found["last"]["status"]) == ("ok", "ok")
    assert found["wrong"]["status"] == "wrong_result"


@_SETTINGS
@given(_JUNK)
def test_whatever_the_reference_returns_gives_verdicts(make: Make) -> None:
    with cpu_seconds(5):
        _measured(inputs, lambda x: make(), lambda x: x * np.float32(2))


@_SETTINGS
@given(_JUNK)
def test_whatever_inputs_returns_gives_verdicts_or_one_line(make: Make) -> None:
    with cpu_seconds(5):
        _measured(lambda n: make(), reference, lambda x: x * np.float32(2))


@_SETTINGS
@given(_RAISED, st.integers(1, 4))
def test_whatever_a_variant_raises_in_whichever_call_is_its_own_verdict(error: type[BaseException], call: int) -> None:
    calls = itertools.count(1)
    found = _measured(inputs, reference, lambda x: _raising(error)() if next(calls) >= call else x * np.float32(2))
    assert isinstance(found, dict) and found["wrong"]["status"] in ("launch_error", "out_of_memory")
    assert (found["first"]["status"], found["last"]["status"]) == ("ok", "ok")


@pytest.mark.parametrize("part", ["inputs", "reference"])
@_SETTINGS
@given(_RAISED.filter(lambda error: issubclass(error, Exception | SystemExit)))
def test_whatever_inputs_and_reference_raise_is_told(part: str, error: type[BaseException]) -> None:
    right: dict[str, Callable[..., Any]] = {"inputs": inputs, "reference": reference}
    right[part] = _raising(error)
    found = _measured(right["inputs"], right["reference"], lambda x: x * np.float32(2))
    assert isinstance(found, str) or {row["status"] for row in found.values()} <= {"launch_error"}
