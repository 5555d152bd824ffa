// A chart of Plotly, drawn once: when its place has a width, and after the charts that the window shows.

const FULL_SCREEN = {
  name: "Full screen",
  title: "Full screen",
  icon: { width: 24, height: 24, path: "M3 3h7v3H6v4H3zm11 0h7v7h-3V6h-4zM3 14h3v4h4v3H3zm15 0h3v7h-7v-3h4z" },
  click: (place) => (document.fullscreenElement ? document.exitFullscreen() : place.requestFullscreen()),
};

const charts = new WeakMap();

export default function ({ parentElement, data, setTriggerValue }) {
  const place = parentElement.querySelector(".warpladder-chart");
  const chart = charts.get(place) ?? new Chart(place);
  charts.set(place, chart);
  chart.clicked = (point) => setTriggerValue("clicked", point);
  chart.take(data);
  return () => chart.end();
}

class Chart {
  constructor(place) {
    this.place = place;
    this.full = false;
    this.resized = new ResizeObserver(() => this.fit());
  }

  // A figure that is the same stays as it is, zoomed or not.
  async take(data) {
    if (data.figure === this.figure) return;
    this.figure = data.figure;
    this.height = data.height;
    this.place.style.height = `${data.height}px`;
    this.place.setAttribute("role", "figure");
    this.place.setAttribute("aria-label", data.title);
    const Plotly = await window.plotly();
    await this.turn();
    if (this.figure !== data.figure) return;
    const { data: traces, layout } = JSON.parse(data.figure);
    this.place.style.background = layout.template.layout.paper_bgcolor;
    this.width = this.place.clientWidth;
    const config = { ...data.config, modeBarButtonsToAdd: [FULL_SCREEN] };
    await Plotly.react(this.place, traces, { ...layout, width: this.width }, config);
    this.place.removeAllListeners("plotly_click");
    this.place.on("plotly_click", ({ points }) => points[0]?.customdata !== undefined && this.clicked(points[0].customdata));
    this.resized.observe(this.place);
  }

  // A chart below the window waits until the browser is idle; one without a width, as in a closed part of the page, for its width.
  turn() {
    return new Promise((resolve) => {
      const seen = new IntersectionObserver(([entry]) => {
        if (!this.place.clientWidth) return;
        seen.disconnect();
        if (entry.isIntersecting) resolve();
        else (window.requestIdleCallback ?? setTimeout)(resolve);
      });
      seen.observe(this.place);
    });
  }

  fit() {
    const full = document.fullscreenElement === this.place;
    const [width, height] = [this.place.clientWidth, full ? window.innerHeight : this.height];
    if (!width || (width === this.width && full === this.full)) return;
    [this.width, this.full] = [width, full];
    window.Plotly.relayout(this.place, { width, height });
  }

  end() {
    this.resized.disconnect();
    charts.delete(this.place);
    this.figure = null;
    window.Plotly?.purge(this.place);
  }
}
