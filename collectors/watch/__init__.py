"""What a save changed: which variants of a user's file have to be measured again. See `warpladder.commands.watch`."""
