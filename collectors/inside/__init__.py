"""What happens inside a kernel, by experiment: its PTX is altered, assembled and run beside the original."""

from typing import Final

#: The steps that run the kernels as they are, before the first experiment.
START: Final = "start"
LAUNCHES: Final = "launches one by one"
