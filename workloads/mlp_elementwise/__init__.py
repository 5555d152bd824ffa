"""Element-wise steps of a perceptron, based on the student report "CME213 Final Project Report" (M. L. Wong)."""
