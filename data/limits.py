"""The times that memory and arithmetic of a device take at least, and the limits beyond which a time is not believed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from warpladder.data.arrays import Bools, Floats
from warpladder.data.names import Ceiling, found_by_size

if TYPE_CHECKING:
    import pandas as pd

_Floats = Floats
_TF32: Final = (Ceiling.TF32_MMA, Ceiling.TF32_WGMMA, Ceiling.TF32_CUBLAS)
#: Precision -> ceilings of arithmetic on a GPU, and the share of the highest one that the precision can use. 3xTF32 takes three
#: tensor products for each product, so its share is a third.
COMPUTE: Final[Mapping[str, tuple[tuple[str, ...], float]]] = {
    "fp64": ((Ceiling.FP64_FMA, Ceiling.FP64_MMA), 1.0),
    "fp32": ((Ceiling.FP32_FMA,), 1.0),
    "tf32": (_TF32, 1.0),
    "3xtf32": (_TF32, 1 / 3),
    "bf16": ((Ceiling.BF16_MMA, Ceiling.BF16_WGMMA, Ceiling.BF16_CUBLAS), 1.0),
    "fp16": ((Ceiling.FP16_MMA, Ceiling.FP16_WGMMA, Ceiling.FP16_CUBLAS), 1.0),
    "fp8": ((Ceiling.FP8_MMA, Ceiling.FP8_WGMMA), 1.0),
    "int8": ((Ceiling.INT8_MMA, Ceiling.INT8_WGMMA, Ceiling.INT8_CUBLAS), 1.0),
}
#: Bit masks of the reasons that reduce the clock of a busy GPU (NVML API reference, nvmlClocksEventReasons). Work that draws much power
#: reaches the software power cap in every run. Hardware slowdown, software and hardware thermal slowdown and the power brake tell of
#: the machine.
POWER_LIMIT: Final = 0x4
SLOWDOWN: Final = 0x8 | 0x20 | 0x40 | 0x80
THROTTLING: Final = POWER_LIMIT | SLOWDOWN
#: Precisions whose arithmetic no ceiling tells. A processor may have units for the narrow ones.
_NOT_MEASURED: Final = {"gpu": ("int", "mixed"), "host": ("bf16", "fp16", "fp8", "int8", "int", "mixed")}


def compute_ceiling(ceilings: Mapping[str, float], precision: str) -> str:
    """The name of the highest ceiling of a precision's arithmetic on the GPU; the first name where none was measured."""
    names, _ = COMPUTE[precision]
    return max(names, key=lambda name: np.nan_to_num(ceilings.get(name, np.nan)))


def arithmetic_ns(cells: "pd.DataFrame", ceilings: Mapping[str, float]) -> tuple[_Floats, npt.NDArray[np.object_]]:
    """The least time in ns for the operations of each cell, and the ceiling that it comes from, such as `tf32_wgmma / 3`.

    It is `flops` over the highest ceiling of the precision; for 3xTF32 over a third of the highest one of TF32; on the host over
    `host_fma`. GPUs that worked together share the operations evenly.

    Args:
        cells: `kind`, `precision`, `gpus` and `flops`, one row a cell.
        ceilings: their values in TFLOP/s, by name.

    Returns:
        Two arrays of one value a row. A time is 0 for a cell without operations, and NaN where the ceiling was not measured.
    """
    on_gpu = (cells["kind"] != "host").to_numpy(dtype=bool)
    gpus = np.maximum(cells["gpus"].fillna(0).to_numpy(dtype=float), 1)
    names = np.where(on_gpu, Ceiling.FP32_FMA, Ceiling.HOST_FMA).astype(object)
    rates = np.where(on_gpu, ceilings.get(Ceiling.FP32_FMA, np.nan), ceilings.get(Ceiling.HOST_FMA, np.nan)).astype(float)
    unknown = np.where(on_gpu, *(cells["precision"].isin(_NOT_MEASURED[place]).to_numpy(bool) for place in ("gpu", "host")))
    rates = np.where(unknown, np.nan, rates)
    for precision, (_, share) in COMPUTE.items():
        rows, name = on_gpu & (cells["precision"] == precision).to_numpy(dtype=bool), compute_ceiling(ceilings, precision)
        rates = np.where(rows, ceilings.get(name, np.nan) * share, rates)
        names = np.where(rows, name if share == 1 else f"{name} / {round(1 / share)}", names)
    counted: Any = cells["flops"]
    flops = counted.to_numpy(dtype=float)
    # FLOP / (1000 TFLOP/s) is nanoseconds.
    return np.where(flops == 0, 0.0, flops / (1000 * np.where(rates > 0, rates, np.nan)) / gpus), names


