"""Element-wise steps of a perceptron, out of the "CME213 Final Project Report" (M. L. Wong)."""
