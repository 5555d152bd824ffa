"""One folder a question: `query.py` makes frames of a run, `chart.py` draws them, `page.py` shows them."""
