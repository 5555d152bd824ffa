"""Which operators take the time, and which kernels do they launch?"""
