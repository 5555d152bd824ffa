"""5x5 convolution of an image, zero outside, out of the report "CUDA Assignment 3: 2D Convolution" (Drexel, 2017)."""