def arithmetic_of_call_ns(flops: int, precision: str, ceilings: Mapping[str, float]) -> float:
    """The least time in ns of so many operations on the GPU, in a precision of `COMPUTE`; NaN where no ceiling of it was measured."""
    if not flops:
        return 0.0
    rate = ceilings.get(compute_ceiling(ceilings, precision), np.nan) * COMPUTE[precision][1]
    return flops / (1000 * rate) if rate > 0 else np.nan


#: Ceilings of device memory -> the share of their bytes that are read, rising.
DEVICE_MIXES: Final[Mapping[str, float]] = {
    Ceiling.DEVICE_WRITE: 0.0,
    Ceiling.DEVICE_1_TO_8: 1 / 9,
    Ceiling.DEVICE_1_TO_2: 1 / 3,
    Ceiling.DEVICE_COPY: 1 / 2,
    Ceiling.DEVICE_2_TO_1: 2 / 3,
    Ceiling.DEVICE_8_TO_1: 8 / 9,
    Ceiling.DEVICE_READ: 1.0,
}
#: The same of the processor's memory.
HOST_MIXES: Final[Mapping[str, float]] = {Ceiling.HOST_COPY: 1 / 2}
#: Bytes read and written by the copy whose rate is measured on the processor. Its caches may hold fewer.
HOST_COPY_BYTES: Final = 1 << 28
#: Shares of reads that differ by no more than this are one mix.
_SAME_MIX: Final = 0.005
_NS_PER_US: Final = 1000.0
#: In the names that `Memory.ceiling_names` gives by curves.
BY_SIZE: Final = " by size"


@dataclass(frozen=True)
class Curve:
    """The least time of one mix, measured at some sizes.

    Attributes:
        sizes: bytes read and written, rising; at least one.
        times_ns: times at these sizes.
        ns_per_byte: of bytes beyond the largest size.
        empty_ns: of no bytes: an empty kernel.
    """

    sizes: tuple[float, ...]
    times_ns: tuple[float, ...]
    ns_per_byte: float
    empty_ns: float = 0.0

    def time_ns(self, nbytes: npt.ArrayLike) -> _Floats:
        """The least time in ns for so many bytes.

        Below the smallest size it is on the line from the time of no bytes. Beyond the largest size, `ns_per_byte` is added for
        each byte. Between two sizes it is on the line through them, or on the continued line of the sizes before or after where
        that is lower: where the bytes begin to exceed a cache, the curve bends below the line.
        """
        sizes, nbytes = np.asarray(self.sizes), np.asarray(nbytes, float)
        # Fewer bytes take no longer than more.
        times = np.minimum.accumulate(self.times_ns[::-1])[::-1]
        slopes = np.diff(times, append=np.nan) / np.diff(sizes, append=np.inf)
        at = np.clip(np.searchsorted(sizes, nbytes) - 1, 0, max(len(sizes) - 2, 0))
        after = np.minimum(at + 1, len(sizes) - 1)
        line = times[at] + slopes[at] * (nbytes - sizes[at])
        before = times[at] + np.where(at > 0, slopes[at - 1], np.nan) * (nbytes - sizes[at])
        behind = times[after] - slopes[after] * (sizes[after] - nbytes)
        # A continued line above the line between the sizes bounds nothing: the curve bends the other way there. So does none.
        bends = before <= line, behind <= line
        cases = [bends[0] & bends[1], *bends]
        between = np.maximum(np.select(cases, [np.maximum(before, behind), before, behind], line), times[at])
        beyond = times[-1] + self.ns_per_byte * (nbytes - sizes[-1])
        empty = min(self.empty_ns, times[0])
        below = empty + (times[0] - empty) * nbytes / sizes[0]
        return np.asarray(np.where(nbytes <= sizes[0], below, np.where(nbytes >= sizes[-1], beyond, between)))


