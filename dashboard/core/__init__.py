"""Frames in, frames out: the run as it was read, its cells, and what every view compares them by. Nothing here draws."""
