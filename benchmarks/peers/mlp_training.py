"""Routes to a training step."""

from benchmarks.peers.routes import searched

WORKLOAD = searched("mlp_training")
