"""What the measurements mean: queries make frames of a run, charts draw them, pages and `export` show them. Needs no GPU."""
