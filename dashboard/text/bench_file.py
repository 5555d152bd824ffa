"""Operations of a trace as a Python file of benchmarks, which runs as it is and is there to be edited."""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, isnan
from typing import Any, Final

from warpladder.dashboard.core.numbers import format_duration, significant
from warpladder.dashboard.core.operations import aten
from warpladder.dashboard.core.operations.aten import Tensor, UnknownNumber
from warpladder.dashboard.core.operations.hot_operations import NO_TYPES, Form, HotOperations, Operation, Part
from warpladder.dashboard.core.operations.recorded_calls import NO_SHAPES
from warpladder.data.files import one_line

#: Forms below this share of their operation's device time are left out.
_LEAST_SHARE: Final = 0.01
#: The hottest forms, which are measured by default, have at least this share of it.
_HOT_SHARE: Final = 0.8
_MOST_KERNELS: Final = 12
_LONGEST: Final = 120
_LINE: Final = 120
#: What follows the operator and its calls.
_BENCHMARK: Final = """\
{bench} = warpladder.Benchmark(
    "{name}", call=list({name}.calls), flops={name}.flops, bytes={name}.bytes, quick={name}.is_hot
)


@{bench}.inputs
def {name}_inputs(call):
    return {name}.inputs(call)


@{bench}.reference(outputs={name}.output_types)
def {name}_reference({parameters}):
    return {name}.reference(call, {tensors})


@{bench}.variant(name="as_called", baseline=True{options})
def {name}_as_called({parameters}):
    \"""Idea: The operator as the program called it.\"""
    return {name}(call, {tensors})


@{bench}.variant(name="compiled", role="peer"{options})
def {name}_compiled({parameters}):
    \"""Idea: The operator compiled by torch.compile.\"""
    return {name}.compiled(call, {tensors})


# Your own variant of {operator}. docs/own-kernel.md has examples in Triton, CuPy, Numba and CUDA C++.
#
# @{bench}.variant{own_options}
# def {name}_mine({parameters}):
#     \"""Idea: {idea}
#     return ...  # Triton: launch kernel[grid](...) on tensors; CuPy: give the variant arrays="cupy"
#
# {bench}.cuda("{name}.cu", kernel="{name}", grid=..., block=256)  # CUDA C++
"""


def render(hot: HotOperations, operations: Sequence[Operation], run: Mapping[str, Any], command: str) -> str:
    """The file.

    Args:
        hot: all operations of the trace.
        operations: those to write, in order; each can be called again.
        run: row of table `run` of the trace.
        command: what wrote the file.
    """
    products_tf32 = any(_tf32(each) for each in operations if _has(each, aten.PRODUCTS))
    parts = ["".join(f"{line}\n" for line in _head(hot, operations, run, command))]
    for number, operation in enumerate(operations, 1):
        allowed = _tf32(operation) if _has(operation, aten.CONVOLUTIONS) else None
        allowed = products_tf32 if _has(operation, aten.PRODUCTS) else allowed
        parts.append("".join(f"{line}\n" for line in _operation(hot, operation, number, allowed)))
    return "\n\n".join(parts)


def _head(hot: HotOperations, operations: Sequence[Operation], run: Mapping[str, Any], command: str) -> Iterator[str]:
    number = "1 step" if hot.steps == 1 else f"{hot.steps} steps"
    steps = number if hot.has_steps else "no steps, so that the whole trace counts as one"
    gpu = "a processor" if hot.on_host else _plain(run["device_name"] or "an unknown GPU")
    chains = list(map(_is_chain, operations))
    names = ["Call", *["Chain"] * any(chains), *["Operation"] * (not all(chains)), *["Step"] * any(chains)]
    yield f'''"""Operations of {_plain(run["source"] or run["run_id"])} as benchmarks.

Written from a trace on {gpu}: {steps}, {format_duration(hot.device_ns / hot.steps)} of {hot.time} a step.
{_plain(command)}

Inputs are random numbers of the trace's shapes, types and strides. A tensor whose elements do not lie side by side comes as its
storage in one dimension; `arguments` gives it its shape and strides.
"""

import warpladder
from warpladder.workloads.torch_operation import {", ".join([*names, "tensor", *sorted(_makers(operations))])}'''
    refused = [each for each in hot.operations if each.reason and hot.share(each) >= _LEAST_SHARE]
    if refused:
        yield ""
        yield "# Not here:"
        for each in sorted(refused, key=lambda each: -each.device_ns):
            yield f"#   {_plain(each.name)}, {100 * hot.share(each):.1f} % of the {hot.time}: {_plain(each.reason)}"
            if each.reason in (NO_SHAPES, NO_TYPES):
                short, shapes = aten.plain(each.name).strip("_"), "[[8, 1024], [8, 512]]"
                call = f'{{"a call": Call(tensors("bfloat16", {shapes}), ...)}}'
                yield f'#     aten_{short} = Operation("{_plain(each.name)}", {call}), and a benchmark as below'


