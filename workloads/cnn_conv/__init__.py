"""Forward convolution layers of a network over Fashion-MNIST, out of the "ECE 408 Final Project Report" (Urbana-Champaign)."""
