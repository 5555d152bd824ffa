"""The training step of `mlp_training` in mixed precision: products in BF16, weights and their updates in float32."""
