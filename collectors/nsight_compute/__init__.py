"""Nsight Compute: reads the hardware counters of each cell's launches from its reports."""
