"""Frames in, figures out: pages and `export` draw with the same functions, so that both show the same chart."""
