"""The changes of a save: the variants of your file that must be measured again. See `warpladder.commands.watch`."""
