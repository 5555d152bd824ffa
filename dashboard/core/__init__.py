"""A run as it was read, its cells, and the comparisons that all views share. Nothing here draws."""