@dataclass(frozen=True)
class Memory:
    """The measured times of one memory.

    Attributes:
        names, shares, ns_per_byte: the measured mixes, by rising share of bytes read; empty where none was measured.
        curves: the times of the mixes by size; empty where they were not measured, so that `ns_per_byte` counts at every size.
        cache: of the curves, `cold` or `hot`; empty without curves.
        hot_curves: the same with a hot cache, for passes after the first.
    """

    names: tuple[str, ...]
    shares: tuple[float, ...]
    ns_per_byte: tuple[float, ...]
    curves: tuple[Curve, ...] = ()
    cache: str = ""
    hot_curves: tuple[Curve, ...] = ()

    def time_ns(self, read: npt.ArrayLike, written: npt.ArrayLike, passes: npt.ArrayLike = 1) -> _Floats:
        """The least time in ns for so many bytes read and written; NaN where no mix was measured.

        Args:
            read, written: bytes in all passes together.
            passes: over the same bytes, each from end to end. The first one finds the cache as the memory has it, the others hot.
        """
        read, written, passes = np.broadcast_arrays(*(np.asarray(each, float) for each in (read, written, passes)))
        if not self.names:
            return np.full(read.shape, np.nan)
        total, share = read + written, _share(read, written)
        if not self.curves:
            return np.asarray(total * np.interp(share, self.shares, self.ns_per_byte))
        of_pass = total / passes
        times = np.array(
            [
                first.time_ns(of_pass) + (passes - 1) * again.time_ns(of_pass)
                for first, again in zip(self.curves, self.hot_curves, strict=True)
            ]
        )
        places = np.interp(share, self.shares, range(len(self.shares)))
        position = np.nan_to_num(places)
        lower = np.floor(position).astype(int)
        upper = np.minimum(lower + 1, len(self.shares) - 1)
        first, second = (np.take_along_axis(times, each[np.newaxis], axis=0)[0] for each in (lower, upper))
        return np.asarray(first + (places - lower) * (second - first))

    def ceiling_names(self, read: npt.ArrayLike, written: npt.ArrayLike) -> npt.NDArray[np.object_]:
        """The ceilings that `time_ns` comes from.

        `device_copy`, or `device_copy and device_2_to_1` between two mixes; by curves `device_copy by size (cold)`.
        """
        read, written = np.broadcast_arrays(np.asarray(read, float), np.asarray(written, float))
        shares, of = np.unique(_share(read, written), return_inverse=True)
        return np.array([self._names_at(float(share)) for share in shares], dtype=object)[of.ravel()].reshape(read.shape)

    def _names_at(self, share: float) -> str:
        if not self.names or np.isnan(share):
            return ""
        how = f"{BY_SIZE} ({self.cache})" if self.curves else ""
        nearest = int(np.argmin([abs(each - share) for each in self.shares]))
        if abs(self.shares[nearest] - share) <= _SAME_MIX or not self.shares[0] < share < self.shares[-1]:
            return f"{self.names[nearest]}{how}"
        above = int(np.searchsorted(self.shares, share))
        return f"{self.names[above - 1]} and {self.names[above]}{how}"


def device_memory(ceilings: Mapping[str, float], cache: str = "") -> Memory:
    """The GPU's memory, of ceilings by name in their units.

    Args:
        cache: `cold` or `hot`, for the times by size with such an L2. Without it, and in runs that did not measure them for each of
            their mixes, the memory has rates alone.
    """
    return _with_curves(_memory(ceilings, DEVICE_MIXES), ceilings, cache)


def empty_kernel_ns(ceilings: Mapping[str, float]) -> float:
    """The time in ns of a GPU's empty kernel, which no kernel falls below; 0 where it was not measured."""
    return _NS_PER_US * ceilings.get(Ceiling.GRAPH_NODE, 0.0)


