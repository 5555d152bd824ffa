"""Tables and figures that belong to one of the source reports alone, made from our samples or by computation."""
