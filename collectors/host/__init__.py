"""The processor: measures host variants, and the ceilings of the processor."""
