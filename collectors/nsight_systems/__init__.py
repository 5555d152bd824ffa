"""Nsight Systems reports: opened read-only, read by column name, attributed to NVTX ranges, written as a run."""