def host_memory(ceilings: Mapping[str, float]) -> Memory:
    """The processor's memory, of ceilings by name in their units. Its operations are timed with warm caches alone."""
    return _with_curves(_memory(ceilings, HOST_MIXES), ceilings, "hot")


def _with_curves(memory: Memory, ceilings: Mapping[str, float], cache: str) -> Memory:
    """The memory with the times by size of each of its mixes, where all of them were measured."""
    curves, hot_curves = (_curves(memory, ceilings, each) for each in (cache, "hot"))
    if not curves or not hot_curves:
        return memory
    return replace(memory, curves=curves, cache=cache, hot_curves=hot_curves)


def _curves(memory: Memory, ceilings: Mapping[str, float], cache: str) -> tuple[Curve, ...]:
    times_by_mix: dict[str, dict[int, float]] = {name: {} for name in memory.names}
    for name, value in ceilings.items():
        of = found_by_size(name)
        if of and of[0] in times_by_mix and of[1] == cache and value > 0:
            times_by_mix[of[0]][of[2]] = value
    if not times_by_mix or not all(times_by_mix.values()):
        return ()
    empty_ns = empty_kernel_ns(ceilings) if memory.names[0] in DEVICE_MIXES else 0.0
    return tuple(
        Curve(
            tuple(map(float, sorted(by_size))),
            tuple(_NS_PER_US * by_size[size] for size in sorted(by_size)),
            ns_per_byte,
            empty_ns,
        )
        for by_size, ns_per_byte in zip(times_by_mix.values(), memory.ns_per_byte, strict=True)
    )


def reads_and_writes(cases: "Mapping[Any, Any] | pd.DataFrame") -> tuple[_Floats, _Floats]:
    """The bytes of `min_bytes` that are read, and those that are written.

    Inputs are read and outputs written, so that `h2d_bytes` and `d2h_bytes` tell the mix. Where both are 0 or null, half is read.
    Inputs that are resident on the device are in neither, so that such a case counts as reading less than it does.

    Args:
        cases: columns `min_bytes`, `h2d_bytes`, `d2h_bytes` of cases; a frame, or a mapping of arrays or of one case's values.
    """
    least, inputs, outputs = (np.asarray(cases[name], float) for name in ("min_bytes", "h2d_bytes", "d2h_bytes"))
    share = _share(np.nan_to_num(inputs), np.nan_to_num(outputs))
    return least * share, least - least * share


def _memory(ceilings: Mapping[str, float], mixes: Mapping[str, float]) -> Memory:
    shares = {name: share for name, share in mixes.items() if ceilings.get(name, np.nan) > 0}
    # One GB/s is one byte a nanosecond.
    return Memory(tuple(shares), tuple(shares.values()), tuple(1 / ceilings[name] for name in shares))


def _share(read: _Floats, written: _Floats) -> _Floats:
    """The share of the bytes that is read; a half if there are no bytes."""
    total = read + written
    return np.divide(read, total, out=np.where(np.isnan(total), np.nan, 0.5), where=total > 0)


#: (place, cache) -> the memory that was measured.
Memories = Mapping[tuple[str, str], Memory]

#: How many times faster than its floor of memory a case may plausibly be. It is slightly above 1 for a cold cache, since two
#: measurements of the same device differ, and larger if data can stay in a cache of the GPU or the processor.
CEILING_MARGIN: Final = {("gpu", "cold"): 1.1, ("gpu", "hot"): 4.0, ("host", "hot"): 20.0}
#: The same against times by size, which say what caches do. Hot times differ more between buffers of the same sizes, and those of a
#: processor between one moment and another.
BY_SIZE_MARGIN: Final = {("gpu", "cold"): 1.1, ("gpu", "hot"): 1.25, ("host", "hot"): 4.0}
#: How many times faster than its floor of arithmetic a case may be. In the shipped runs, cells on a GPU reach at most 100 % of it (BF16 100 %,
#: FP8 99 %, TF32 86 %, 3xTF32 and fp32 85 %), and cells on the host 85 %. A busy host once measured its ceiling at a twentieth of the usual rate, so that
#: NumPy reached 532 %.
ARITHMETIC_MARGIN: Final = {"gpu": 1.1, "host": 8.0}
#: The same of tensor cores, whose ceilings are measured at the clock that the device sustains: work of a few milliseconds may have the
#: highest clock, which is up to this many times as high.
TENSOR_MARGIN: Final = 1.35
#: How many times faster than the copies of one GPU from and to page-locked memory `end_to_end` may be. Shipped cells reach 80 %.
COPIES_MARGIN: Final = 1.1

