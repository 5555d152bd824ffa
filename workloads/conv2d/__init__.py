"""5x5 convolution of an image, zero outside, based on the student report "CUDA Assignment 3: 2D Convolution" (Drexel, 2017)."""
