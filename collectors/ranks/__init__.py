"""Several ranks that share a case: launchers, the communicator, and a bench that combines the ranks' benches."""
