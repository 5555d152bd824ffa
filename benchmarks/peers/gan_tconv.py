"""Routes to the generator."""

from benchmarks.peers.routes import searched

WORKLOAD = searched("gan_tconv")
