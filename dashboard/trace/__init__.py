"""Queries that the views of a trace share: ranges, samples, lanes and the attribution of device work. Nothing here draws."""