#: A hot L2 may make a kernel faster by this many times what it does for the best kernel of `device_memory`, which is 1.9 times on an
#: H200 and 2.2 times on an H100. Shipped cells reach 3.6 times below 5 us (5.0 us cold, 1.4 us hot), 2.3 times from 10 us, 1.9 times from
#: 100 us and 1.3 times from 1 ms.
HOT_MARGIN: Final = 2.0
#: Of more bytes than the L2 holds, a hot L2 saves no more than the time of the share that it holds; this is the margin. Shipped cells
#: reach 1.10 times at 1.3 times the bytes of the L2, where 4 are allowed, and 1.04 times from twice its bytes, where 1.3 to 2.5 are.
BEYOND_L2_MARGIN: Final = 1.25
#: A cold L2 comes with cold instructions and a cold queue. These cost up to 3 us in the shipped cells of few bytes.
COLD_START_NS: Final = 5_000


def memories(ceilings: Mapping[str, float]) -> Memories:
    """The memories that were measured, by place and cache: `("gpu", "cold")`, `("gpu", "hot")`, `("host", "hot")`."""
    by_place = {("gpu", cache): device_memory(ceilings, cache) for cache in ("cold", "hot")} | {
        ("host", "hot"): host_memory(ceilings)
    }
    return {key: memory for key, memory in by_place.items() if memory.names}


def margin(measured: Memories, key: tuple[str, str]) -> float:
    """How many times faster than its floor of memory a case may be in this place and cache."""
    return (BY_SIZE_MARGIN if measured[key].curves else CEILING_MARGIN)[key]


#: The least error in ns, whatever one run measured. The cold times of 102 cells below 5 us in two runs of one H200, with what events add
#: measured for each case, were at most 0.38 us apart in 95 % of the cells, which is 0.27 us for each run.
LEAST_EVENT_ERROR_NS: Final = 270.0


def event_error_ns(ceilings: Mapping[str, float]) -> float:
    """The error of one device time between two events, in ns: `event_uncertainty`, and at least the one between two runs; 0 where it
    was not measured.
    """
    measured = ceilings.get(Ceiling.EVENT_UNCERTAINTY)
    return 0.0 if measured is None else max(_NS_PER_US * measured, LEAST_EVENT_ERROR_NS)


