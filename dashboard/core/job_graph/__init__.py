"""What the ranks of a job do between their collectives and messages, and what other times would give."""
