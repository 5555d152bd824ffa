"""CUPTI, in process: activity records of the calls, kernels, copies and NVTX ranges of this process."""
