"""Whole programs: starts them in turn, times each from its start to its exit, and compares their outputs."""
