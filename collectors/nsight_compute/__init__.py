"""Nsight Compute: hardware counters of the launches of a cell, read out of its reports."""