def _makers(operations: Sequence[Operation]) -> set[str]:
    """The names that the arguments of some operations need beside `tensor`."""
    given = [each for operation in operations for form in operation.forms for each in _parts(operation, form)]
    lists = any(any(aten.lists(arguments)) for _, arguments in given)
    unread = any(aten.plain(name) in aten.ATTENTION_BACKWARD for name, _ in given)
    return {*(["tensors"] if lists else []), *(["unread"] if unread else [])}


def _operation(hot: HotOperations, operation: Operation, number: int, allow_tf32: bool | None) -> Iterator[str]:
    name, kept = operation.workload, _kept(operation)
    parameters, tensors = ", ".join((*_tensors(operation), "call")), ", ".join(_tensors(operation))
    written = ", writes_inputs=True" if any(map(aten.writes_inputs, _names(operation))) else ""
    options = written + (', precision="tf32"' if _tf32(operation) else "")
    yield f"# -- {number}. {operation.name} ".ljust(128, "-")
    yield "#"
    yield from _summary(hot, operation, kept)
    yield ""
    if _is_chain(operation):
        yield f"{name} = Chain("
        yield "    {"
        for form in kept:
            yield from _chain(hot, form)
    else:
        yield f"{name} = Operation("
        yield f'    "{operation.name}",'
        yield "    {"
        for form in kept:
            yield f"        {_text(form.name)}: Call("
            yield from _call(operation.name, form.arguments, " " * 12)
            yield from _facts(hot, operation.name, form, " " * 12)
            yield "        ),"
    yield "    },"
    if allow_tf32 is not None:
        yield f"    allow_tf32={allow_tf32},"
    if (hot_forms := _hot(operation)) < len(kept):
        yield f"    hot={hot_forms},"
    yield ")"
    idea = 'All in one kernel, without the arrays between."""'
    if not _is_chain(operation):
        arguments = ", ".join(aten.parameters(operation.name, len(operation.forms[0].arguments)))
        idea = f'..."""\n#     {arguments} = {name}.arguments(call, {tensors})'
    yield _BENCHMARK.format(
        operator=operation.name,
        bench=f"{name}_bench",
        name=name,
        parameters=parameters,
        tensors=tensors,
        options=options,
        own_options=f"({options.removeprefix(', ')})" if options else "",
        idea=idea,
    ).rstrip("\n")


def _summary(hot: HotOperations, operation: Operation, kept: Sequence[Form]) -> Iterator[str]:
    above = (
        "" if isnan(operation.worth_ns) else f", of which {format_duration(operation.worth_ns / hot.steps)} is above the floor"
    )
    yield (
        f"# {100 * hot.share(operation):.1f} % of the {hot.time}: {significant(operation.calls / hot.steps)} calls a step take "
        f"{format_duration(operation.device_ns / hot.steps)}{above}."
    )
    if len(kept) < len(operation.forms):
        share = sum(form.device_ns for form in kept) / max(operation.device_ns, 1)
        yield f"# {len(operation.forms) - len(kept)} of its {len(operation.forms)} forms are left out; those here have {100 * share:.1f} % of its time."
    if (hot_forms := _hot(operation)) < len(kept):
        share = sum(form.device_ns for form in kept[:hot_forms]) / operation.device_ns
        yield (
            f"# `record` measures the first {f'{hot_forms} forms' if hot_forms > 1 else 'form'}, with {100 * share:.0f} % of its time; "
            "`record --set full` measures all."
        )
    if any(isinstance(each, UnknownNumber) for form in kept for _, arguments in _parts(operation, form) for each in arguments):
        yield "# It takes a number of Python whose value the trace lacks; another number stands for it, which changes no work."
    if _is_chain(operation):
        yield "# The trace does not tell which tensor is which: the output of an operator is taken for the first tensor of the next one that has"
        yield "# its shape, type and strides. Other operators, which are not here, may read it too."


