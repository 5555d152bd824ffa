"""`python -m dashboard`: see `warpladder.dashboard.cli`."""

if __name__ == "__main__":
    from warpladder.dashboard.cli import app

    app(prog_name="python -m dashboard")
