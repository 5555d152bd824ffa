"""Profiles of a program on many ranks as one run."""
