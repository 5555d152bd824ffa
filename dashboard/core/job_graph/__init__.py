"""The work of the ranks of a job between their collectives and messages, and the steps that other times would give."""
