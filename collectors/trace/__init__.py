"""Traces of any tool: reads their tables, attributes launches to NVTX ranges, and finds the ranges that are cells."""
