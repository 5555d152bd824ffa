"""Compares functions on arguments that are at hand, without a file that declares a benchmark."""

import functools
import html
import inspect
import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pandas as pd

from warpladder.collectors.core import agreement
from warpladder.dashboard.run.run import Run
from warpladder.dashboard.run.table import html_table
from warpladder.dashboard.ui.text import plain_table
from warpladder.data import store
from warpladder.workloads.api import WorkloadError, WrongOutput
from warpladder.workloads.declare import neighbours
from warpladder.workloads.declare.cases import widened
from warpladder.workloads.declare.functions import arrays
from warpladder.workloads.declare.functions.arguments import called_with_axes, precision_of, tolerances
from warpladder.workloads.declare.functions.arrays import Form
from warpladder.workloads.declare.functions.benchmark import Benchmark
from warpladder.workloads.declare.functions.calls import OUT, STREAM, place_of, raised_by
from warpladder.workloads.declare.functions.problem import NUMBERS, outputs_by_name

_T = TypeVar("_T")
#: The axis of the one case; its value has the types and shapes of the arguments.
_AXIS: Final = "arguments"
#: Input sets that the first function must give finite outputs for.
_TRIALS: Final = 2
#: Its value for functions without arguments.
_NONE: Final = "none"
#: A function agrees within so many times the tolerance, with so many times the difference that it has on the arguments as given, and with
#: so few whole numbers that differ.
_ROOM: Final = 16.0
_GROWS: Final = 4.0
_FEW: Final = 1e-3
#: How arguments are altered: by element, or each array as a whole.
_ALTERED: Final = {
    True: "each sample had other arguments than yours: each real number was multiplied by a random factor from 0.5 to 1",
    False: "each sample had other arguments than yours: each array of real numbers was multiplied by a random factor from 0.5 to 1",
}
_SCALED: Final = (
    "not checked: {} agrees only where each array is multiplied as a whole, as where arguments must be sorted or symmetric; so it is not "
    "found if it keeps results and multiplies them"
)
_SAME: Final = "every sample had the same inputs, so that a function that keeps its first outputs is not found"


