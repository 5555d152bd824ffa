"""Accesses and barriers of kernels under the tools of compute-sanitizer."""
