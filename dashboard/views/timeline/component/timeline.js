// A timeline on a canvas. The server sends the contents of one window. Until its next answer, the last one is drawn scaled.
// __init__.py joins the other files of this folder before it.

const LABELS_PX = 132;
const AXIS_PX = 24;
const HEADING_PX = 19;
const LANE_PX = { device: 24, ranges: 17, calls: 15, memory: 34 };
const GAP_PX = 2;
const THIN_PX = 4;
const FEWEST_NS = 20;
const QUIET_MS = 40;
const CLICK_PX = 4;
const DOUBLE_MS = 200;
const FAINT = 0.16;
const MARK_PX = 4;
const ARROW_PX = 6;
const MARK = "#e69f00";

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
    this.steps = 0;
    this.search = new Search(this);
    this.measure = new Measure(this);
    this.keys = new Keys(this);
    this.listen();
  }

  // ---- answers of the server

  take(data) {
    const answered = data.number === this.number;
    const same = this.asked && data.window[0] === this.asked[0] && data.window[1] === this.asked[1];
    const stayed = this.asked && Math.floor(this.view[0]) === this.asked[0] && Math.ceil(this.view[1]) === this.asked[1];
    // A user who has moved on meanwhile keeps the view. A window that this page did not ask for, as after Back, is shown. A
    // step to a hit leads to the window that the server chose.
    const leads = this.led && answered && !this.moved;
    if (!this.view || leads || (answered && same ? stayed : !this.waiting)) this.view = data.window.slice();
    const reveals = leads || !this.data;
    if (answered) this.waiting = this.led = false;
    this.data = data;
    if (data.window[0] <= 0 && data.window[1] >= data.length) this.whole = data;
    if (this.whole && (this.whole.length !== data.length || this.shape(this.whole) !== this.shape(data))) this.whole = null;
    if (!this.waiting && !this.measure.drag && !this.moved) {
      this.measure.span = data.measure;
    }
    this.search.take(data.search);
    this.keys.listen();
    this.fillLegend();
    this.layout();
    if (reveals) this.reveal();
    this.draw();
    this.root.dataset.number = data.number;
    this.root.dataset.events = data.lanes.reduce((sum, lane) => sum + lane.start.length, 0);
    this.root.dataset.bars = data.lanes.reduce((sum, lane) => sum + lane.bin.length, 0);
    const { steps } = this;
    this.steps = 0;
    if (answered && steps) this.ask({ step: steps });
    else if (answered && this.moved) this.ask();
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
      name.textContent = this.data.brief[place];
      entry.title = this.data.titles[place];
      entry.append(color, name);
      return entry;
    });
    this.legend.replaceChildren(...entries);
  }

  // ---- asking for a window

  ask({ pick = null, step = 0 } = {}) {
    if (this.waiting && pick === null) {
      if (step) this.steps += step;
      else this.moved = true;
      return;
    }
    this.moved = false;
    this.waiting = true;
    this.led = step !== 0;
    if (step) this.focused = "chosen";
    this.number += 1;
    this.asked = [Math.floor(this.view[0]), Math.ceil(this.view[1])];
    const [window, pixels] = [this.asked, Math.round(this.width)];
    this.send({
      number: this.number, window, pixels, pick, step, search: this.search.wanted, measure: this.measure.span || [0, 0],
    });
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

  zoomTo(begin, end) {
    const margin = Math.max((end - begin) * 0.1, 2);
    this.move(begin - margin, end + margin);
  }

  // Zoom to what was chosen or measured last.
  focus() {
    const spans = { chosen: this.data.chosen?.span, measure: this.measure.span };
    const span = spans[this.focused] || spans.chosen || spans.measure;
    if (span) this.zoomTo(...span);
  }

  drop() {
    this.measure.span = null;
    this.draw();
    this.ask({ pick: ["", -1] });
  }

  // Scroll to the chosen event's lane, and unfold it.
  reveal() {
    const lane = this.data.lanes[this.data.chosen?.lane];
    if (!lane) return;
    if (this.folded.delete(lane.group)) this.layout();
    const row = this.rows.find((each) => each.lane === lane);
    const { scrollTop, clientHeight } = this.scroll;
    if (row.top < scrollTop) this.scroll.scrollTop = row.top - HEADING_PX;
    else if (row.top + row.height > scrollTop + clientHeight) this.scroll.scrollTop = row.top + row.height - clientHeight;
  }

  // ---- drawing

  layout() {
    this.outer = this.root.clientWidth;
    this.rows = [];
    let [top, group] = [0, null];
    for (const lane of this.inOrder()) {
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
    const inner = this.scroll.clientWidth || this.outer;  // the canvases keep the width of a wider window
    this.width = Math.max(inner - LABELS_PX - 6, 50);
    for (const [canvas, height] of [[this.lanes, this.height], [this.axis, AXIS_PX]]) {
      canvas.width = Math.round(inner * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${inner}px`;
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
    this.font = `11px ${getComputedStyle(this.root).fontFamily}`;
    this.lanes.setAttribute("aria-label", `Timeline of ${this.data.lanes.length} lanes: arrows pan, plus and minus zoom, ? for keys`);
  }

  // Memory in use stands below the streams of its GPU. The server sends it last.
  inOrder() {
    const ordered = this.data.lanes.filter((lane) => lane.kind !== "memory");
    for (const lane of this.data.lanes.filter((each) => each.kind === "memory")) {
      const last = ordered.findLastIndex((each) => each.group === lane.group);
      ordered.splice(last < 0 ? ordered.length : last + 1, 0, lane);
    }
    return ordered;
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
    this.clipped(context, LABELS_PX - 2, right + 2, () => {
      this.drawChosen(context);
      this.drawLinks(context, this.data.chosen?.links || []);
      this.drawArrows(context, this.data.chosen?.arrows || []);
      if (this.pointedMatch >= 0) this.drawLinks(context, this.parts(this.pointedMatch));
    });
    this.measure.draw(this.axis.getContext("2d"), context);
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
    this.rows.forEach((row) => {
      const lane = row.lane && lanes.get(`${row.lane.group}\n${row.lane.kind}\n${row.lane.label}`);
      if (lane) this.drawLane(context, data, lane, row);
    });
  }

  // A step a bin, whose height is the most memory in use over that of the whole trace.
  drawMemory(context, data, lane, row) {
    const bottom = row.top + row.height;
    context.fillStyle = data.tones.muted;
    context.globalAlpha = 0.45;
    context.beginPath();
    lane.used.forEach((bytes, bin) => {
      const [x0, x1] = this.binSpan(data, bin).map((time) => this.x(time));
      if (!bytes || x1 < LABELS_PX || x0 > LABELS_PX + this.width) return;
      const height = Math.max((bytes / lane.most) * (row.height - 2), 1);
      context.rect(x0, bottom - height, Math.max(x1 - x0, 1), height);
    });
    context.fill();
    context.globalAlpha = 1;
  }

  drawLane(context, data, lane, row) {
    if (lane.kind === "memory") return this.drawMemory(context, data, lane, row);
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
      const name = data.short[lane.name[place]] ?? data.texts[lane.name[place]];
      context.fillText(fitted(name, width - 8), left + 4, row.top + row.height / 2 + 0.5);
    });
    context.globalAlpha = 1;
    return undefined;
  }

  drawChosen(context) {
    const lane = this.data.lanes[this.data.chosen?.lane];
    const row = lane && this.rows.find((each) => each.lane === lane);
    if (!row) return;
    const [x0, x1] = this.data.chosen.span.map((time) => this.x(time));
    context.strokeStyle = this.data.tones.text;
    context.lineWidth = 2;
    context.strokeRect(x0 - 1, row.top, Math.max(x1 - x0, 1) + 2, row.height);
  }

  // The events of a collective that are drawn alone, one a lane at most.
  parts(match) {
    return this.data.lanes.flatMap((lane, place) => {
      const event = lane.match.indexOf(match);
      return event < 0 ? [] : [{ lane: place, span: [lane.start[event], lane.end[event]] }];
    });
  }

  // Frames around the parts of a collective, with lines between their starts and between their ends from lane to lane.
  drawLinks(context, links) {
    const boxes = links.map(({ lane, span }) => {
      const row = this.rows.find((each) => each.lane === this.data.lanes[lane]);
      return { row, ends: span.map((time) => this.x(time)) };
    }).filter(({ row }) => row).sort((one, other) => one.row.top - other.row.top);
    context.strokeStyle = this.data.tones.text;
    context.lineWidth = 1;
    context.beginPath();
    boxes.forEach(({ row, ends: [x0, x1] }, place) => {
      context.rect(x0 - 0.5, row.top + 0.5, Math.max(x1 - x0, 1) + 1, row.height - 1);
      const above = boxes[place - 1];
      if (!above) return;
      [0, 1].forEach((end) => {
        context.moveTo(above.ends[end], above.row.top + above.row.height);
        context.lineTo([x0, x1][end], row.top);
      });
    });
    context.stroke();
    this.root.dataset.linked = boxes.length;
  }

  // From a call to the device work that it launched.
  drawArrows(context, arrows) {
    let drawn = 0;
    const rowOf = (event) => this.rows.find((each) => each.lane === this.data.lanes[event.lane]);
    context.strokeStyle = context.fillStyle = this.data.tones.text;
    context.lineWidth = 1.25;
    for (const [call, work] of arrows) {
      const [from, to] = [rowOf(call), rowOf(work)];
      if (!from || !to) continue;
      const [x0, x1] = [this.x(Math.min(call.span[1], work.span[0])), this.x(work.span[0])];
      const down = to.top > from.top;
      const [y0, y1] = [down ? from.top + from.height : from.top, down ? to.top : to.top + to.height];
      const head = down ? -ARROW_PX : ARROW_PX;
      const bend = Math.max(Math.min((x1 - x0) / 2, 60), 12);
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + bend, y0 - head * 3, x1 - bend, y1 + head * 3, x1, y1 + head);
      context.stroke();
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - ARROW_PX * 0.6, y1 + head);
      context.lineTo(x1 + ARROW_PX * 0.6, y1 + head);
      context.fill();
      drawn += 1;
    }
    this.root.dataset.arrows = drawn;
  }

  drawLabels(context) {
    context.clearRect(0, 0, LABELS_PX - 1, this.height);
    this.rows.forEach((row) => this.drawLabel(context, row));
  }

  drawLabel(context, row) {
    const { tones } = this.data;
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
    context.fillStyle = MARK;
    for (const bin of this.data.search.marks) {
      const [from, to] = this.binSpan(this.data, bin);
      const [x0, x1] = [this.x(from), this.x(to)];
      if (x1 >= LABELS_PX && x0 <= LABELS_PX + this.width) context.fillRect(x0, 0, Math.max(x1 - x0, 2), MARK_PX);
    }
  }
}

Object.assign(Timeline.prototype, GESTURES);
