"""What the pages draw in the browser themselves, where Plotly is too slow. Each is a folder with its script and its style, as they are."""
