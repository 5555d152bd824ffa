"""`python -m collectors`: see `collectors.cli`."""

import signal


def main() -> None:
    """Run the command line. Until a command sets its own handlers, SIGINT ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from warpladder.collectors.cli import app

    app(prog_name="python -m collectors")


if __name__ == "__main__":
    main()
