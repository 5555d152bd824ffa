"""A run, a comparison and a verdict as text: what the commands print."""