def _call(name: str, arguments: Sequence[Any], indent: str) -> Iterator[str]:
    """The arguments of a call: a line for each tensor, and for the numbers between them."""
    numbers: list[str] = []
    for parameter, argument in zip(aten.parameters(name, len(arguments)), arguments, strict=True):
        if isinstance(argument, Tensor) or any(aten.lists((argument,))):
            if numbers:
                yield f"{indent}{', '.join(numbers)},"
                numbers = []
            yield from _described(name, parameter, argument, indent)
        else:
            numbers.append(_literal(argument))
    if numbers:
        yield f"{indent}{', '.join(numbers)},"


def _facts(hot: HotOperations, operator: str, form: Form, indent: str) -> Iterator[str]:
    """The figures of a form in the trace."""
    facts = [f"calls={_number(form.calls / hot.steps)}", f"time_us={_number(form.median_ns / 1000)}"]
    facts += [f"flops={form.work.flops}"] if form.work.flops else []
    facts += [f"bytes={form.work.read + form.work.written}"] if aten.reads_less(operator, form.arguments) else []
    yield f"{indent}{', '.join(facts)},"
    kernels = [each for each in form.kernels if each.grid][:_MOST_KERNELS]
    if kernels:
        yield f"{indent}kernels=["
        for each in kernels:
            name = each.name[:_LONGEST] + "…" * (len(each.name) > _LONGEST)
            yield f"{indent}    ({_text(name)}, {each.grid!r}),"
        yield f"{indent}],"


def _chain(hot: HotOperations, form: Form) -> Iterator[str]:
    yield f"        # {_number(form.calls / hot.steps)} times a step, {format_duration(form.median_ns)} each."
    yield f"        {_text(form.name)}: ["
    less = any(aten.reads_less(part.name, part.arguments) for part in form.arguments)
    for part in form.arguments:
        yield f'            Step("{part.name}", Call('
        yield from _call(part.name, part.arguments, " " * 16)
        facts = [f"flops={flops}"] if (flops := aten.work(part.name, part.arguments).flops) else []
        facts += [f"bytes={_bytes_of_step(part, part is form.arguments[-1])}"] if less else []
        if facts:
            yield f"                {', '.join(facts)},"
        yield f"            ), takes={part.takes}),"
    yield "        ],"


def _bytes_of_step(part: Part, is_last: bool) -> int:
    """The tensors that a chain must read and write, without those between its operators."""
    read = sum(aten.bytes_of(each) for place, each in enumerate(aten.inputs(part.arguments)) if place != part.takes)
    return read + (aten.work(part.name, part.arguments).written if is_last else 0)


def _is_chain(operation: Operation) -> bool:
    return any(isinstance(each, Part) for each in operation.forms[0].arguments)


def _parts(operation: Operation, form: Form) -> list[tuple[str, tuple[Any, ...]]]:
    """The operators of a form with their arguments."""
    if _is_chain(operation):
        return [(part.name, part.arguments) for part in form.arguments]
    return [(operation.name, form.arguments)]


def _names(operation: Operation) -> list[str]:
    return [name for name, _ in _parts(operation, operation.forms[0])]


def _has(operation: Operation, among: Sequence[str]) -> bool:
    """Whether it is one of some operators, or a chain with one."""
    return any(aten.plain(name) in among for name in _names(operation))


