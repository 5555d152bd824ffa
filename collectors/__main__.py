"""`python -m collectors`: see `collectors.cli`."""

from collectors.cli import app

if __name__ == "__main__":
    app(prog_name="python -m collectors")
