"""How near is each variant to what memory or arithmetic allows?"""

from warpladder.dashboard.ui.view import OfWorkload, Section, charts_of

SECTION = Section(
    __name__,
    "Roofline",
    "How near is each variant to what memory or arithmetic allows?",
    (OfWorkload("roofline", charts_of(__name__)),),
)
