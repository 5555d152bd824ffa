// A measured span of time: dragged on the ruler, or with Shift on the lanes, where its ends snap to those of events.

const EDGE_PX = 5;

class Measure {
  constructor(timeline) {
    this.timeline = timeline;
    this.text = timeline.root.querySelector(".measured");
    this.span = null;
    const { axis } = timeline;
    axis.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      axis.setPointerCapture(event.pointerId);
      this.begin(event);
    });
    // Without this, the page around the ruler takes the keys.
    axis.addEventListener("mousedown", (event) => {
      event.preventDefault();
      timeline.lanes.focus({ preventScroll: true });
    });
    axis.addEventListener("pointermove", (event) => this.drag && this.dragged(event));
    axis.addEventListener("pointerup", () => this.end());
    axis.addEventListener("pointercancel", () => this.end());
  }

  begin(event) {
    const { timeline } = this;
    // An end of the span that is shown can be dragged further.
    const near = (this.span || []).findIndex((time) => Math.abs(timeline.x(time) - timeline.pixel(event)) <= EDGE_PX);
    this.drag = { x: event.clientX, from: near < 0 ? this.time(event) : this.span[1 - near], far: false };
  }

  // The time at the pointer: that of the nearest end of an event in its lane, if one is near enough.
  time(event) {
    const { timeline } = this;
    const [begin, end] = timeline.view;
    const pixel = (end - begin) / timeline.width;
    const time = Math.min(Math.max(begin + (timeline.pixel(event) - LABELS_PX) * pixel, begin), end);
    let [nearest, distance] = [time, EDGE_PX * pixel];
    for (const each of this.edges(event)) {
      if (Math.abs(each - time) < distance) [nearest, distance] = [each, Math.abs(each - time)];
    }
    return Math.min(Math.max(Math.round(nearest), 0), timeline.data.length);
  }

  edges(event) {
    const { lane } = this.timeline.rowAt(event) || {};
    return lane ? [...lane.start, ...lane.end] : [];
  }

  dragged(event) {
    if (!this.drag.far && Math.abs(event.clientX - this.drag.x) < CLICK_PX) return;
    this.drag.far = true;
    const to = this.time(event);
    const span = [Math.min(this.drag.from, to), Math.max(this.drag.from, to)];
    this.span = span[0] < span[1] ? span : null;
    this.timeline.focused = "measure";
    this.timeline.draw();
  }

  end() {
    const { drag } = this;
    this.drag = null;
    if (!drag) return;
    if (!drag.far) this.span = null;
    this.timeline.draw();
    this.timeline.ask();
  }

  // Mark the time of the chosen event, or remove that mark.
  mark() {
    const { chosen } = this.timeline.data;
    if (!chosen) return;
    const span = [chosen.span[0], Math.max(chosen.span[1], chosen.span[0] + 1)];
    this.span = this.span && this.span.join() === span.join() ? null : span;
    this.timeline.draw();
    this.timeline.ask();
  }

  tell() {
    const { span } = this;
    this.root ||= this.timeline.root;
    this.root.dataset.measured = span ? span.join("-") : "";
    this.text.textContent = span
      ? `Measured ${clock(span[1] - span[0])}, from ${clock(span[0])} to ${clock(span[1])}. Escape removes it.`
      : "Drag on the ruler, or with Shift on the lanes, to measure. ? shows the keys.";
  }

  draw(axis, lanes) {
    this.tell();
    if (!this.span) return;
    const { timeline } = this;
    const right = LABELS_PX + timeline.width;
    const [x0, x1] = this.span.map((time) => Math.min(Math.max(timeline.x(time), LABELS_PX), right));
    const color = getComputedStyle(timeline.root).getPropertyValue("--st-primary-color").trim() || timeline.data.tones.text;
    if (timeline.x(this.span[1]) < LABELS_PX || timeline.x(this.span[0]) > right) return;
    for (const [context, height, alpha] of [[axis, AXIS_PX, 0.22], [lanes, timeline.height, 0.1]]) {
      context.fillStyle = color;
      context.globalAlpha = alpha;
      context.fillRect(x0, 0, Math.max(x1 - x0, 1), height);
      context.globalAlpha = 1;
      context.fillRect(Math.round(x0), 0, 1, height);
      context.fillRect(Math.round(x1) - 1, 0, 1, height);
    }
    const text = duration(this.span[1] - this.span[0]);
    const wide = axis.measureText(text).width + 8;
    // Beside a span that is too narrow for its length.
    const left = x1 - x0 > wide ? (x0 + x1 - wide) / 2 : x1 + 3 + wide < right ? x1 + 3 : x0 - 3 - wide;
    axis.fillStyle = color;
    axis.fillRect(left, 3, wide, 15);
    axis.fillStyle = timeline.data.tones.paper;
    axis.fillText(text, left + 4, 11);
  }
}
