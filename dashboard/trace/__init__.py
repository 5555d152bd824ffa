"""What the views of a trace share: its ranges, its samples, and which of its work belongs to what. Nothing here draws."""
