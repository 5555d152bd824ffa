"""A detail: a table or figure that belongs to one of the source reports, with its section of the page Details and its charts.

Nothing here loads Plotly or Streamlit.
"""

from dataclasses import dataclass, field

from warpladder.dashboard.ui.view import OfRun, OfWorkload


@dataclass(frozen=True)
class Names:
    """The names that a detail looks for in a run. A test checks that the shipped runs have each of them.

    Attributes:
        workload: the only workload that has the detail; empty where any can have it.
        variants: variants of the workload.
        configs: pairs of a variant and a config of the workload.
        cases: cases of the workload.
        scopes: scopes of samples.
        kernels: names of traced kernels.
        beginnings: beginnings of the names of traced kernels.
    """

    workload: str = ""
    variants: tuple[str, ...] = ()
    configs: tuple[tuple[str, str], ...] = ()
    cases: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Detail:
    """A table or figure of the page Details.

    Attributes:
        name: the name of its folder, also used in URLs.
        title: its title on the page.
        charts: its charts in an export.
        place: the place of its charts in an export, among those of the other details.
    """

    name: str
    title: str
    charts: OfRun | OfWorkload
    place: int
    names: Names = field(default_factory=Names)

    @property
    def page(self) -> str:
        """The module whose `show(run, controls, look)` draws the detail's section of the page."""
        return f"{__package__}.{self.name}.page"