class Comparison(Run):
    """The run of `compare_functions`. It is shown as its table, with what could not be checked below it. `notes`: what
    could not be checked."""

    def __init__(self, run: store.Run, notes: Sequence[str]) -> None:
        super().__init__(run)
        self.notes = tuple(notes)

    def words(self) -> pd.DataFrame:
        """The table in words. Without arguments the bytes are not known, and no floor is."""
        left_out = ["case", "of the floor"] if self._case_name.endswith(_NONE) else ["case"]
        return self.table().words().drop(columns=left_out, errors="ignore")

    def __str__(self) -> str:
        words = self.words()
        return "\n".join([self._title, *plain_table(list(words.columns), words.to_numpy().tolist()), *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        words = self.words()
        table = html_table(list(words.columns), words.to_numpy().tolist())
        return "".join(
            [f"<b>{html.escape(self._title)}</b>", table, *(f"<div>{html.escape(note)}</div>" for note in self.notes)]
        )

    @property
    def _case_name(self) -> str:
        return str(self.table()["case"].iloc[0])

    @property
    def _title(self) -> str:
        return f"{self._case_name} · {self.info['device_name'] or self.info['cpu_name']} · run {self.id}"


def compare_functions(
    *functions: Callable[..., Any],
    args: Any = (),
    names: Sequence[str] = (),
    tolerance: float | Mapping[str, float] | None = None,
    compare: Any = None,
    device: str = "",
    collector: str = "auto",
    label: str = "",
    data_dir: str | Path | None = None,
    seed: int = 0,
    max_rounds: int | None = None,
    seconds: float | None = None,
    processes: int | None = None,
    no_limit: bool = False,
) -> Comparison:
    """Verify functions against the first one, and time all of them in the same rounds: `print(compare_functions(old, new, args=x))`.

    Outputs are the returned values; if a function returns None, the arguments that it changes. You need no `if __name__ == "__main__"`.

    Args:
        functions: two or more. The first is the reference and the baseline.
        args: their arguments: a tuple, a dict by name, or one array of NumPy, PyTorch, CuPy or JAX. Each execution multiplies the real
            numbers by new random factors from 0.5 to 1: one for each element, or one for each array if your functions agree only then. If
            they agree with neither, all samples have the arguments as given, and a note tells. You may also give a function that makes the
            arguments, from `rng` if it has that parameter. Without `args`, the functions are called without arguments, and their outputs
            are compared once.
        names: of the functions; by default their own.
        tolerance: largest relative L2 error against the first, as for `Benchmark`.
        compare: how outputs are compared that need not be equal within the tolerance, as for `Benchmark.reference`.
        device: `gpu` or `cpu`; by default the device of the arguments or outputs.
        collector, label, data_dir, seed, max_rounds, seconds, processes, no_limit: as for `warpladder.record`.

    Raises:
        Error: the first function cannot be called with the arguments, or gives nothing that can be compared; and as `warpladder.record`.
        KeyboardInterrupt: as `warpladder.record` raises it.
    """
    from warpladder.api import record

    neighbours.end_if_loading()
    if len(functions) < 2 or not all(map(callable, functions)):
        raise WorkloadError("compare_functions: give two functions or more, such as compare_functions(old, new, args=(x, y))")
    variant_names = _names(functions, names)
    is_empty = isinstance(args, tuple | list | Mapping) and not args
    compared = (
        _without_arguments(functions, tolerance)
        if is_empty
        else _with_arguments(functions, variant_names, args, tolerance, is_vetted=compare is None)
    )
    bench = Benchmark(
        "functions",
        axes={_AXIS: [compared.described]},
        arrays=compared.library,
        device=device or compared.device,
        tolerance=tolerance,
    )
    bench.rounded_reference = compared.rounded
    bench.inputs(compared.inputs)
    bench.reference(compared.reference, outputs=compared.types, compare=compare)
    for name, function, writes in zip(variant_names, compared.calls, compared.writes, strict=True):
        bench.variant(function, name=name, writes_inputs=writes, role="rung")
    run = record(
        bench,
        collector=collector,
        label=label,
        data_dir=data_dir,
        seed=seed,
        max_rounds=max_rounds,
        seconds=seconds,
        processes=processes,
        no_limit=no_limit,
    )._run
    is_wrong = (run.table("results")["status"] == "wrong_result").any()
    return Comparison(run, [*compared.notes, *([compared.altered] if compared.altered and is_wrong else [])])


@dataclass(frozen=True)
class _Compared:
    """Functions as a benchmark declares them.

    Attributes:
        calls: the functions; a function that a benchmark would call in another way is wrapped.
        writes: which of them change their arguments.
        inputs, reference: the functions of these names.
        types: name of each output -> its type.
        described: types and shapes of the arguments.
        library, device: where the functions run; empty for what the inputs tell.
        notes: what cannot be checked.
        rounded: computes the outputs of the reference in another precision.
        altered: how the samples' arguments differ from those given; empty where they do not.
    """

    calls: Sequence[Callable[..., Any]]
    writes: Sequence[bool]
    inputs: Callable[..., Any]
    reference: Callable[..., Any]
    types: Mapping[str, str]
    described: str
    library: str = ""
    device: str = ""
    notes: Sequence[str] = ()
    rounded: Callable[..., Any] | None = None
    altered: str = ""


def _names(functions: Sequence[Callable[..., Any]], names: Sequence[str]) -> list[str]:
    """The names of the argument `names`, or the names of the functions; `function 2` for a function without a name."""
    if names and len(names) != len(functions):
        raise WorkloadError(
            f"compare_functions: names has {len(names)} names for {len(functions)} functions; give one for each"
        )
    own = [str(getattr(each, "__name__", "<")) for each in functions]
    alone = [name if own.count(name) == 1 and name[0] != "<" else "" for name in own]
    return list(names) or [name or f"function {place}" for place, name in enumerate(alone, 1)]


# -- functions of arguments ----------------------------------------------------------------------------------------------------


def _with_arguments(
    functions: Sequence[Callable[..., Any]], names: Sequence[str], args: Any, tolerance: Any, is_vetted: bool
) -> _Compared:
    """Raises WorkloadError."""
    keywords, make, notes, altered = _maker(functions, names, args, tolerance, is_vetted)
    sample = make(np.random.default_rng(0))
    outputs, changed = _of_first(functions[0], lambda first: _tried(first, keywords, sample))
    calls, writes = [], []
    for function in functions:
        with suppress(Exception):  # the recording has its status
            changed = changed if function is functions[0] else _tried(function, keywords, sample)[1]
        calls.append(_call(function, keywords, changed))
        writes.append(bool(changed))
    first = calls[0]

    def right(convert: Callable[[Any, Any], Any], *values: Any) -> dict[str, np.ndarray]:
        returned = first(*map(convert, values, sample))
        return {name: _in_double(value) for name, value in outputs_by_name(returned, place_of(functions[0])).items()}

    libraries = {arrays.library_of(value): value for value in sample}
    on_gpu = [arrays.is_on_gpu(value, library) for library, value in libraries.items() if library in ("torch", "jax")]
    return _Compared(
        calls,
        writes,
        lambda rng: tuple(make(rng)),
        functools.partial(right, _like),
        {name: arrays.dtype_of(value) for name, value in outputs.items()},
        " ".join(map(_described, sample)),
        device=("gpu" if any(on_gpu) else "cpu") if on_gpu else "",
        notes=notes,
        rounded=functools.partial(right, _in_other_precision),
        altered=altered,
    )


def _of_first(first: Callable[..., Any], of: Callable[[Callable[..., Any]], _T]) -> _T:
    """What is found out of the first function. Raises WorkloadError where it raises."""
    try:
        return of(first)
    except WorkloadError:
        raise
    except Exception as error:
        raise raised_by(first, "the first function", error) from error


def _maker(
    functions: Sequence[Callable[..., Any]], names: Sequence[str], args: Any, tolerance: Any, is_vetted: bool
) -> tuple[tuple[str, ...], Callable[[np.random.Generator], list[Any]], list[str], str]:
    """The names of arguments that are passed by name, what makes the arguments, notes, and how they are altered. Raises WorkloadError."""
    if callable(args) and not arrays.library_of(args):

        def make_arguments(rng: np.random.Generator) -> tuple[tuple[str, ...], list[Any]]:
            return _listed(called_with_axes(args, {}, rng=rng))

        return make_arguments(np.random.default_rng(0))[0], lambda rng: make_arguments(rng)[1], [], ""
    keywords, values = _listed(args)
    if not any(map(_is_scaled, values)):
        return keywords, lambda rng: values, [f"not checked: no argument holds real numbers; {_SAME}"], ""
    forms = [Form("", arrays.dtype_of(each), (), ()) for each in values if arrays.library_of(each)]
    vetting = _Vetting(functions, keywords, values, tolerances(tolerance)[precision_of(forms)])
    works = False
    objecting: dict[bool, list[int]] = {}
    for by_element in (True, False):
        fresh = functools.partial(_fresh, values, by_element)
        altered = [fresh(np.random.default_rng(seed)) for seed in range(_TRIALS)]
        if not all(map(vetting.first_works, altered)):
            continue
        works = True
        objecting[by_element] = vetting.objecting(altered[0]) if is_vetted else []
        if not objecting[by_element]:
            doubted = [_SCALED.format(names[place]) for place in objecting.get(True, ())]
            return keywords, fresh, doubted, _ALTERED[by_element]
    for by_element, places in objecting.items():
        if all(map(vetting.keeps_outputs, places)):  # the recording finds them wrong
            return keywords, functools.partial(_fresh, values, by_element), [], _ALTERED[by_element]
    if not works:
        return (
            keywords,
            lambda rng: values,
            [f"not checked: the first function fails with arguments other than these; {_SAME}"],
            "",
        )
    others = ", ".join(names[place] for place in sorted({*itertools.chain(*objecting.values())}))
    why = (
        f"not checked: with real numbers multiplied by random factors, {others} would not agree with {names[0]} any more, as where "
        f"arguments must be sorted, symmetric or of a certain sum. So {_SAME}"
    )
    return keywords, lambda rng: values, [why], ""


class _Vetting:
    """Finds functions that agree with the first on the arguments as given, and not on altered ones.

    Args:
        functions, keywords, values: as given.
        tolerance: of the precision of the arguments.
    """

    def __init__(
        self, functions: Sequence[Callable[..., Any]], keywords: Sequence[str], values: Sequence[Any], tolerance: float
    ) -> None:
        self._functions, self._keywords, self._tolerance = functions, keywords, tolerance
        self._given = [self._outputs(function, values) for function in functions]
        self._altered: dict[int, Mapping[str, np.ndarray] | None] = {}

    def _outputs(self, function: Callable[..., Any], values: Sequence[Any]) -> dict[str, np.ndarray] | None:
        """The outputs of a function by name; None where it fails, which is reported with the arguments as they are given."""
        try:
            with np.errstate(all="ignore"):
                return {name: _in_double(each) for name, each in _tried(function, self._keywords, values)[0].items()}
        except Exception:
            return None

    def first_works(self, values: Sequence[Any]) -> bool:
        """Whether the first function gives finite outputs, or as many that are not as for the arguments as given."""
        found, given = self._outputs(self._functions[0], values), self._given[0]
        return found is not None and _not_finite(found) <= (_not_finite(given) if given else 0)

    def objecting(self, values: Sequence[Any]) -> list[int]:
        """The places of the functions that agree with the first on the arguments as given, and not on these."""
        right, given = self._outputs(self._functions[0], values), self._given[0]
        if right is None or given is None:
            return []
        places = []
        for place, function in enumerate(self._functions[1:], 1):
            before = _distance(self._given[place], given, self._tolerance)
            if before <= 1:
                self._altered[place] = self._outputs(function, values)
                if not _distance(self._altered[place], right, self._tolerance) <= max(1, _GROWS * before):
                    places.append(place)
        return places

    def keeps_outputs(self, place: int) -> bool:
        """Whether a function gave the same for altered arguments as for those given."""
        now, before = self._altered.get(place), self._given[place]
        return (
            now is not None
            and before is not None
            and now.keys() == before.keys()
            and all(np.array_equal(now[name], before[name], equal_nan=before[name].dtype.kind in "fc") for name in now)
        )


def _not_finite(outputs: Mapping[str, np.ndarray]) -> int:
    return sum(int(np.count_nonzero(~np.isfinite(each))) for each in outputs.values())


def _distance(outputs: Mapping[str, np.ndarray] | None, right: Mapping[str, np.ndarray], tolerance: float) -> float:
    """How far outputs are from the right ones, over what rounding may do to them."""
    if outputs is None or outputs.keys() != right.keys():
        return math.inf
    distances = [0.0]
    for name, array in right.items():
        if outputs[name].shape != array.shape:
            return math.inf
        if array.dtype.kind not in "fc":
            distances.append(float(np.count_nonzero(outputs[name] != array)) / max(array.size, 1) / _FEW)
            continue
        finite = np.isfinite(array)
        difference, size = (outputs[name] - array)[finite], float(np.linalg.norm(array[finite].reshape(-1)))
        distances.append(float(np.linalg.norm(difference)) / (size or 1.0) / max(_ROOM * tolerance, 1e-15))
    return max(distances)


def _in_other_precision(value: Any, sample: Any) -> Any:
    """A value of the reference, which has numbers of 64 bits, in 32 bits where the functions take 64."""
    dtype = arrays.dtype_of(sample) if arrays.library_of(sample) else ""
    if dtype not in ("float64", "complex128"):
        return value
    narrow = "float32" if dtype == "float64" else "complex64"
    return value.to(getattr(sys.modules["torch"], narrow)) if arrays.library_of(sample) == "torch" else value.astype(narrow)


def _listed(args: Any) -> tuple[tuple[str, ...], list[Any]]:
    """The names of arguments that are passed by name, and the arguments. Raises WorkloadError."""
    by_name = dict(args) if isinstance(args, Mapping) else {}
    values = list(by_name.values()) if by_name else list(args) if isinstance(args, tuple | list) else [args]
    for place, value in enumerate(values):
        where = f"args[{[*by_name][place]!r}]" if by_name else f"args[{place}]"
        if arrays.library_of(value):
            try:
                arrays.on_host(value)
            except ValueError as error:
                raise WorkloadError(f"compare_functions: {where}: {error}") from error
        if arrays.library_of(value) not in ("numpy", "torch", "cupy", "jax") and not isinstance(value, NUMBERS):
            raise WorkloadError(
                f"compare_functions: {where} is {arrays.described(value)}; give arrays of NumPy, PyTorch, CuPy or JAX, numbers or texts, "
                "and bind other values with functools.partial"
            )
    if not any(arrays.library_of(value) or arrays.is_number(value) for value in values):
        raise WorkloadError(
            "compare_functions: args are texts only; give an array or a number too, "
            "or bind the texts, as compare_functions(lambda: f(text), lambda: g(text))"
        )
    return tuple(by_name), values


def _is_scaled(value: Any) -> bool:
    return bool(arrays.library_of(value)) and arrays.is_inexact(value)


def _fresh(values: Sequence[Any], by_element: bool, rng: np.random.Generator) -> list[Any]:
    """The values, with arrays of real or complex numbers multiplied by random factors from 0.5 to 1, one for each element or one for an
    array. They keep signs, zeros and ranges; one for an array also keeps symmetry and order."""
    return [_scaled(each, by_element, rng) if _is_scaled(each) else each for each in values]


def _scaled(array: Any, by_element: bool, rng: np.random.Generator) -> Any:
    factors = rng.uniform(0.5, 1.0, tuple(array.shape) if by_element else (1,) * len(array.shape))
    match arrays.library_of(array):
        case "torch":
            return array.detach() * sys.modules["torch"].from_numpy(factors).to(array)
        case "cupy":
            return array * sys.modules["cupy"].asarray(factors, dtype=array.dtype)
        case "jax":
            return array * sys.modules["jax"].numpy.asarray(factors, dtype=array.dtype)
    return (array * factors).astype(array.dtype)


def _tried(
    function: Callable[..., Any], keywords: Sequence[str], values: Sequence[Any]
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The outputs of a call with copies of the values, and the places of the arguments that it changes. Raises WorkloadError."""
    copies = [_copied(each) for each in values]
    returned = _call(function, keywords, ())(*copies)
    changed = tuple(place for place, pair in enumerate(zip(copies, values, strict=True)) if _differ(*pair))
    if returned is None and not changed:
        raise WorkloadError(
            f"{place_of(function)} returns None and changes no argument, so that nothing can be compared; return the output"
        )
    outputs = outputs_by_name(tuple(copies[place] for place in changed) if returned is None else returned, place_of(function))
    outputs = {name: np.asarray(value) if arrays.is_number(value) else value for name, value in outputs.items()}
    for name, value in outputs.items():
        if not arrays.library_of(value):
            raise WorkloadError(
                f"{place_of(function)}: {name} is {arrays.described(value)}; return an array, or a tuple or dict of arrays"
            )
    return outputs, changed


def _differ(value: Any, other: Any) -> bool:
    if not arrays.library_of(value):
        return False
    first, second = arrays.on_host(value), arrays.on_host(other)
    return not np.array_equal(first, second, equal_nan=first.dtype.kind in "fc")


def _call(function: Callable[..., Any], keywords: Sequence[str], changed: Sequence[int]) -> Callable[..., Any]:
    """The function, with arguments by position. It returns those that it changes where it returns None."""
    try:
        special = {OUT, STREAM, _AXIS} & set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        special = set()
    if not (keywords or changed or special):
        return function

    def call(*values: Any) -> Any:
        returned = function(**dict(zip(keywords, values, strict=True))) if keywords else function(*values)
        return tuple(values[place] for place in changed) if returned is None and changed else returned

    return _standing_for(function, call)


def _standing_for(function: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper with the source of the user's function and its own parameters."""
    own = inspect.signature(call)
    functools.update_wrapper(call, function)
    call.__signature__ = own  # type: ignore[attr-defined]
    return call


def _copied(value: Any) -> Any:
    match arrays.library_of(value):
        case "torch":
            return value.detach().clone()
        case "numpy" | "cupy":
            return value.copy()
    return value


def _like(value: Any, sample: Any) -> Any:
    """A value of the reference, which has numbers of 64 bits, as the functions take it."""
    match arrays.library_of(sample):
        case "torch":
            return value.to(sample)
        case "numpy" | "cupy":
            return value.astype(sample.dtype)
        case "jax":
            return sys.modules["jax"].device_put(value.astype(sample.dtype), next(iter(sample.devices())))
    return value


def _in_double(value: Any) -> np.ndarray:
    value = np.asarray(value) if arrays.is_number(value) else value
    array: np.ndarray = widened(arrays.on_host(value), arrays.dtype_of(value))
    return array.astype({"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype))


def _described(value: Any) -> str:
    if not arrays.library_of(value):
        return type(value).__name__
    return f"{arrays.dtype_of(value)}[{'x'.join(map(str, value.shape))}]"


# -- functions without arguments -----------------------------------------------------------------------------------------------


def _without_arguments(functions: Sequence[Callable[..., Any]], tolerance: Any) -> _Compared:
    """The functions, as ones of an argument that none of them reads. Raises WorkloadError."""
    first = functions[0]
    right = _of_first(first, _outputs)
    library, on_gpu = _library(right)
    compared_once = (
        "outputs were compared once, before the rounds"
        if right
        else "no output was compared, because the functions return None"
    )
    return _Compared(
        [_closure(each, "" if each is first or not right else _fault(each, right, tolerance)) for each in functions],
        [True] * len(functions),
        lambda: np.ones(1, np.float32),
        lambda unused: 1.0 * unused,
        {},
        _NONE,
        library,
        "gpu" if on_gpu else "cpu" if library == "torch" else "",
        [f"not checked: the functions take no arguments; {compared_once}, and {_SAME}"],
    )


def _outputs(function: Callable[..., Any]) -> dict[str, Any]:
    """Call a function without arguments, and give its outputs by name; empty for None."""
    returned = function()
    return {} if returned is None else outputs_by_name(returned, place_of(function))


def _library(outputs: Mapping[str, Any]) -> tuple[str, bool]:
    """The library whose stream the functions use, and whether it is on the GPU. Where they return None, it is one that is in use."""
    for value in outputs.values():
        library = arrays.library_of(value)
        return ("numpy", False) if library in ("", "jax") else (library, arrays.is_on_gpu(value, library))
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "torch", True
    return ("cupy", True) if "cupy" in sys.modules else ("numpy", False)


def _fault(function: Callable[..., Any], right: Mapping[str, Any], tolerance: Any) -> str:
    """Find the fault in the outputs of a function without arguments; empty where they are right, and where it raises an exception."""
    try:
        outputs = {name: _in_double(value) for name, value in _outputs(function).items()}
    except Exception:  # the recording has its status
        return ""
    forms = [Form(arrays.library_of(value), arrays.dtype_of(value), (), ()) for value in right.values()]
    found = agreement.compare(
        outputs, {name: _in_double(value) for name, value in right.items()}, tolerances(tolerance)[precision_of(forms)]
    )
    return found.detail


def _closure(function: Callable[..., Any], fault: str) -> Callable[..., Any]:
    """A function of an argument that stays as it is. Outputs are not handed on: they may be the user's own arrays, and a recording
    overwrites outputs."""

    def call(unused: Any) -> None:
        if fault:
            raise WrongOutput(fault)
        returned = function()
        if hasattr(returned, "block_until_ready"):
            returned.block_until_ready()

    return _standing_for(function, call)
