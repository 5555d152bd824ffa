"""The critical path of an iteration of a job, and what a faster kernel would give."""
