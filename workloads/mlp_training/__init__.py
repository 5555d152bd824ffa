"""Training of a two-layer perceptron, out of the "CME213 Final Project Report" (M. L. Wong)."""
