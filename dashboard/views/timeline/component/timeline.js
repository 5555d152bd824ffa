// A timeline on a canvas. The server sends the contents of one window. Until its next answer, the last one is drawn scaled.

const LABELS_PX = 132;
const AXIS_PX = 24;
const HEADING_PX = 19;
const LANE_PX = { device: 24, ranges: 17, calls: 15 };
const GAP_PX = 2;
const THIN_PX = 4;
const FEWEST_NS = 20;
const QUIET_MS = 40;
const CLICK_PX = 4;
const DOUBLE_MS = 200;
const FAINT = 0.16;

const drawn = new WeakMap();

export default function ({ parentElement, data, setTriggerValue }) {
  let timeline = drawn.get(parentElement);
  if (!timeline) {
    timeline = new Timeline(parentElement);
    drawn.set(parentElement, timeline);
  }
  timeline.send = (act) => setTriggerValue("act", act);
  timeline.take(data);
}

class Timeline {
  constructor(root) {
    this.root = root.querySelector(".timeline");
    for (const name of ["axis", "lanes", "scroll", "tip", "legend", "span"]) this[name] = this.root.querySelector(`.${name}`);
    this.folded = new Set();
    this.number = Date.now();
    this.waiting = false;
    this.listen();
  }

  // ---- answers of the server

  take(data) {
    const answered = data.number === this.number;
    const same = this.asked && data.window[0] === this.asked[0] && data.window[1] === this.asked[1];
    const stayed = this.asked && Math.floor(this.view[0]) === this.asked[0] && Math.ceil(this.view[1]) === this.asked[1];
    // A user who has moved on meanwhile keeps the view. A window that this page did not ask for, as after Back, is shown.
    if (!this.view || (answered && same ? stayed : !this.waiting)) this.view = data.window.slice();
    if (answered) this.waiting = false;
    this.data = data;
    if (data.window[0] <= 0 && data.window[1] >= data.length) this.whole = data;
    if (this.whole && (this.whole.length !== data.length || this.shape(this.whole) !== this.shape(data))) this.whole = null;
    this.fillLegend();
    this.layout();
    this.draw();
    this.root.dataset.number = data.number;
    this.root.dataset.events = data.lanes.reduce((sum, lane) => sum + lane.start.length, 0);
    this.root.dataset.bars = data.lanes.reduce((sum, lane) => sum + lane.bin.length, 0);
    if (answered && this.moved) this.ask();
  }

  shape(data) {
    return data.lanes.map((lane) => lane.group + lane.label).join("\n") + data.colors.join();
  }

  fillLegend() {
    const entries = this.data.legend.map((place) => {
      const entry = document.createElement("span");
      const color = document.createElement("i");
      const name = document.createElement("b");
      color.style.background = this.data.colors[place];
      name.textContent = this.data.swatches[place];
      entry.title = this.data.swatches[place];
      entry.append(color, name);
      return entry;
    });
    this.legend.replaceChildren(...entries);
  }

  // ---- asking for a window

  ask(pick = null) {
    if (this.waiting && pick === null) {
      this.moved = true;
      return;
    }
    this.moved = false;
    this.waiting = true;
    this.number += 1;
    this.asked = [Math.floor(this.view[0]), Math.ceil(this.view[1])];
    this.send({ number: this.number, window: this.asked, pixels: Math.round(this.width), pick });
  }

