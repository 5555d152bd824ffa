"""A detail: a table or figure that belongs to one of the source reports, with its part of the page Details and its charts.

Nothing here loads Plotly or Streamlit.
"""

from dataclasses import dataclass, field

from warpladder.dashboard.ui.view import OfRun, OfWorkload


@dataclass(frozen=True)
class Names:
    """What a detail calls by its name. A run that calls it otherwise has nothing of the detail, so a test looks for each in those that ship.

    Attributes:
        workload: the only one that the detail is of; empty for any.
        variants: of the workload.
        configs: of the workload, each with its variant first.
        cases: of the workload.
        scopes: of samples.
        kernels: names of traced kernels.
        beginnings: how names of traced kernels begin.
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
    """What the page Details offers under one name.

    Attributes:
        name: of its folder, and in a URL.
        title: what the page calls it.
        charts: what an export draws of it.
        place: of its charts among those of the other details in an export.
    """

    name: str
    title: str
    charts: OfRun | OfWorkload
    place: int
    names: Names = field(default_factory=Names)

    @property
    def page(self) -> str:
        """The module whose `show(run, controls, look)` draws its part of the page."""
        return f"{__package__}.{self.name}.page"
