"""A generator of images by transposed convolutions, based on the student report "SHPC 2021 Fall Term Project Report" (S. Yi,
Seoul, 2021)."""
