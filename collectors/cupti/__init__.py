"""CUPTI: records API calls, kernels, copies and NVTX ranges of this process."""
