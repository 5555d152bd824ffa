"""The commands of `warpladder`, a module for each. A module imports what its command needs when it is called: `--help` loads click alone."""
