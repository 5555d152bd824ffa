"""The second layer of `cnn_conv` in BF16."""
