"""Code that the charts and pages of all views share: the template, numbers as text, widgets, and choices in the URL."""
