"""What the charts and the pages of all views share: the template, numbers as text, widgets, and choices that live in the URL."""