def _unread(operator: str, parameter: str) -> bool:
    return aten.plain(operator) in aten.ATTENTION_BACKWARD and parameter in aten.UNREAD


def _described(operator: str, parameter: str, argument: "Tensor | list[Tensor]", indent: str) -> Iterator[str]:
    first = argument if isinstance(argument, Tensor) else argument[0]
    positive = parameter in aten.POSITIVE or aten.plain(operator).rstrip("_") in aten.OF_POSITIVE
    more = ", positive=True" if positive and first.dtype not in aten.WHOLE else ""
    if isinstance(argument, Tensor):
        if _unread(operator, parameter):
            yield f'{indent}unread({list(argument.shape)}, "{argument.dtype}"),'
        else:
            yield f'{indent}tensor({list(argument.shape)}, "{argument.dtype}", {list(argument.strides)}{more}),'
        return
    yield f'{indent}tensors("{first.dtype}", ['
    dense = all(each.is_dense for each in argument)
    each_of = [f"{list(each.shape)}" if dense else f"({list(each.shape)}, {list(each.strides)})" for each in argument]
    yield from textwrap.wrap(", ".join(each_of) + ",", _LINE, initial_indent=indent + "    ", subsequent_indent=indent + "    ")
    yield f"{indent}]{more}),"


def _literal(argument: Any) -> str:
    if isinstance(argument, UnknownNumber):
        return repr(argument.stand_in)
    if isinstance(argument, list):
        return f"[{', '.join(map(_literal, argument))}]"
    if isinstance(argument, float) and not isfinite(argument):
        return f'float("{argument}")'
    return repr(argument)


def _text(text: str) -> str:
    """A text as a literal of Python."""
    return json.dumps(one_line(text), ensure_ascii=False)


def _tensors(operation: Operation) -> list[str]:
    """Names of the parameters that are inputs of the benchmark."""
    form = operation.forms[0]
    takes = [part.takes for part in form.arguments] if _is_chain(operation) else [None]
    found: list[str] = []
    for (name, arguments), taken in zip(_parts(operation, form), takes, strict=True):
        given = aten.inputs(arguments)
        named = zip(aten.parameters(name, len(arguments)), arguments, strict=True)
        tensors = [each for each, argument in named if argument in given and not _unread(name, each)]
        found += [each for place, each in enumerate(tensors) if place != taken]
    return found if len(set(found)) == len(found) else [f"x{place}" for place in range(len(found))]


def _kept(operation: Operation) -> list[Form]:
    least = _LEAST_SHARE * operation.device_ns
    return [form for form in operation.forms if form.device_ns >= least] or list(operation.forms[:1])


def _hot(operation: Operation) -> int:
    """The fewest forms, the hottest first, that have most of the operation's time."""
    times = [form.device_ns for form in _kept(operation)]
    enough = [sum(times[:count]) >= _HOT_SHARE * operation.device_ns for count in range(1, len(times))]
    return 1 + enough.index(True) if any(enough) else len(times)


def counts(operations: Sequence[Operation]) -> tuple[int, int]:
    """Number of forms that are measured by default, and of all forms in the file."""
    return sum(map(_hot, operations)), sum(len(_kept(each)) for each in operations)


def _tf32(operation: Operation) -> bool:
    """Whether the operation computes in TensorFloat-32, by the names of its kernels."""
    arguments = [each for _, given in _parts(operation, operation.forms[0]) for each in given]
    has_float32 = any(isinstance(each, Tensor) and each.dtype == "float32" for each in arguments)
    names = (kernel.full_name for form in operation.forms for kernel in form.kernels)
    return has_float32 and _has(operation, (*aten.PRODUCTS, *aten.CONVOLUTIONS)) and aten.uses_tf32(names)


def _number(value: float) -> str:
    return f"{value:.4g}" if value < 10_000 else f"{value:.0f}"


def _plain(text: Any) -> str:
    """Text from outside for a comment or a docstring: it ends neither."""
    return one_line(str(text)).replace("\\", "/").replace('"', "'")
