"""`python -m collectors`: see `collectors.cli`."""

import signal


def main() -> None:
    """Until a command has set its own handlers, a signal ends the process, and no traceback tells of imports."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from warpladder.collectors.cli import app

    app(prog_name="python -m collectors")


if __name__ == "__main__":
    main()
