"""The reports of students that the workloads start from: their printed figures, and their own tables and figures from our samples.

Nothing else of the dashboard imports this page. It may import the queries and charts of other pages.
"""