  move(begin, end) {
    const longest = this.data.length;
    let span = Math.min(Math.max(end - begin, FEWEST_NS), longest);
    const middle = (begin + end) / 2;
    begin = Math.min(Math.max(middle - span / 2, 0), longest - span);
    this.view = [begin, begin + span];
    this.draw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), QUIET_MS);
  }

  zoom(factor, at = 0.5) {
    const [begin, end] = this.view;
    const span = Math.min(Math.max((end - begin) * factor, FEWEST_NS), this.data.length);
    const fixed = begin + at * (end - begin);
    this.move(fixed - at * span, fixed + (1 - at) * span);
  }

  pan(share) {
    const by = share * (this.view[1] - this.view[0]);
    this.move(this.view[0] + by, this.view[1] + by);
  }

  fit() {
    this.move(0, this.data.length);
  }

  // ---- mouse and keyboard

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
      this.drag = { x: event.clientX, y: event.clientY, view: this.view.slice(), top: this.scroll.scrollTop, far: false };
    });
    canvas.addEventListener("pointermove", (event) => (this.drag ? this.dragged(event) : this.hover(event)));
    canvas.addEventListener("pointerup", (event) => {
      const drag = this.drag;
      this.drag = null;
      if (!drag || drag.far) return;
      // The first click of a double click does not choose an event.
      clearTimeout(this.click);
      this.click = setTimeout(() => this.clicked(event), DOUBLE_MS);
    });
    canvas.addEventListener("pointercancel", () => (this.drag = null));
    canvas.addEventListener("pointerleave", () => this.hideTip());
    canvas.addEventListener("dblclick", () => {
      clearTimeout(this.click);
      this.fit();
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.root.querySelector(".in").onclick = () => this.zoom(0.5);
    this.root.querySelector(".out").onclick = () => this.zoom(2);
    this.root.querySelector(".fit").onclick = () => this.fit();
    new ResizeObserver(() => {
      if (!this.data || this.root.clientWidth === this.outer) return;
      this.layout();
      this.draw();
    }).observe(this.root);
  }

  at(event) {
    const share = (event.clientX - this.lanes.getBoundingClientRect().left - LABELS_PX) / this.width;
    return Math.min(Math.max(share, 0), 1);
  }

  dragged(event) {
    const drag = this.drag;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.far && Math.hypot(dx, dy) < CLICK_PX) return;
    drag.far = true;
    this.hideTip();
    this.scroll.scrollTop = drag.top - dy;
    const by = (dx / this.width) * (drag.view[1] - drag.view[0]);
    this.move(drag.view[0] - by, drag.view[1] - by);
  }

  key(event) {
    const acts = {
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5),
      "-": () => this.zoom(2), 0: () => this.fit(), Home: () => this.fit(), Escape: () => this.ask(["", -1]),
      ArrowUp: () => (this.scroll.scrollTop -= 40), ArrowDown: () => (this.scroll.scrollTop += 40),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  }

  clicked(event) {
    const { row, hit } = this.find(event);
    if (row && row.heading !== undefined) {
      if (!this.folded.delete(row.heading)) this.folded.add(row.heading);
      this.layout();
      this.draw();
    } else if (hit && hit.event !== undefined) {
      clearTimeout(this.timer);
      this.ask([row.lane.kind, row.lane.row[hit.event]]);
    } else if (hit) {
      const [from, to] = this.binSpan(this.data, row.lane.bin[hit.bar]);
      this.move(from - 10 * (to - from), to + 10 * (to - from));
    } else if (this.data.chosen) {
      this.ask(["", -1]);
    }
  }

  find(event) {
    const box = this.lanes.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const row = this.rows.find((each) => y >= each.top && y < each.top + each.height);
    if (!row || row.heading !== undefined || x < LABELS_PX) return { row };
    const pixel = (this.view[1] - this.view[0]) / this.width;
    const time = this.view[0] + (x - LABELS_PX) * pixel;
    const { lane } = row;
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
  }

  hover(event) {
    const { row, hit } = this.find(event);
    this.lanes.style.cursor = row && (row.heading !== undefined || hit) ? "pointer" : "";
    if (!hit) return this.hideTip();
    const { lane } = row;
    const lines = hit.event === undefined ? this.barLines(lane, hit.bar) : this.eventLines(lane, hit.event);
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
  }

  eventLines(lane, place) {
    const { texts } = this.data;
    const [start, end] = [lane.start[place], lane.end[place]];
    return [
      texts[lane.name[place]] || "(no name)",
      `${duration(end - start)} from ${clock(start)}`,
      ...texts[lane.note[place]].split("\n"),
      `${lane.group} · ${lane.label}`,
    ];
  }

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
  }

  hideTip() {
    this.tip.hidden = true;
  }

  // ---- drawing

  layout() {
    this.outer = this.root.clientWidth;
    this.rows = [];
    let [top, group] = [0, null];
    for (const lane of this.data.lanes) {
      if (lane.group !== group) {
        group = lane.group;
        this.rows.push({ heading: group, top, height: HEADING_PX });
        top += HEADING_PX;
      }
      if (this.folded.has(group)) continue;
      const height = LANE_PX[lane.kind];
      this.rows.push({ lane, top, height });
      top += height + GAP_PX;
    }
    this.height = Math.max(top, 40);
    this.lanes.style.height = `${this.height}px`;
    const scale = window.devicePixelRatio || 1;
    const inner = this.lanes.clientWidth || this.outer;
    this.width = Math.max(inner - LABELS_PX - 6, 50);
    for (const [canvas, height] of [[this.lanes, this.height], [this.axis, AXIS_PX]]) {
      canvas.width = Math.round(inner * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${inner}px`;
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
    this.font = `11px ${getComputedStyle(this.root).fontFamily}`;
    this.lanes.setAttribute("aria-label", `Timeline of ${this.data.lanes.length} lanes: arrows pan, plus and minus zoom, 0 fits`);
  }

  x(time) {
    return LABELS_PX + ((time - this.view[0]) / (this.view[1] - this.view[0])) * this.width;
  }

  binSpan(data, bin) {
    const [begin, end] = data.window;
    const span = Math.max(end - begin, 1);
    return [begin + Math.floor((bin * span) / data.bins), begin + Math.floor(((bin + 1) * span) / data.bins)];
  }

  draw() {
    const context = this.lanes.getContext("2d");
    context.clearRect(0, 0, this.lanes.width, this.height);
    context.font = this.font;
    context.textBaseline = "middle";
    this.drawAxis(context);
    const right = LABELS_PX + this.width;
    const [from, to] = this.data.window.map((time) => Math.min(Math.max(this.x(time), LABELS_PX), right));
    // Outside of the last answer's window, draw from the answer for the whole trace.
    if (this.whole && this.whole !== this.data) {
      this.clipped(context, LABELS_PX, from, () => this.drawLanes(context, this.whole));
      this.clipped(context, to, right, () => this.drawLanes(context, this.whole));
    }
    this.clipped(context, from, to, () => this.drawLanes(context, this.data));
    this.drawLabels(context);
    if (!this.waiting && !this.data.lanes.some((lane) => lane.start.length + lane.bin.length)) {
      context.fillStyle = this.data.tones.muted;
      context.fillText("Nothing ran in this window.", LABELS_PX + 12, this.height / 2);
    }
    const [begin, end] = this.view;
    this.span.textContent = `${duration(end - begin)} from ${clock(begin)}, of ${duration(this.data.length)}`;
    this.root.dataset.begin = Math.floor(begin);
    this.root.dataset.end = Math.ceil(end);
  }

  clipped(context, left, right, paint) {
    if (right <= left) return;
    context.save();
    context.beginPath();
    context.rect(left, 0, right - left, this.height);
    context.clip();
    paint();
    context.restore();
  }

  drawLanes(context, data) {
    const lanes = new Map(data.lanes.map((lane) => [`${lane.group}\n${lane.kind}\n${lane.label}`, lane]));
    for (const row of this.rows) {
      const lane = row.lane && lanes.get(`${row.lane.group}\n${row.lane.kind}\n${row.lane.label}`);
      if (lane) this.drawLane(context, data, lane, row);
    }
  }

  drawLane(context, data, lane, row) {
    const bottom = row.top + row.height;
    lane.bin.forEach((bin, place) => {
      const [from, to] = this.binSpan(data, bin);
      const [x0, x1] = [this.x(from), this.x(to)];
      if (x1 < LABELS_PX || x0 > LABELS_PX + this.width) return;
      const height = Math.max((lane.busy[place] / (to - from)) * row.height, 2);
      context.globalAlpha = data.chosen && !lane.barLit[place] ? FAINT : 1;
      context.fillStyle = data.colors[lane.barColor[place]];
      context.fillRect(x0, bottom - height, Math.max(x1 - x0, 1), height);
    });
    lane.start.forEach((start, place) => {
      const [x0, x1] = [this.x(start), this.x(lane.end[place])];
      if (x1 < LABELS_PX - 1 || x0 > LABELS_PX + this.width) return;
      const [left, right] = [Math.max(x0, LABELS_PX - 2), Math.min(x1, LABELS_PX + this.width + 2)];
      const color = data.colors[lane.color[place]];
      const lit = data.chosen && lane.lit[place];
      context.globalAlpha = data.chosen && !lit ? FAINT : 1;
      context.fillStyle = color;
      // Copies are thinner than the kernels of their stream.
      const inset = data.thin.includes(lane.color[place]) ? THIN_PX : 0;
      const width = Math.max(right - left, 1);
      // A line in the background colour between neighbours that are wide enough for it.
      context.fillRect(left, row.top + inset, width > 4 ? width - 0.75 : width, row.height - 2 * inset);
      if (width < 26) return;
      context.fillStyle = readable(color);
      context.fillText(fitted(data.texts[lane.name[place]], width - 8), left + 4, row.top + row.height / 2 + 0.5);
    });
    context.globalAlpha = 1;
  }

  drawLabels(context) {
    const { tones } = this.data;
    context.clearRect(0, 0, LABELS_PX - 1, this.height);
    for (const row of this.rows) {
      if (row.heading !== undefined) {
        context.fillStyle = tones.text;
        context.font = `600 ${this.font}`;
        const sign = this.folded.has(row.heading) ? "▸" : "▾";
        context.fillText(`${sign} ${row.heading}`, 2, row.top + row.height / 2 + 1);
        context.font = this.font;
      } else {
        context.fillStyle = tones.muted;
        context.fillText(fitted(row.lane.label, LABELS_PX - 22), 14, row.top + row.height / 2 + 0.5);
      }
    }
  }

  drawAxis(lanes) {
    const context = this.axis.getContext("2d");
    const { tones } = this.data;
    const [begin, end] = this.view;
    const span = end - begin;
    const step = niceStep(span / Math.max(this.width / 110, 1));
    // Far from the start of the trace, all ticks would read the same. They count from a round time, shown at the left end.
    const round = 10 ** Math.ceil(Math.log10(span));
    const base = begin / span > 2000 ? Math.floor(begin / round) * round : 0;
    context.clearRect(0, 0, this.axis.width, AXIS_PX);
    context.font = this.font;
    context.fillStyle = tones.muted;
    context.textBaseline = "middle";
    if (base) context.fillText(fitted(`${clock(base)} +`, LABELS_PX - 8), 2, AXIS_PX / 2);
    lanes.fillStyle = tones.grid;
    for (let tick = Math.ceil((begin - base) / step); tick * step + base <= end; tick += 1) {
      const x = Math.round(this.x(tick * step + base));
      context.fillStyle = tones.grid;
      context.fillRect(x, AXIS_PX - 5, 1, 5);
      lanes.fillRect(x, 0, 1, this.height);
      context.fillStyle = tones.muted;
      const text = tickText(tick * step, step);
      const wide = context.measureText(text).width;
      context.fillText(text, Math.min(Math.max(x - wide / 2, LABELS_PX), LABELS_PX + this.width - wide), AXIS_PX / 2 - 2);
    }
  }
}
