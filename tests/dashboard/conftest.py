"""The pages as the tests run them."""

from functools import cache

from streamlit import config
from streamlit.components.v2 import manifest_scanner


def pytest_configure() -> None:
    """Each `AppTest` would rewrite the scripts anew for Streamlit's magic, which shows bare expressions and which no page uses, and would
    look through all installed packages for components."""
    config.set_option("runner.magicEnabled", False)
    manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
