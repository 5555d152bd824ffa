"""Traces, from whatever tool: tables read by column name, launches attributed to NVTX ranges, ranges recognised as cells."""
