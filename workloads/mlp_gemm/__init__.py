"""The matrix product of a two-layer perceptron, out of the report "CME213 Final Project Report" by Man Long Wong."""
