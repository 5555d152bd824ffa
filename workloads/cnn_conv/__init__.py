"""Forward convolution layers of a network over Fashion-MNIST, based on the student report "ECE 408 Final Project Report"
(Urbana-Champaign)."""
