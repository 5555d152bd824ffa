"""One transposition kernel, called from Python by each of the routes that there are."""
