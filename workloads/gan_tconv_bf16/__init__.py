"""The generator of `gan_tconv` in BF16."""
