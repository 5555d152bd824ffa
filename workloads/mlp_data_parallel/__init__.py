"""One step of training, its batch shared among ranks: data parallel."""
