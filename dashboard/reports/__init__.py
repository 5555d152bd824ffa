"""What belongs to one of the source reports alone: its own tables and figures, from our samples or by computation."""
