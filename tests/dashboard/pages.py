"""The pages of the dashboard by their addresses, for Streamlit's test driver."""

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash


def lead(app: AppTest, page: str) -> None:
    """Show a page at the next run. Before the first run, the driver's own `switch_page` takes a file's name for the page's address."""
    app._page_hash = calc_hash(page)


def runs_to_choose(app: AppTest) -> list[str]:
    """The labels of the runs in the sidebar, each after `Mine: ` or `Shipped: `."""
    return [option.split(" · ")[0] for option in app.sidebar.selectbox(key="choose run").options]
