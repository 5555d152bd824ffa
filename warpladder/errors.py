"""The base of the exceptions that stand for a user's mistake."""


class Error(Exception):
    """A mistake of the user: something that cannot be carried out. The message says where, what, and what to do, in one line.

    A command prints `lines` and exits with code 2. Classes derive from this one where a caller tells them apart.
    """

    def lines(self) -> list[str]:
        """The message as a command prints it."""
        return [str(self)]
