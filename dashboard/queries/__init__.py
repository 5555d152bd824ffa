"""Frames in, frames out: every median, interval and ratio of the project is made here, and nothing here draws."""
