"""A run as it was read, its cells, and what all views share. Nothing here draws."""
