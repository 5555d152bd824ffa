"""A generator of images by transposed convolutions, out of the report "SHPC 2021 Fall Term Project Report" (S. Yi, Seoul, 2021)."""
