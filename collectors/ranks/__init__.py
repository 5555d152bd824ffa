"""Several ranks that share a case: what starts them, what joins them, and the bench that they are together."""
