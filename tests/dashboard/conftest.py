"""The pages as the tests run them."""

from streamlit import config


def pytest_configure() -> None:
    """Each `AppTest` would rewrite the scripts anew for Streamlit's magic, which shows bare expressions and which no page uses."""
    config.set_option("runner.magicEnabled", False)