def beyond(cells: "pd.DataFrame", ceilings: Mapping[str, float], l2_bytes: float) -> dict[str, Bools]:
    """The cells whose time is below a floor by more than its margin, by the floor: `memory`, `arithmetic`, `copies`.

    A cold device time may be short by the error of its events, which matters below a few microseconds.
    Outputs may still be in the L2 when the clock stops, even with a cold cache, and a pass after the first may find its bytes there.
    Times by size tell what that saves. By rates, bytes of the size of the L2 are not counted: in the first pass no more than half of
    its bytes, in each other one no more than all. Several GPUs are not judged, because each of them has only a share of the case.

    Args:
        cells: `kind`, `precision`, `gpus`, `scope`, `cache`, `flops`, `min_bytes`, `passes`, `h2d_bytes`, `d2h_bytes` and
            `median_ns`, one row a cell and timing.
        ceilings: their values by name.
        l2_bytes: size of the GPU's L2 cache, or 0. It counts where no time by size was measured.
    """
    measured = memories(ceilings)
    on_gpu = (cells["kind"] != "host").to_numpy(dtype=bool)
    scope = cells["scope"]
    alone = (cells["gpus"].fillna(0) <= 1).to_numpy(dtype=bool) & cells["median_ns"].notna().to_numpy(dtype=bool)
    is_comparable = alone & scope.isin(["device", "operation", "end_to_end"]).to_numpy(dtype=bool)
    times = np.maximum(cells["median_ns"].to_numpy(dtype=float), 1)
    read, written = reads_and_writes(cells)
    passes = cells["passes"].to_numpy(dtype=float)
    least = np.full(len(cells), np.nan)
    for (place, cache), memory in measured.items():
        rows = (on_gpu == (place == "gpu")) & (cells["cache"] == cache).to_numpy(dtype=bool)
        total = read[rows] + written[rows]
        of_pass, held = total / passes[rows], l2_bytes if place == "gpu" and not memory.curves else 0.0
        in_l2 = np.minimum(held, of_pass / 2) + (passes[rows] - 1) * np.minimum(held, of_pass)
        counted = 1 - in_l2 / np.maximum(total, 1)
        least[rows] = memory.time_ns(read[rows], written[rows], passes[rows]) * counted / margin(measured, (place, cache))
    single = on_gpu & (scope == "device").to_numpy(dtype=bool) & (cells["cache"] == "cold").to_numpy(dtype=bool)
    times = times + np.where(single, event_error_ns(ceilings), 0.0)
    arithmetic, _ = arithmetic_ns(cells, ceilings)
    on_tensor_cores = on_gpu & ~cells["precision"].isin(("fp32", "fp64")).to_numpy(dtype=bool)
    margins = [TENSOR_MARGIN, ARITHMETIC_MARGIN["gpu"]]
    arithmetic = arithmetic / np.select([on_tensor_cores, on_gpu], margins, ARITHMETIC_MARGIN["host"])
    return {
        "memory": is_comparable & (scope != "end_to_end").to_numpy(dtype=bool) & (least > times),
        "arithmetic": is_comparable & (arithmetic > times),
        "copies": is_comparable
        & on_gpu
        & (scope == "end_to_end").to_numpy(dtype=bool)
        & (copies_ns(cells, ceilings)[0] / COPIES_MARGIN > times),
    }


def copies_ns(cells: "pd.DataFrame", ceilings: Mapping[str, float]) -> tuple[_Floats, npt.NDArray[np.object_]]:
    """The longer of the copies in and out in ns, since the two directions can overlap, and the ceiling that it comes from."""
    in_ns, out_ns = (
        cells[column].to_numpy(dtype=float) / ceilings.get(name, np.nan)
        for column, name in (("h2d_bytes", Ceiling.H2D_PINNED), ("d2h_bytes", Ceiling.D2H_PINNED))
    )
    return np.fmax(in_ns, out_ns), np.where(out_ns > in_ns, Ceiling.D2H_PINNED, Ceiling.H2D_PINNED).astype(object)


def hot_gain(ceilings: Mapping[str, float]) -> float:
    """How many times faster the best kernel of `device_memory` is with a hot L2; NaN where no times by size were measured."""
    cold, hot = (device_memory(ceilings, cache) for cache in ("cold", "hot"))
    if not cold.curves or not hot.curves:
        return float("nan")
    gains = [
        float(np.max(of_cold.time_ns(of_cold.sizes) / of_hot.time_ns(of_cold.sizes)))
        for of_cold, of_hot in zip(cold.curves, hot.curves, strict=True)
    ]
    return max(1.0, *gains)


def most_from_l2(min_bytes: npt.ArrayLike, l2_bytes: float, gain: float) -> _Floats:
    """How many times faster a hot L2 may make a kernel.

    Args:
        min_bytes: the least bytes of a pass.
        l2_bytes: size of the L2, or 0 where it is not known.
        gain: `hot_gain`.
    """
    least = np.asarray(min_bytes, dtype=float)
    held_share = np.divide(l2_bytes, least, out=np.ones_like(least), where=(least > l2_bytes) & (l2_bytes > 0))
    with np.errstate(divide="ignore"):
        most: _Floats = np.minimum(HOT_MARGIN * gain, BEYOND_L2_MARGIN / (1 - held_share))
    return most
