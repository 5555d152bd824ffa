"""Where the time of a trace goes: by operator and by kernel, and what would change it."""
