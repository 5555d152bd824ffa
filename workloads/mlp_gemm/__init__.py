"""The matrix product of a two-layer perceptron, based on the student report "CME213 Final Project Report" by Man Long Wong."""
