"""Comparisons: within a run, between runs and between jobs, with their verdicts. Nothing here draws."""
