"""The texts of a report: its table StringIds, and the names of API calls."""

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.trace.report import Report
from warpladder.data.arrays import integers

#: `_v` and four characters, as in `nsys stats`, so that names are equal there and here. `cudaGraphLaunch_v10000` (five
#: characters), `cudaLaunchKernel_ptsz` and `cuMemAlloc_v2` (a different function than `cuMemAlloc`) keep their suffix.
_VERSION_SUFFIX: Final = re.compile(r"_v.{4}\Z", re.DOTALL)


class Strings:
    """Id -> text, for columns at once."""

    def __init__(self, report: Report) -> None:
        # Each distinct text is stored once.
        ids, places, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [pa.array([""])]
        count = 1
        for batch in report.batches("StringIds", ["id"], ["value"]):
            texts = as_dictionary(batch.column("value"))
            ids.append(integers(batch["id"], -1))
            places.append(count + integers(texts.indices))
            values.append(texts.dictionary)
            count += len(texts.dictionary)
        self._ids, first = np.unique(np.concatenate(ids), return_index=True)
        self._places = np.concatenate(places)[first]
        self._values = pa.chunked_array(values, pa.string())

    def of(self, ids: pa.Array, *, calls: bool = False) -> pa.Array:
        """Return the texts of an int64 column of ids as a dictionary; "" if the id is null or unknown.

        Args:
            ids: column of ids.
            calls: the texts are names of API calls; strip the version suffix, as `nsys stats` does.
        """
        encoded = ids.fill_null(-1).dictionary_encode()
        distinct = encoded.dictionary.to_numpy()
        at = np.searchsorted(self._ids, distinct)
        is_known = at < len(self._ids)
        is_known[is_known] = self._ids[at[is_known]] == distinct[is_known]
        place = np.zeros(len(distinct), np.int64)
        place[is_known] = self._places[at[is_known]]
        used, number = np.unique(place, return_inverse=True)
        texts = self._values.take(pa.array(used)).combine_chunks()
        if isinstance(texts, pa.ChunkedArray):
            texts = pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], pa.string())
        if calls:
            texts = pa.array([_VERSION_SUFFIX.sub("", name) for name in texts.to_pylist()], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(number[encoded.indices.to_numpy()].astype(np.int32)), texts)


def as_dictionary(texts: pa.Array) -> pa.DictionaryArray:
    """Encode a text column as a dictionary, in the order of first appearance."""
    if not pa.types.is_dictionary(texts.type):
        return texts.dictionary_encode()
    used = texts.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(used.indices, texts.dictionary.take(used.dictionary))


def or_else(texts: pa.Array, others: pa.Array) -> pa.DictionaryArray:
    """Return `texts`, with empty ones replaced by `others`. Both are text columns or dictionaries, possibly with duplicates."""
    texts = as_dictionary(texts)
    empty = pc.equal(texts.dictionary, "")
    if not pc.any(empty).as_py():
        return texts
    others = as_dictionary(others)
    places = pc.if_else(empty.take(texts.indices), pc.add(others.indices, len(texts.dictionary)), texts.indices)
    return pa.DictionaryArray.from_arrays(pc.cast(places, pa.int32()), pa.concat_arrays([texts.dictionary, others.dictionary]))
