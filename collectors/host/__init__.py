"""The processor: host variants, and what the processor measurably can do."""
