"""Which kernels take the time of the job, and on which ranks do they differ?"""
