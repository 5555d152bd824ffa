"""What is read of a report of Nsight Compute: the metrics of the contract (`data/metrics.py` says what each means) and some attributes."""

from typing import Final

from warpladder.data import metrics

#: What `ncu` is asked for, and what is taken over from anybody's report.
METRICS: Final = tuple(metric.name for metric in metrics.METRICS)

#: Grid and block of a launch, and its device; in every report, without being asked for.
SHAPE: Final = tuple(f"launch__{what}_dim_{axis}" for what in ("grid", "block") for axis in "xyz")
DEVICE_ID: Final = "launch__device_id"
#: Attributes of the device, likewise.
DEVICE_NAME: Final = "device__attribute_display_name"
CAPABILITY: Final = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
SM_COUNT: Final = "device__attribute_multiprocessor_count"
L2_BYTES: Final = "device__attribute_l2_cache_size"
MEMORY_BYTES: Final = "device__attribute_total_memory"
ATTRIBUTES: Final = (*SHAPE, DEVICE_ID, *CAPABILITY, SM_COUNT, L2_BYTES, MEMORY_BYTES)


if __name__ == "__main__":
    print(",".join(METRICS))
