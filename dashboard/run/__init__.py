"""A run in Python: its tables as frames and its charts as figures, which notebooks show by themselves."""
