// The mouse: wheel, drag, click, double click, and the text at the pointer. Methods of Timeline.

const GESTURES = {
  listen() {
    const canvas = this.lanes;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.pan(((event.deltaX || event.deltaY) / 100) * 0.1);
      } else {
        const pixels = event.deltaY * (event.deltaMode === 1 ? 33 : 1);
        this.zoom(Math.exp(Math.min(Math.max(pixels, -300), 300) * 0.0045), this.at(event));
      }
      this.hideTip();
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      if (event.shiftKey) {
        this.hideTip();
        this.measure.begin(event);
      } else {
        this.drag = { x: event.clientX, y: event.clientY, view: this.view.slice(), top: this.scroll.scrollTop, far: false };
      }
    });
    canvas.addEventListener("pointermove", (event) => {
      this.pointed = this.at(event);
      if (this.measure.drag) this.measure.dragged(event);
      else if (this.drag) this.dragged(event);
      else this.hover(event);
    });
    canvas.addEventListener("pointerup", (event) => {
      const { drag } = this;
      this.drag = null;
      if (this.measure.drag) return this.measure.end();
      if (!drag || drag.far) return undefined;
      // The first click of a double click does not choose an event.
      clearTimeout(this.click);
      this.click = setTimeout(() => this.clicked(event), DOUBLE_MS);
      return undefined;
    });
    canvas.addEventListener("pointercancel", () => {
      this.drag = null;
      this.measure.end();
    });
    canvas.addEventListener("pointerleave", () => {
      this.pointed = undefined;
      this.point(undefined);
      this.hideTip();
    });
    canvas.addEventListener("dblclick", (event) => {
      clearTimeout(this.click);
      this.doubleClicked(event);
    });
    this.root.querySelector(".in").onclick = () => this.zoom(0.5);
    this.root.querySelector(".out").onclick = () => this.zoom(2);
    this.root.querySelector(".fit").onclick = () => this.fit();
    this.root.querySelector(".save").onclick = () => savePicture(this);
    new ResizeObserver(() => {
      if (!this.data || this.root.clientWidth === this.outer) return;
      this.layout();
      this.draw();
    }).observe(this.root);
  },

  // Where the pointer is, in pixels from the left of the canvases, and as a share of the window.
  pixel(event) {
    return event.clientX - this.lanes.getBoundingClientRect().left;
  },

  at(event) {
    return Math.min(Math.max((this.pixel(event) - LABELS_PX) / this.width, 0), 1);
  },

  dragged(event) {
    const { drag } = this;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.far && Math.hypot(dx, dy) < CLICK_PX) return;
    drag.far = true;
    this.hideTip();
    this.scroll.scrollTop = drag.top - dy;
    const by = (dx / this.width) * (drag.view[1] - drag.view[0]);
    this.move(drag.view[0] - by, drag.view[1] - by);
  },

  clicked(event) {
    const { row, hit } = this.find(event);
    if (row && row.heading !== undefined) {
      if (!this.folded.delete(row.heading)) this.folded.add(row.heading);
      this.layout();
      this.draw();
    } else if (hit && hit.event !== undefined) {
      this.pick(row.lane, hit.event);
    } else if (hit) {
      this.zoomToBar(row.lane, hit.bar);
    } else if (this.data.chosen) {
      this.ask({ pick: ["", -1] });
    }
  },

  doubleClicked(event) {
    const { row, hit } = this.find(event);
    if (row && (row.heading !== undefined || this.pixel(event) < LABELS_PX)) return;
    if (hit && hit.event !== undefined) {
      this.zoomTo(row.lane.start[hit.event], row.lane.end[hit.event]);
      this.pick(row.lane, hit.event);
    } else if (hit) {
      this.zoomToBar(row.lane, hit.bar);
    } else {
      this.fit();
    }
  },

  pick(lane, place) {
    clearTimeout(this.timer);
    this.focused = "chosen";
    this.ask({ pick: [lane.kind, lane.row[place]] });
  },

  zoomToBar(lane, place) {
    const [from, to] = this.binSpan(this.data, lane.bin[place]);
    this.move(from - 10 * (to - from), to + 10 * (to - from));
  },

  rowAt({ clientY }) {
    const y = clientY - this.lanes.getBoundingClientRect().top;
    return this.rows.find((each) => y >= each.top && y < each.top + each.height);
  },

  find(event) {
    const [x, row] = [this.pixel(event), this.rowAt(event)];
    if (!row || row.heading !== undefined || x < LABELS_PX) return { row };
    const pixel = (this.view[1] - this.view[0]) / this.width;
    const time = this.view[0] + (x - LABELS_PX) * pixel;
    const { lane } = row;
    if (lane.kind === "memory") return { row, hit: undefined, time };
    let [nearest, distance] = [-1, 3 * pixel];
    lane.start.forEach((start, place) => {
      const off = Math.max(start - time, time - Math.max(lane.end[place], start + pixel), 0);
      if (off < distance) [nearest, distance] = [place, off];
    });
    if (nearest >= 0 && distance === 0) return { row, hit: { event: nearest } };
    const bar = lane.bin.findIndex((bin) => {
      const [from, to] = this.binSpan(this.data, bin);
      return time >= from && time < to;
    });
    if (bar >= 0) return { row, hit: { bar } };
    return { row, hit: nearest >= 0 ? { event: nearest } : undefined };
  },

  hover(event) {
    const { row, hit, time } = this.find(event);
    const onName = row?.lane && this.pixel(event) < LABELS_PX;
    this.lanes.style.cursor = row && (row.heading !== undefined || hit) ? "pointer" : "";
    this.point(hit && hit.event !== undefined ? row.lane.match[hit.event] : undefined);
    if (!hit && !onName && time === undefined) return this.hideTip();
    const { lane } = row;
    const ofEvent = () => (time !== undefined ? this.memoryLines(lane, time) : hit.event === undefined ? this.barLines(lane, hit.bar) : this.eventLines(lane, hit.event));
    const lines = onName ? [`${lane.group} · ${lane.label}`] : ofEvent();
    this.tip.replaceChildren(...lines.filter(Boolean).map((line) => {
      const element = document.createElement("div");
      element.textContent = line;
      return element;
    }));
    this.tip.hidden = false;
    const box = this.root.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const left = x + 14 + this.tip.offsetWidth > box.width ? x - 14 - this.tip.offsetWidth : x + 14;
    this.tip.style.left = `${Math.max(left, 0)}px`;
    const below = event.clientY + 16 + this.tip.offsetHeight <= window.innerHeight;
    this.tip.style.top = `${below ? y + 16 : y - 8 - this.tip.offsetHeight}px`;
    return undefined;
  },

  // Link the parts of the collective at the pointer.
  point(match = -1) {
    if (match === (this.pointedMatch ?? -1)) return;
    this.pointedMatch = match;
    this.draw();
  },

  eventLines(lane, place) {
    const { texts } = this.data;
    const [start, end] = [lane.start[place], lane.end[place]];
    return [
      texts[lane.name[place]] || "(no name)",
      `${duration(end - start)} from ${clock(start)}`,
      ...texts[lane.note[place]].split("\n"),
      `${lane.group} · ${lane.label}`,
    ];
  },

  memoryLines(lane, time) {
    const [begin, end] = this.data.window;
    const bin = Math.min(Math.max(Math.floor(((time - begin) * this.data.bins) / (end - begin)), 0), this.data.bins - 1);
    return [
      `${bytes(lane.used[bin])} in use, ${percent(lane.used[bin] / lane.most)} of the peak of the trace`,
      `at ${clock(Math.round(time))}`,
      `${lane.group} · ${lane.label}`,
    ];
  },

  barLines(lane, place) {
    const [from, to] = this.binSpan(this.data, lane.bin[place]);
    const [busy, count] = [lane.busy[place], lane.count[place]];
    const share = percent(busy / (to - from));
    return [
      `${count} ${count === 1 ? "event" : "events"}, busy ${duration(busy)} of ${duration(to - from)} (${share})`,
      `mostly ${this.data.swatches[lane.barColor[place]]}`,
      `${lane.group} · ${lane.label}`,
      "Click to zoom in.",
    ];
  },

  hideTip() {
    this.tip.hidden = true;
  },
};
