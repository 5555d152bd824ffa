// A source and its machine code. A click on a line marks its instructions, and a click on an instruction marks its line.
// page.py joins rows.js before it.

const MOST_DEPTH = 4;
const HEAT_PX = 50;
const NUMBER_PX = 38;
const OFFSET_PX = 38;
const WIDE_PX = 1150;
const NARROW_PX = 900;
const LEVEL_PX = 9;
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

const drawn = new WeakMap();

export default function ({ parentElement, data }) {
  let listing = drawn.get(parentElement);
  if (!listing) {
    listing = new Listing(parentElement.querySelector(".code"));
    drawn.set(parentElement, listing);
  }
  listing.take(data);
}

class Listing {
  constructor(root) {
    this.root = root;
    for (const name of ["search", "count", "only", "columns", "legend", "next", "words"]) this[name] = root.querySelector(`.${name}`);
    this.panes = {};
    for (const [name, label] of [["left", "Source"], ["right", "Machine code"]]) {
      const pane = root.querySelector(`.${name}`);
      const draw = (row) => this.row(name, this.panes[name].shown[row]);
      const act = (row) => this.pick(name, this.panes[name].shown[row]);
      const rows = new Rows(pane.querySelector(".rows"), label, draw, act);
      this.panes[name] = { pane, rows, head: pane.querySelector(".head"), shown: [], texts: [], found: [] };
    }
    this.hidden = null;
    this.search.oninput = () => this.find();
    this.search.onkeydown = (event) => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") [this.search.value] = [""], this.find();
    };
    this.only.onchange = () => this.find();
    this.next.onclick = () => this.goOn();
  }

  take(data) {
    const same = this.data && this.data.texts.join("\n") === data.texts.join("\n") && this.data.source.join("\n") === data.source.join("\n");
    this.data = data;
    paint(this.root, data.colors);
    if (!same) {
      this.line = 0;
      this.instruction = -1;
      for (const { rows } of Object.values(this.panes)) Object.assign(rows, { cursor: -1 }), (rows.root.scrollTop = 0);
      this.words.textContent = data.ptx ? "" : "Choose a line or an instruction to see what belongs to it.";
      this.next.disabled = true;
    }
    this.panes.left.texts = data.source;
    this.panes.right.texts = data.texts;
    this.panes.right.rows.root.ariaLabel = data.ptx ? "PTX" : "Machine code";
    this.depth = Math.min(1 + Math.max(-1, ...data.loops.map(([, , depth]) => depth)), MOST_DEPTH);
    this.heats = data.heats.map((heat) => this.heat(heat));
    if (this.hidden === null && this.heats.length) {
      this.hidden = this.withoutRoom(this.heats.map(({ name }) => name));
    }
    this.byLine = new Map();
    data.lines.forEach((line, place) => line && (this.byLine.get(line) ?? this.byLine.set(line, []).get(line)).push(place));
    this.legend.replaceChildren(...legend(data.legend));
    this.toggles();
    this.layout();
    if (!same) requestAnimationFrame(() => this.begin());
  }

  // Scroll to the instruction with the most samples and its line; without samples, to the first instruction and its line.
  begin() {
    const samples = this.heats.find(({ name }) => name === "samples")?.right.values ?? new Map();
    const [place] = [...samples].reduce((most, each) => (each[1] > most[1] ? each : most), [0, 0]);
    if (!this.data.ptx) this.panes.right.rows.reveal(place, { third: true });
    if (this.data.lines[place]) this.panes.left.rows.reveal(this.data.lines[place] - 1, { third: true });
  }

  // The columns that a narrow window hides at first, so that the texts have room.
  withoutRoom(names) {
    const width = this.root.clientWidth;
    if (width >= WIDE_PX) return new Set();
    const shown = width >= NARROW_PX ? names.slice(0, 2) : [names.find((name) => name === "samples") ?? names[0]];
    return new Set(names.filter((name) => !shown.includes(name)));
  }

  // The readings of one column on both sides.
  heat({ name, meaning, values, ideal, reasons }) {
    const byPlace = new Map(values);
    const least = new Map(ideal);
    const sums = { values: new Map(), ideal: new Map() };
    const add = (map, key, value) => map.set(key, (map.get(key) ?? 0) + value);
    this.data.lines.forEach((line, place) => {
      add(sums.values, line, byPlace.get(place) ?? 0);
      add(sums.ideal, line, least.get(place) ?? 0);
    });
    sums.values.delete(0);
    const most = (map) => Math.max(1, ...map.values());
    const total = (map) => [...map.values()].reduce((sum, value) => sum + value, 0);
    return {
      name, meaning, total: total(byPlace), least: ideal.length ? total(least) : null, reasons: new Map(reasons),
      right: { values: byPlace, ideal: least, most: most(byPlace) }, left: { ...sums, most: most(sums.values) },
    };
  }

  get visible() {
    return this.heats.filter(({ name }) => !this.hidden?.has(name));
  }

  toggles() {
    const make = ({ name, meaning }) => {
      const button = node("button", "toggle", name);
      Object.assign(button, { type: "button", title: `Show or hide: ${meaning}`, ariaPressed: String(!this.hidden.has(name)) });
      button.onclick = () => {
        if (!this.hidden.delete(name)) this.hidden.add(name);
        button.ariaPressed = String(!this.hidden.has(name));
        this.layout();
      };
      return button;
    };
    this.columns.replaceChildren(...this.heats.map(make));
  }

  layout() {
    const gutter = { left: 0, right: this.depth * LEVEL_PX };
    for (const [side, { pane, head }] of Object.entries(this.panes)) {
      const number = side === "left" ? NUMBER_PX : this.data.ptx ? NUMBER_PX : OFFSET_PX;
      pane.style.setProperty("--number", `${number}px`);
      pane.style.setProperty("--loops", `${gutter[side]}px`);
      pane.style.setProperty("--fixed", `${this.visible.length * HEAT_PX + number + gutter[side] + 6}px`);
      const heads = this.visible.map((heat) => this.headOf(heat));
      head.replaceChildren(node("div", "fixed", ...heads), node("div", "title", this.data.headings[side === "left" ? 0 : 1]));
      head.lastChild.title = head.lastChild.textContent;
    }
    this.find({ keep: true });
  }

  headOf({ name, meaning, total, least }) {
    const head = node("div", "heat", node("div", "", name), node("div", "", short.format(total)));
    const more = least === null ? "" : `; ideal: ${least.toLocaleString("en")}`;
    head.title = `${total.toLocaleString("en")} ${meaning}${more}`;
    return head;
  }

  row(side, place) {
    const text = this.panes[side].texts[place];
    const fixed = node("div", "fixed", ...this.visible.map((heat) => this.cell(heat, side, place)));
    const isCode = side === "right" && !this.data.ptx;
    fixed.append(node("span", "number", isCode ? offset(place) : place + 1));
    if (isCode) fixed.append(this.gutter(place));
    const parts = isCode ? instruction(text, this.data.families[place], this.wanted) : marked([[text, "span", ""]], this.wanted);
    const row = node("div", "row", fixed, node("span", "text", ...parts));
    const line = side === "left" ? place + 1 : this.data.lines[place];
    if (this.line && line === this.line) row.classList.add("linked");
    return row;
  }

  cell(heat, side, place) {
    const { values, ideal, most } = heat[side];
    const key = side === "left" ? place + 1 : place;
    const value = values.get(key) ?? 0;
    if (!value) return node("span", "heat");
    const excess = heat.least === null ? 0 : value - (ideal.get(key) ?? 0);
    const cell = node("span", "heat", excess > 0 ? "▲" : "", short.format(value));
    cell.style.setProperty("--part", `${(6 + 38 * Math.sqrt(value / most)).toFixed(1)}%`);
    cell.title = this.reading(heat, side, key, value, excess);
    return cell;
  }

  reading({ meaning, total, reasons }, side, key, value, excess) {
    const lines = [`${value.toLocaleString("en")} ${meaning}, ${((100 * value) / total).toFixed(1)} % of the kernel`];
    if (excess > 0) lines.push(`${excess.toLocaleString("en")} (${((100 * excess) / value).toFixed(0)} %) more than the ideal`);
    const places = side === "left" ? this.byLine.get(key) ?? [] : [key];
    const sums = new Map();
    for (const place of places) for (const [reason, count] of reasons.get(place) ?? []) sums.set(reason, (sums.get(reason) ?? 0) + count);
    for (const [reason, count] of [...sums].sort((one, other) => other[1] - one[1])) lines.push(`${reason}: ${count.toLocaleString("en")}`);
    return lines.join("\n");
  }

  // A bracket for each loop around an instruction.
  gutter(place) {
    const levels = Array.from({ length: this.depth }, () => node("i"));
    for (const [first, last, depth, hot] of this.data.loops) {
      if (place < first || place > last || depth >= this.depth) continue;
      const level = levels[depth];
      level.className = `loop${hot ? " hot" : ""}${place === first ? " first" : ""}${place === last ? " last" : ""}`;
      level.title = `Loop of depth ${depth}, 0x${offset(first)} to 0x${offset(last)}${hot ? ": the hot loop" : ""}`;
    }
    return node("span", "gutter", ...levels);
  }

  // Choose a line or an instruction, and show the other side.
  pick(side, place) {
    if (this.data.ptx) return;
    this.instruction = side === "right" ? place : -1;
    this.line = side === "left" ? place + 1 : this.data.lines[place];
    const places = this.byLine.get(this.line) ?? [];
    const other = side === "left" ? "right" : "left";
    const to = side === "left" ? places[0] : this.line - 1;
    if (this.line && to !== undefined) this.show(other, to);
    this.words.textContent = this.sentence(side, place, places);
    this.next.disabled = places.length < 2;
    for (const { rows } of Object.values(this.panes)) rows.render();
  }

  sentence(side, place, places) {
    if (!this.line) return `The instruction at 0x${offset(place)} belongs to no line of the source.`;
    if (!places.length) return `Line ${this.line} has no instruction of its own.`;
    const figures = this.heats.map((heat) => {
      const value = (side === "left" ? heat.left : heat.right).values.get(side === "left" ? this.line : place) ?? 0;
      return value ? `${heat.name} ${short.format(value)} (${((100 * value) / heat.total).toFixed(1)} %)` : "";
    }).filter(Boolean);
    const blocks = places.filter((each, index) => each !== places[index - 1] + 1).length;
    const where = blocks > 1 ? ` in ${blocks} places` : "";
    const start = side === "left" ? `Line ${this.line}` : `0x${offset(place)}, of line ${this.line}`;
    return `${start}: ${plural(places.length, "instruction")}${where}${figures.length ? `; ${figures.join(", ")}` : ""}.`;
  }

  // The next instructions of the line that is chosen.
  goOn() {
    const places = this.byLine.get(this.line) ?? [];
    const starts = places.filter((place, index) => place !== places[index - 1] + 1);
    const { rows, shown } = this.panes.right;
    const at = shown[rows.cursor] ?? -1;
    const to = starts.find((place) => place > at) ?? starts[0];
    if (to !== undefined) this.show("right", to);
  }

  show(side, place) {
    const { rows, shown } = this.panes[side];
    const row = shown.indexOf(place);
    if (row < 0) return;
    rows.cursor = row;
    rows.reveal(row, { third: true });
  }

  find({ keep = false } = {}) {
    this.wanted = this.search.value.trim().toLowerCase();
    const counts = [];
    for (const [side, pane] of Object.entries(this.panes)) {
      const at = pane.shown[pane.rows.cursor];
      const every = pane.texts.map((_, place) => place);
      pane.found = this.wanted ? every.filter((place) => pane.texts[place].toLowerCase().includes(this.wanted)) : [];
      pane.shown = this.wanted && this.only.checked ? pane.found : every;
      pane.rows.cursor = pane.shown.indexOf(at);
      pane.rows.take(pane.shown.length, longest(pane.texts));
      if (this.wanted && !keep && pane.found.length) this.show(side, pane.found[0]);
      counts.push(plural(pane.found.length, side === "left" ? "line" : this.data.ptx ? "line of PTX" : "instruction"));
    }
    this.count.textContent = this.wanted ? counts.join(", ").replace("line of PTXs", "lines of PTX") : "";
  }

  // The next match, on the side that has one: the machine code first.
  step(by) {
    const side = this.panes.right.found.length ? "right" : "left";
    const { rows, shown, found } = this.panes[side];
    if (!found.length) return;
    const at = shown[rows.cursor] ?? -1;
    const to = by > 0 ? found.find((place) => place > at) ?? found[0] : found.findLast((place) => place < at) ?? found.at(-1);
    this.show(side, to);
  }
}
