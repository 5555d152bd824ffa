"""Text of a report: its table StringIds, and the names of calls."""

import re
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collectors.trace.report import Report

#: As `nsys stats` has it: `_v` and four characters. `cudaGraphLaunch_v10000`, with five, and the `cudaLaunchKernel_ptsz` of a stream per
#: thread keep their names, so that ours are those that a user sees there; `cuMemAlloc_v2` is another function than `cuMemAlloc`.
_VERSION_SUFFIX: Final = re.compile(r"_v.{4}\Z", re.DOTALL)


class Strings:
    """Id -> text, for columns at once."""

    def __init__(self, report: Report) -> None:
        ids, values = [np.empty(0, np.int64)], [pa.array([], pa.string())]
        for batch in report.batches("StringIds", ["id"], ["value"]):
            ids.append(batch.column("id").fill_null(-1).to_numpy())
            values.append(batch.column("value"))
        every = np.concatenate(ids)
        self._ids, first = np.unique(every, return_index=True)
        self._values = pa.chunked_array(values, pa.string()).take(pa.array(first))

    def of(self, ids: pa.Array, *, calls: bool = False) -> pa.Array:
        """The texts of an int64 column of ids; "" where the id is null or unknown.

        Args:
            ids: column of ids.
            calls: whether they are names of API calls, whose version suffix is stripped as `nsys stats` does.
        """
        encoded = ids.fill_null(-1).dictionary_encode()
        distinct = encoded.dictionary.to_numpy()
        place = np.searchsorted(self._ids, distinct)
        known = place < len(self._ids)
        known[known] = self._ids[place[known]] == distinct[known]
        texts = self._values.take(pa.array(place, mask=~known)).combine_chunks().fill_null("")
        if isinstance(texts, pa.ChunkedArray):
            texts = pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], pa.string())
        if calls:
            texts = pa.array([_VERSION_SUFFIX.sub("", name) for name in texts.to_pylist()], pa.string())
        return pa.DictionaryArray.from_arrays(encoded.indices, texts)


class Codes:
    """Numbers values 0, 1, 2… in the order of their first appearance."""

    def __init__(self) -> None:
        self._codes: dict[int, int] = {}

    def of(self, values: npt.NDArray[np.int64], *, known_only: bool = False) -> npt.NDArray[np.int64]:
        """Code of each value; a new one gets the next number, or -1 with `known_only`."""
        encoded = pa.array(values).dictionary_encode()
        codes = [
            self._codes.get(value, -1) if known_only else self._codes.setdefault(value, len(self._codes))
            for value in encoded.dictionary.to_pylist()
        ]
        numbered: npt.NDArray[np.int64] = np.array(codes, dtype=np.int64)[encoded.indices.to_numpy()]
        return numbered


def or_else(texts: pa.Array, others: pa.Array) -> pa.Array:
    """`texts`, and where it is empty `others`; each a text column or a dictionary of texts."""
    if pa.types.is_dictionary(texts.type) and pc.all(pc.not_equal(texts.dictionary, "")).as_py():
        return texts
    texts, others = (array.cast(pa.string()) for array in (texts, others))
    return pc.if_else(pc.equal(texts, ""), others, texts)
