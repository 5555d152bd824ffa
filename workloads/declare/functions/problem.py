"""The inputs and reference of a benchmark, as a workload asks for them: stored arrays by name."""

import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from keyword import iskeyword
from reprlib import repr as shortened
from typing import Any, Final

import numpy as np

from warpladder.workloads.declare import locate
from warpladder.workloads.declare.cases import widened
from warpladder.workloads.declare.functions import arrays, calls
from warpladder.workloads.declare.functions.arguments import called_with_axes, checked_outputs
from warpladder.workloads.declare.functions.arrays import Form
from warpladder.workloads.declare.functions.calls import OUT, STREAM, Arguments, check_takes, place_of, raised_by
from warpladder.workloads.declare.functions.comparisons import Comparison, Verdict
from warpladder.workloads.declare.workloads import PRECISION_OF_TYPE, Buffer, Case, Compared, WorkloadError

NUMBERS: Final = (bool, int, float, complex, str, type(None))
_REAL_PART: Final = {"complex64": "float32", "complex128": "float64"}
#: Types of outputs: of all, by name, or a function of axes that gives these.
Outputs = str | Mapping[str, str] | Callable[..., str | Mapping[str, str]]


class Problem:
    """The values that a benchmark's functions `inputs` and `reference` returned, by case. The forms of a case are the forms of
    its first arrays.

    Args:
        inputs, reference: the user's functions.
        outputs: type of each output, by name, or of all of them; or a function of axes that gives these. Empty for the types that
            `_output_type` chooses.
        special: names of axes and config values, which are no inputs.
        of_gradients: whether the gradients of real inputs are outputs too, or names of such inputs.
        compare: how outputs are compared, all or by name; None for the tolerance.
        rounded: computes the outputs in another precision than the reference, from the same arguments; None for the reference itself with
            arguments in float32.
    """

    def __init__(
        self,
        inputs: Callable[..., Any],
        reference: Callable[..., Any],
        outputs: Outputs,
        special: tuple[str, ...],
        of_gradients: bool | Sequence[str] = False,
        compare: Comparison | Mapping[str, Comparison] | None = None,
        rounded: Callable[..., Any] | None = None,
    ) -> None:
        self._inputs, self._reference, self._types, self._special = inputs, reference, outputs, special
        self._gradients, self._compare, self._rounded = of_gradients, compare, rounded
        self._arguments: dict[str, Arguments] = {}
        self._gave: dict[str, dict[str, Form]] = {}

    def make_inputs(self, case: Case, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Fresh inputs of a case, as stored. The generators of the libraries are seeded from `rng`. Raises
        WorkloadError: the function gives no arrays, or others than before."""
        where = place_of(self._inputs)
        _seed(rng)
        try:
            returned = called_with_axes(self._inputs, case.params, rng=rng)
        except (Exception, SystemExit) as error:
            raise raised_by(self._inputs, "inputs", error) from error
        values: dict[str, Any] = {}
        stored: dict[str, np.ndarray] = {}
        for name, value in self._by_name(returned, where).items():
            if arrays.library_of(value):
                values[name], stored[name] = _read(arrays.stored, name, value, where)
            elif issubclass(type(value), NUMBERS):
                values[name] = value
            else:
                cure = arrays.array_of(value, "give", "arrays, numbers or texts")
                raise WorkloadError(f"{where}: {name} is {arrays.described(value)}; {cure}")
        if not stored:
            numbers = {name: np.array(value) for name, value in values.items() if arrays.is_number(value)}
            stored = {name: array for name, array in numbers.items() if arrays.is_measurable(array.dtype)}
            values |= {name: Form("python", str(array.dtype), (), ()) for name, array in stored.items()}
        if not stored:
            raise WorkloadError(f"{where} gives no array and no number; return what the variants read")
        arguments = Arguments(values, issubclass(type(returned), Mapping))
        first = self._arguments.setdefault(case.name, arguments)
        if changed := next((name for name, form in first.forms.items() if form != arguments.forms.get(name)), ""):
            raise WorkloadError(
                f"{where}: {changed} has another shape, type or library than at the first call; make it the same"
            )
        return stored

    def _by_name(self, returned: Any, where: str) -> dict[str, Any]:
        """The values that `inputs` returned, by the names of the reference's parameters unless it returned a dict."""
        if issubclass(type(returned), Mapping):
            for name in returned:
                if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
                    raise WorkloadError(f"{where}: {shortened(name)} names an input; name it as a parameter of the variants")
                if name in self._special or name == OUT:
                    raise WorkloadError(
                        f"{where}: input {name} has the name of an axis, `{OUT}` or `{STREAM}`; choose another name"
                    )
            return dict(returned)
        if arrays.is_unfinished(returned) or returned is None:
            raise WorkloadError(f"{where} gives {arrays.described(returned)}; return an array, or a tuple or dict of arrays")
        values = list(returned) if issubclass(type(returned), tuple | list) else [returned]
        try:
            parameters = inspect.signature(self._reference).parameters.values()
            names = [each.name for each in parameters if each.name not in self._special and each.kind in (0, 1)]
        except (TypeError, ValueError):
            names = []
        if len(names) < len(values):
            names = ["x"] if len(values) == 1 else [f"x{number}" for number in range(len(values))]
        return dict(zip(names, values, strict=False))

    def arguments(self, case: Case) -> Arguments:
        """The inputs that `inputs` gave for a case whose inputs were made."""
        return self._arguments[case.name]

    @property
    def own_comparisons(self) -> tuple[Callable[..., object], ...]:
        """The user's own functions that compare."""
        every = self._compare.values() if isinstance(self._compare, Mapping) else [self._compare]
        return tuple(each.function for each in every if each and each.function)

    def comparisons(self, case: Case, inputs: Mapping[str, np.ndarray]) -> dict[str, Compared]:
        """How outputs are compared that are not compared within the tolerance, by name. Raises WorkloadError: one is
        given for an output that there is not."""
        if self._compare is None:
            return {}
        names = tuple(self._gave[case.name])
        by_name = self._compare if isinstance(self._compare, Mapping) else dict.fromkeys(names, self._compare)
        if unknown := [name for name in by_name if name not in names]:
            raise WorkloadError(
                f"{place_of(self._reference)} has no output {unknown[0]}, which `compare` names; it gives {', '.join(names)}"
            )
        values = _values(self._arguments[case.name], inputs, arrays.on_host_in_double)
        return {name: partial(_verdict, each, values) for name, each in by_name.items()}

    def is_known(self, case: Case) -> bool:
        """Whether the inputs of a case were made and its reference computed."""
        return case.name in self._gave

    def gradients(self, case: Case) -> tuple[str, ...]:
        """The inputs whose gradients are outputs."""
        return calls.differentiated_of(self._gradients, self._arguments[case.name].forms)

    def reference(self, case: Case, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The right outputs by name. The function is called with real numbers in float64. Raises WorkloadError: it
        gives no arrays."""
        where = place_of(self._reference)
        arguments = self._arguments[case.name]
        check_takes(self._reference, arguments, self._special)
        with _in_64_bits():
            values = _values(arguments, inputs, arrays.in_double)
            differentiated = self.gradients(case)
            for name in differentiated:
                values[name].requires_grad_(True)
            returned = self._returned(self._reference, case, arguments, values)
            outputs = {name: self._on_host(name, value, where) for name, value in outputs_by_name(returned, where).items()}
        forms = self._forms_of(outputs, list(arguments.forms.values()), self._types_at(case))
        if differentiated:
            leaves = [values[name] for name in differentiated]
            real = {name: form for name, form in forms.items() if form.is_real}
            upstream = calls.upstream_of(real, leaves[0], double=True)
            computed = calls.backward(returned, leaves, upstream)
            for name, value in zip(differentiated, computed, strict=True):
                form = arguments.forms[name]
                forms[calls.gradient_of(name)] = Form(form.library, form.dtype, form.shape, tuple(range(len(form.shape))))
                outputs[calls.gradient_of(name)] = self._on_host(name, value, where)
        first = self._gave.setdefault(case.name, forms)
        for name in [name for name, form in forms.items() if name in first and form.shape != first[name].shape]:
            first[name] = replace(first[name], varies=True)
        return outputs

    def in_single(self, case: Case, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs of the reference with real numbers in float32, or of the function `rounded`, by name; without gradients. Empty if no
        input is a real number.

        Raises whatever the function raises.
        """
        arguments = self._arguments[case.name]
        if not any(form.dtype in PRECISION_OF_TYPE for form in arguments.forms.values()) or self._gradients:
            return {}
        if self._rounded:
            with _in_64_bits():
                returned = self._returned(self._rounded, case, arguments, _values(arguments, inputs, arrays.in_double))
        else:
            returned = self._returned(self._reference, case, arguments, _values(arguments, inputs, arrays.in_single))
        where = place_of(self._reference)
        return {name: _in_64(self._on_host(name, value, where)) for name, value in outputs_by_name(returned, where).items()}

    def _returned(self, function: Callable[..., Any], case: Case, arguments: Arguments, values: Mapping[str, Any]) -> Any:
        """Call the reference, or one in its place, and give its outputs. Raises WorkloadError."""
        try:
            if arguments.by_name:
                return called_with_axes(function, {**case.params, **values})
            axes = {name: value for name, value in case.params.items() if name in _keywords(function)}
            return function(*values.values(), **axes)
        except (Exception, SystemExit) as error:
            raise raised_by(self._reference, "reference", error) from error

    def _types_at(self, case: Case) -> str | Mapping[str, str]:
        """The declared types of the outputs of a case. Raises WorkloadError."""
        if not callable(self._types):
            return self._types
        try:
            return checked_outputs(called_with_axes(self._types, case.params))
        except Exception as error:
            raise raised_by(self._types, "outputs", error) from error

    def _forms_of(
        self, outputs: Mapping[str, np.ndarray], inputs: list[Form], types: str | Mapping[str, str]
    ) -> dict[str, Form]:
        """The forms of outputs, which a bench stores in the order of their axes. Raises WorkloadError."""
        if not isinstance(types, str) and (unknown := [name for name in types if name not in outputs]):
            raise WorkloadError(
                f"{place_of(self._reference)} has no output {unknown[0]}, whose type `outputs` gives; "
                f"it gives {', '.join(outputs)}"
            )
        library = "numpy" if inputs[0].library == "python" else inputs[0].library
        return {
            name: Form(library, _output_type(name, array, inputs, types), tuple(array.shape), tuple(range(array.ndim)))
            for name, array in outputs.items()
        }

    def _on_host(self, name: str, value: Any, where: str) -> np.ndarray:
        if issubclass(type(value), float | int | complex):
            value = np.asarray(value)
        if not arrays.library_of(value):
            cure = arrays.array_of(value, "return", "an array, or a tuple or dict of arrays")
            raise WorkloadError(f"{where}: {name} is {arrays.described(value)}; {cure}")
        array = _read(arrays.on_host, name, value, where)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        return np.ascontiguousarray(widened(array, arrays.dtype_of(value))).reshape(tuple(value.shape))

    def outputs(self, case: Case) -> dict[str, Form]:
        """The forms of the outputs of a case whose reference was computed."""
        return self._gave[case.name]

    def buffers(self, case: Case) -> tuple[dict[str, Buffer], dict[str, Buffer]]:
        """Inputs and outputs as stored. Both are empty until the inputs have been made, the outputs until the reference has been computed."""
        made = self._arguments.get(case.name)
        inputs = made.forms if made else {}
        gave = self._gave.get(case.name, {})
        return tuple(  # type: ignore[return-value]
            {name: Buffer(form.stored_shape, form.dtype, varies=form.varies) for name, form in forms.items()}
            for forms in (inputs, gave)
        )


def _read(read: Callable[[Any], Any], name: str, value: Any, where: str) -> Any:
    """What reads an array gives. Raises WorkloadError."""
    try:
        return read(value)
    except ValueError as error:
        raise WorkloadError(f"{where}: {name}: {error}") from error
    except Exception as error:  # a sparse tensor, or one without data
        what = f"{type(error).__name__}: {locate.text_of(error)[:200]}"
        raise WorkloadError(f"{where}: {name} cannot be read ({what}); give an array with elements") from error


def _verdict(comparison: Comparison, inputs: Mapping[str, Any], output: np.ndarray, reference: np.ndarray) -> Verdict:
    return comparison.verdict(output, reference, inputs)


def _values(
    arguments: Arguments, inputs: Mapping[str, np.ndarray], convert: Callable[[Form, np.ndarray], Any]
) -> dict[str, Any]:
    """The arguments of a reference by name, with converted arrays."""
    return {
        name: convert(value, inputs[name]) if isinstance(value, Form) else value for name, value in arguments.values.items()
    }


def _in_64(array: np.ndarray) -> np.ndarray:
    """An array with real numbers in float64, and complex ones in complex128."""
    return array.astype({"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype), copy=False)


def _output_type(name: str, array: np.ndarray, inputs: list[Form], types: str | Mapping[str, str]) -> str:
    """The type of an output of variants: the declared type, or the type of the first input of real (or complex) numbers, or the
    reference's own for whole numbers."""
    if declared := types if isinstance(types, str) else types.get(name, ""):
        return declared
    if array.dtype.kind not in "fc":
        return str(array.dtype)
    reals = [form.dtype for form in inputs if form.is_real]
    complexes = [form.dtype for form in inputs if form.dtype in _REAL_PART]
    if array.dtype.kind == "f":
        return next(iter([*reals, *(_REAL_PART[dtype] for dtype in complexes)]), "float32")
    return next(iter([*complexes, *("complex128" if dtype == "float64" else "complex64" for dtype in reals)]), "complex64")


def outputs_by_name(returned: Any, where: str) -> dict[str, Any]:
    """The reference's outputs by name: `out`, or `out0`, `out1` and so on, unless it returned a dict. Raises WorkloadError."""
    if issubclass(type(returned), Mapping):
        if bad := [name for name in returned if not isinstance(name, str) or not name.isidentifier()]:
            raise WorkloadError(f"{where}: {shortened(bad[0])} names an output; give it a name like that of a parameter")
        return dict(returned)
    if arrays.is_unfinished(returned) or returned is None:
        raise WorkloadError(f"{where} returns {arrays.described(returned)}; return an array, or a tuple or dict of arrays")
    values = list(returned) if issubclass(type(returned), tuple | list) else [returned]
    names = ["out"] if len(values) == 1 else [f"out{number}" for number in range(len(values))]
    return dict(zip(names, values, strict=True))


def _keywords(function: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


def _seed(rng: np.random.Generator) -> None:
    """Seed the generators of the libraries that are in use."""
    seed = int(rng.integers(2**31))
    random.seed(seed)
    np.random.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)
    if cupy := sys.modules.get("cupy"):
        with suppress(Exception):  # without a GPU
            cupy.random.seed(seed)


@contextmanager
def _in_64_bits() -> Iterator[None]:
    """JAX computes in 32 bits unless told otherwise."""
    if "jax" not in sys.modules:
        yield
        return
    jax = sys.modules["jax"]
    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else import_module("jax.experimental").enable_x64
    with enable(True):
        yield
