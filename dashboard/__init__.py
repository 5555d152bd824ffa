"""The dashboard: queries of runs, charts of their results, and pages and files that show them. It needs no GPU."""
