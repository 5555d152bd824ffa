"""What the functions of a benchmark give: `inputs` for a case, and the others as outputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpladder.workloads.api import WorkloadError, WrongOutput
from warpladder.workloads.functions import arrays
from warpladder.workloads.functions.arrays import Form
from warpladder.workloads.functions.parameters import OUT, parameters_of, place_of


@dataclass(frozen=True)
class Arguments:
    """What the function `inputs` gave for a case.

    Attributes:
        values: name -> form of an array, or the value itself of anything else.
        by_name: it was a dict, so that functions take the values by name.
    """

    values: Mapping[str, Any]
    by_name: bool

    @property
    def forms(self) -> dict[str, Form]:
        return {name: value for name, value in self.values.items() if isinstance(value, Form)}


def check_takes(function: Callable[..., Any], given: Arguments, special: Sequence[str]) -> None:
    """Check that a function takes the inputs. Raises WorkloadError."""
    takes = parameters_of(function, special)
    where, count = place_of(function), len(given.values)
    if given.by_name:
        names = tuple(given.values)
        if takes.by_name is not None and (unknown := [name for name in names if name not in takes.by_name]):
            raise WorkloadError(
                f"{where} has no parameter {unknown[0]}, which `inputs` gives; it has {_listed(takes.by_name)}; make them the same"
            )
        needed = takes.inputs[: takes.needed] if takes.inputs else ()
        missing = [name for name in (*needed, *takes.missing) if name not in names]
    else:
        missing = list(takes.missing)
        if not missing and takes.inputs is not None and not takes.needed <= count <= len(takes.inputs):
            raise WorkloadError(
                f"{where} takes {_listed(takes.inputs)}, and `inputs` gives {_counted(count, 'value')} "
                f"({_listed(tuple(given.values))}); make them the same"
            )
    if missing:
        raise WorkloadError(
            f"{where} takes {missing[0]}, which is neither an axis, a config's value nor one of the inputs in order; "
            "give it a default, or a value in configs"
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "no inputs"


def named_outputs(returned: Any, outputs: Mapping[str, Any], takes_out: bool = False) -> dict[str, Any]:
    """What a function returned, by name of output.

    Args:
        returned: what it returned.
        outputs: the outputs of the reference, by name.
        takes_out: it may write to its parameter `out` in place of returning outputs.

    Raises:
        WrongOutput: it is nothing, has another number of outputs, or is not an array, a tuple or a dict.
    """
    several = "an array" if len(outputs) == 1 else f"a tuple of the {len(outputs)} outputs, or a dict of them"
    if returned is None:
        raise WrongOutput(f"returns None; return the output, or take a parameter `{OUT}` and write to it")
    kind = type(returned)  # never the object itself, whose class may answer to anything
    if issubclass(kind, Mapping):
        if set(returned) != set(outputs):
            raise WrongOutput(
                f"returns a dict of {_listed(sorted(map(str, returned)))}, and the reference's outputs are {_listed(tuple(outputs))}; "
                "make the names the same"
            )
        return {name: returned[name] for name in outputs}
    if issubclass(kind, tuple | list):
        other = next((each for each in returned if not arrays.library_of(each)), outputs)
        if other is not outputs:
            raise WrongOutput(f"returns {arrays.described(returned)} that holds {arrays.described(other)}; return {several}")
        if len(returned) != len(outputs):
            raise WrongOutput(
                f"returns {_counted(len(returned), 'output')}, and the reference {len(outputs)}; make them the same"
            )
        return dict(zip(outputs, returned, strict=True))
    if arrays.is_unfinished(returned) or not arrays.library_of(returned):
        instead = f"; return None after writing to `{OUT}`" if takes_out else f"; return {several}"
        raise WrongOutput(f"returns {arrays.described(returned)}{instead}")
    if len(outputs) != 1:
        raise WrongOutput(f"returns 1 array, and the reference {len(outputs)} outputs; return {several}")
    return {next(iter(outputs)): returned}


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
