"""Benchmarks from plain functions: variants take arrays and return arrays."""
