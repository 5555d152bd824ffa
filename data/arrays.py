"""The toolbox of arrays: columns of Arrow as arrays, numbers for equal rows, places of ids, launches of device work, the least of
groups and windows, unions of intervals."""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s: TypeAlias = npt.NDArray[np.int64]
Integers: TypeAlias = npt.NDArray[np.integer[Any]]
Bools: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
#: A column of Arrow, whole or in pieces.
Column: TypeAlias = "pa.Array | pa.ChunkedArray"

#: Instead of a place: there is none.
NONE: Final = -1
#: A table of places has at most so many entries for an id.
_MOST_SPARE: Final = 4
_FEW: Final = 1024
#: A larger correlation id is damage.
_MOST_CORRELATION: Final = (1 << 38) - 1


def integers(column: Column, otherwise: int = 0) -> Int64s:
    """A column of integers as an array, with a number in place of nulls. Without nulls it is copied only where its type is another."""
    # `fill_null` copies even where there is nothing to fill.
    filled = column.fill_null(otherwise) if column.null_count else column
    return np.asarray(filled.to_numpy(), np.int64)


def free_unused() -> None:
    """Give the system back what pyarrow keeps of memory that is free. After a long table it may be more than all that is in use."""
    pa.default_memory_pool().release_unused()


def coded(column: Column) -> tuple[Int64s, list[str]]:
    """The code of each row of a text column, which may be a dictionary, and its different texts. A null is an empty text."""
    if not len(column):
        return np.empty(0, np.int64), []
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    codes = integers(encoded.indices, len(texts))
    return codes, [*texts, ""] if encoded.indices.null_count else texts


def numbered(*columns: Integers) -> tuple[Int64s, Int64s]:
    """A number from 0 for each row, the same for rows that are equal in all columns, and the first place of each number.

    Numbers are in the order of first places.
    """
    number, first = _numbered(columns[0])
    for column in columns[1:]:
        further, firsts = _numbered(column)
        if len(firsts) > 1 and len(first) < len(number):
            number, first = _numbered(number * len(firsts) + further)
    return number, first


def ordered(*columns: Integers) -> Int64s:
    """The same numbers in the order of the rows' values, the first column first."""
    number, first = numbered(*columns)
    rank = np.empty(len(first), np.int64)
    rank[np.lexsort([column[first] for column in columns[::-1]])] = np.arange(len(first))
    return rank[number]


