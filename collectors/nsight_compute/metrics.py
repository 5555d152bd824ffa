"""Names of the metrics and attributes read from reports of Nsight Compute; `data/metrics.py` explains the metrics."""

from typing import Final

from warpladder.data import metrics

#: Metrics that `ncu` collects here, and that are imported from any report.
METRICS: Final = tuple(metric.name for metric in metrics.METRICS)

#: Grid, block and device of a launch; every report holds them.
SHAPE: Final = tuple(f"launch__{what}_dim_{axis}" for what in ("grid", "block") for axis in "xyz")
DEVICE_ID: Final = "launch__device_id"
#: Attributes of the device; every report holds them.
DEVICE_NAME: Final = "device__attribute_display_name"
CAPABILITY: Final = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
SM_COUNT: Final = "device__attribute_multiprocessor_count"
L2_BYTES: Final = "device__attribute_l2_cache_size"
MEMORY_BYTES: Final = "device__attribute_total_memory"
#: Shared memory of a block.
STATIC_SHARED: Final = "launch__shared_mem_per_block_static"
DYNAMIC_SHARED: Final = "launch__shared_mem_per_block_dynamic"
ATTRIBUTES: Final = (*SHAPE, DEVICE_ID, *CAPABILITY, SM_COUNT, L2_BYTES, MEMORY_BYTES, STATIC_SHARED, DYNAMIC_SHARED)


if __name__ == "__main__":
    print(",".join(METRICS))
