"""Saves of your files: which files matter, when they are saved, and a copy of them. See `warpladder.commands.watch`."""