def _numbered(values: Integers) -> tuple[Int64s, Int64s]:
    # Most traces have one process and a thread or two.
    if len(values) and (values == values[0]).all():
        return np.zeros(len(values), np.int64), np.zeros(1, np.int64)
    encoded = pa.array(values).dictionary_encode()
    number = integers(encoded.indices)
    first = np.empty(len(encoded.dictionary), np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return number, first


def occurrence(*columns: Integers) -> Int64s:
    """How many rows above each are equal to it in all columns."""
    number, first = numbered(*columns)
    order = np.argsort(number, kind="stable")
    count = np.bincount(number, minlength=len(first))
    above = np.empty(len(number), np.int64)
    above[order] = np.arange(len(number)) - np.repeat(np.cumsum(count) - count, count)
    return above


class Places:
    """Finds the places of numbers in `ids`.

    Consecutive ids need no search. Dense ids are looked up in a table, and others are found by bisection.
    """

    def __init__(self, ids: Int64s) -> None:
        self.least, most = (int(ids.min()), int(ids.max())) if len(ids) else (0, -1)
        self._span = most - self.least + 1
        self._table = self._order = None
        self._ids = ids
        if self._span == len(ids) and bool((ids == np.arange(self.least, most + 1)).all()):
            return
        if self._span <= _MOST_SPARE * len(ids) + _FEW:
            self._table = np.full(self._span, NONE, np.int64)
            # Written backwards, so that the first of equal ids stays.
            self._table[ids[::-1] - self.least] = np.arange(len(ids) - 1, -1, -1)
        else:
            self._order = np.argsort(ids, kind="stable")

    def of(self, numbers: Int64s) -> Int64s:
        """The first place of each number; `NONE` where it is not among the ids."""
        if self._order is not None:
            found = np.minimum(np.searchsorted(self._ids, numbers, sorter=self._order), len(self._ids) - 1)
            rows = self._order[found]
            return np.where(self._ids[rows] == numbers, rows, NONE)
        place = numbers - self.least  # where this wraps around, it is outside too
        inside = (place >= 0) & (place < self._span)
        if self._table is not None:
            place = self._table[np.where(inside, place, 0)]
        return np.where(inside, place, NONE)


def lookup(ids: Int64s, numbers: Int64s) -> Int64s:
    """The first place of each number in `ids`; `NONE` where it is not in them."""
    return Places(ids).of(numbers)


class Launches:
    """Finds the calls that launched device work. A correlation id is one of a process."""

    def __init__(self, process: Int64s, correlation: Int64s) -> None:
        self._processes = Places(process[numbered(process)[1]])
        # Ids of a process are dense, and so are those of all processes one behind the other.
        self._width = min(int(correlation.max(initial=0)), _MOST_CORRELATION) + 1
        self._places = Places(self._keys(process, correlation))

    def of(self, process: Int64s, correlation: Int64s) -> Int64s:
        """The place of the call of each piece of work, the first of several; `NONE` where it is not among the calls."""
        key = self._keys(process, correlation)
        return np.where(key != NONE, self._places.of(key), NONE)

    def _keys(self, process: Int64s, correlation: Int64s) -> Int64s:
        code = self._processes.of(process)
        usable = (correlation > 0) & (correlation < self._width) & (code != NONE)
        return np.where(usable, code * self._width + correlation, NONE)


def heads(*columns: Integers) -> Int64s:
    """The places of the first row, and of each row that differs from the one before it."""
    is_head = np.ones(len(columns[0]), bool)
    is_head[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(is_head)


def least_of_groups(group: Int64s, values: Int64s, groups: int) -> Int64s:
    """The least value of each group from 0 to `groups` - 1; the largest integer for one without values."""
    least = np.full(groups, np.iinfo(np.int64).max)
    np.minimum.at(least, group, values)
    return least


def most_of_groups(group: Int64s, values: Int64s, groups: int) -> Int64s:
    """The largest value of each group from 0 to `groups` - 1; the least integer for one without values."""
    most = np.full(groups, np.iinfo(np.int64).min)
    np.maximum.at(most, group, values)
    return most


def least_of_windows(values: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """The least value of each window `values[first:last]`, none empty, from two blocks whose length is a power of two."""
    power_of = np.frexp((last - first).astype(np.float64))[1] - 1
    least = np.empty(len(first), np.int64)
    for power in range(int(power_of.max(initial=NONE)) + 1):
        block = 1 << power
        windows = np.flatnonzero(power_of == power)
        least[windows] = np.minimum(values[first[windows]], values[last[windows] - block])
        values = np.minimum(values[:-block], values[block:])
    return least


class Intervals:
    """The union of some intervals, which may overlap and stand in any order. `start`, `end`: intervals that do not
    touch, in order, with the same union."""

    def __init__(self, start: Int64s, end: Int64s) -> None:
        order = np.argsort(start, kind="stable")
        start, reached = start[order], np.maximum.accumulate(end[order])
        heads = np.flatnonzero(np.append(np.ones(min(len(start), 1), bool), start[1:] > reached[:-1]))
        self.start, self.end = start[heads], reached[np.append(heads[1:], len(start))[: len(heads)] - 1]
        self._before = np.append(0, np.cumsum(self.end - self.start))

    @property
    def length(self) -> int:
        """The length of the union."""
        return int(self._before[-1])

    def within(self, begin: Int64s, end: Int64s) -> Int64s:
        """The length of the union between each begin and end."""
        return self._until(end) - self._until(begin)

    def _until(self, time: Int64s) -> Int64s:
        if not len(self.start):
            return np.zeros(len(time), np.int64)
        place = np.searchsorted(self.start, time, side="right") - 1
        inside = np.minimum(time, self.end[place]) - self.start[place]
        return np.where(place >= 0, self._before[place] + inside, 0)


def union_lengths(group: Int64s, start: Int64s, end: Int64s, groups: int) -> Int64s:
    """The length of the union of the intervals of each group from 0 to `groups` - 1."""
    order = np.lexsort((start, group))
    group, start, end = group[order], start[order], np.maximum(start, end)[order]
    # Ranks of ends, shifted one group behind the other, have room in 64 bits where times have none; one running maximum serves all groups.
    ascending = np.argsort(end, kind="stable")
    rank = np.empty(len(end), np.int64)
    rank[ascending] = np.arange(len(end))
    shift = group * len(end)
    reached = end[ascending][np.maximum.accumulate(rank + shift) - shift]
    is_next = group[1:] == group[:-1]
    gained = end - start
    gained[1:][is_next] = np.maximum(end[1:] - np.maximum(start[1:], reached[:-1]), 0)[is_next]
    lengths = np.zeros(groups, np.int64)
    np.add.at(lengths, group, gained)
    return lengths
