"""Cases of a workload, their buffers, and their parts: a case is divided among ranks, or for overlapped copies."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from warpladder.errors import Error
from warpladder.workloads.small_floats import STORAGE

Array = Any  # numpy.ndarray on the host, cupy.ndarray on a GPU
Params = Mapping[str, Any]
Buffers = Mapping[str, Array]
CaseSet = Literal["quick", "report", "full"]

#: Largest number that a column of a run holds.
LARGEST: Final = 2**63 - 1


class WorkloadError(Error):
    """An error in a workload. The message says where it is, what is wrong, and what to do, in one line."""


@dataclass(frozen=True)
class Buffer:
    """Shape and type of an input, an output or scratch.

    Attributes:
        shape, dtype: as of a NumPy array; also `bfloat16`, `float8_e4m3fn` and `float8_e5m2`.
        zeroed: scratch that holds 0 before the first operation, such as a counter. Each operation must leave it at 0.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    zeroed: bool = False

    @property
    def storage(self) -> str:
        """The type of the array that holds it: unsigned integers for a type that NumPy lacks."""
        return STORAGE.get(self.dtype, self.dtype)

    @property
    def kind(self) -> str:
        """`numpy.dtype.kind` of its values."""
        return "f" if self.dtype in STORAGE else np.dtype(self.dtype).kind

    @property
    def nbytes(self) -> int:
        return math.prod(int(extent) for extent in self.shape) * np.dtype(self.storage).itemsize


@dataclass(frozen=True)
class Case:
    """One point of a workload's own axes.

    Attributes:
        params: the axes, e.g. `{"n": 512, "perm": "210"}`; the case is named after them.
        flops: operations of the definition, a multiply-add counted as two.
        min_bytes: each input read once and each output written once, in bytes. None if the arrays tell it, once they are made.
        sets: which of `--set quick|report|full` take it.
        size_rank: order on the size axis; None for a case that is verified but not charted.
        resident: inputs that lie on the device before the clock of the scope `end_to_end` starts, such as the weights of a model
            that serves many requests. No variant copies them there.
    """

    params: Params
    flops: int
    min_bytes: int | None
    sets: tuple[CaseSet, ...] = ("full",)
    size_rank: int | None = 0
    resident: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Turn NumPy's numbers into Python's, and refuse fractions where a run stores whole numbers."""
        object.__setattr__(self, "params", {key: _plain(value) for key, value in self.params.items()})
        try:
            json.dumps(self.params)
            self.name.encode()
        except (TypeError, ValueError) as error:
            raise WorkloadError(f"case {self.name!a}: {error}; give params numbers and texts") from error
        for attribute in ("flops", "min_bytes", "size_rank"):
            number = _plain(getattr(self, attribute))
            if attribute != "flops" and number is None:
                continue
            if not (isinstance(number, int | float) and -LARGEST <= number <= LARGEST and int(number) == number):
                raise WorkloadError(f"case {self.name}: {attribute} is {number}; give a whole number of at most 2^63 - 1")
            object.__setattr__(self, attribute, int(number))

    @property
    def name(self) -> str:
        return format_params(self.params)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def format_params(params: Params) -> str:
    """`n=512,perm=210` for `{"n": 512, "perm": "210"}`."""
    return ",".join(f"{key}={value}" for key, value in params.items())


@dataclass(frozen=True)
class Part:
    """A share of a case: the share of one rank, or one whose copies overlap the kernels of other parts.

    Attributes:
        case: the smaller case that the kernels are launched for. Where its buffer has fewer rows along the first axis than that
            of the whole case, the part has the rows of the whole buffer that begin at `first`.
        first: the first of those rows.
    """

    case: Case
    first: int


class NotShareable(Exception):
    """A case that cannot be shared among so many ranks. The message is the reason."""


def split_evenly(count: int, ranks: int, what: str) -> tuple[tuple[int, int], ...]:
    """The first item and the number of items of each rank's share. Shares follow one another; the first ones have one item more
    where needed.

    Args:
        count: number of items.
        ranks: number of shares.
        what: name of the items, for the message.

    Raises:
        NotShareable: a rank would have none.
    """
    if count < ranks:
        raise NotShareable(f"{count} {what} cannot be shared among {ranks} ranks")
    least, remaining = divmod(count, ranks)
    return tuple((rank * least + min(rank, remaining), least + (rank < remaining)) for rank in range(ranks))
