"""Tables and figures that belong to one of the source reports alone, made of our samples or by computation."""
