"""Nsight Systems: drives `nsys profile`, and reads its reports, whatever their form and version."""
