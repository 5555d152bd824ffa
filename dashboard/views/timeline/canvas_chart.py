"""The timeline of the page, as the canvas in the browser draws it."""

from collections.abc import Sequence
from typing import Any

from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.lanes import Lanes
from warpladder.dashboard.ui.template import Look
from warpladder.dashboard.views.timeline import chart
from warpladder.dashboard.views.timeline.detail import Window
from warpladder.dashboard.views.timeline.query import Coloring, Shown


def contents(
    scene: Sequence[Shown],
    window: Window,
    traces: Traces,
    lanes: Lanes,
    coloring: Coloring,
    look: Look,
) -> dict[str, Any]:
    """The lanes in a window and the meaning of their colours, as arguments of the component's `payload`."""
    texts: dict[str, int] = {}
    drawn = []
    for shown in scene:
        lane, part = shown.lane, shown.detail
        called, notes = chart.words(traces, lanes, shown)
        drawn.append(
            {
                "group": lane.group,
                "label": lane.label,
                "kind": lane.kind,
                "start": (lane.start[part.alone] - lanes.begin_ns).tolist(),
                "end": (lane.end(part.alone) - lanes.begin_ns).tolist(),
                "color": shown.alone_color.tolist(),
                "lit": shown.alone_lit.astype(int).tolist(),
                "row": lane.row[part.alone].tolist(),
                "name": [texts.setdefault(name, len(texts)) for name in called],
                "note": [texts.setdefault(note, len(texts)) for note in notes],
                "bin": part.bin.tolist(),
                "busy": part.busy_ns.tolist(),
                "count": part.count.tolist(),
                "barColor": shown.bar_color.tolist(),
                "barLit": shown.bar_lit.astype(int).tolist(),
            }
        )
    shorter = {name.removeprefix("void "): brief for name, brief in coloring.short.items()}
    return {
        "lanes": drawn,
        "texts": list(texts),
        "window": (window.begin_ns - lanes.begin_ns, window.end_ns - lanes.begin_ns),
        "bins": window.bins,
        "length": lanes.end_ns - lanes.begin_ns,
        "colors": chart.colors(coloring.swatches, look),
        "swatches": chart.swatch_names(coloring, look),
        "titles": chart.swatch_titles(coloring, look),
        "short": {place: shorter[name] for name, place in texts.items() if name in shorter},
        "legend": chart.legend(scene, coloring, look),
        "thin": [place for place, each in enumerate(coloring.swatches) if each.kind == "copy"],
        "tones": look.tones,
    }
