"""Text columns as codes and the texts that they stand for."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def coded(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The code of each row of a text column without nulls, which may be a dictionary, and its different texts."""
    if not len(column):
        return np.empty(0, np.int64), []
    whole = column.unify_dictionaries().combine_chunks()
    array = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
