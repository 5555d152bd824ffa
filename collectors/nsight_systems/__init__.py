"""Nsight Systems: runs `nsys profile`, and reads its reports in any format and version."""
