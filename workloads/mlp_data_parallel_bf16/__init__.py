"""The training step of `mlp_training_bf16`, its batch shared among ranks: data parallel in mixed precision."""
