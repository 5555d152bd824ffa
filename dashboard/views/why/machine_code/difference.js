// Two kernels side by side. Long equal parts are folded; a click or Enter unfolds one. page.py joins rows.js before it.

const CONTEXT = 3;
const FEWEST_FOLDED = 4;
const [SAME, CHANGED, ONLY_A] = [0, 1, 2];
const TOKEN = /\w+|[^\w]/g;
const REGISTER = /^(UR|UP|R|P|B|SB)\d+$/;

const drawn = new WeakMap();

export default function ({ parentElement, data }) {
  let difference = drawn.get(parentElement);
  if (!difference) {
    difference = new Difference(parentElement.querySelector(".code"));
    drawn.set(parentElement, difference);
  }
  difference.take(data);
}

class Difference {
  constructor(root) {
    this.root = root;
    for (const name of ["search", "count", "legend", "head", "back", "on", "all"]) this[name] = root.querySelector(`.${name}`);
    this.rows = new Rows(root.querySelector(".rows"), "Both kernels", (row) => this.row(this.shown[row]), (row) => this.unfold(row));
    this.search.oninput = () => this.find();
    this.search.onkeydown = (event) => event.key === "Enter" && this.step(this.matches, event.shiftKey ? -1 : 1);
    this.back.onclick = () => this.step(this.starts, -1);
    this.on.onclick = () => this.step(this.starts, 1);
    this.all.onclick = () => {
      this.unfolded = this.unfolded === true ? new Set() : true;
      this.fold();
    };
  }

  take(data) {
    const same = this.data && JSON.stringify(this.data.rows) === JSON.stringify(data.rows) && this.data.a.join() === data.a.join();
    this.data = data;
    paint(this.root, data.colors);
    this.head.replaceChildren(...data.headings.map((heading) => Object.assign(node("div", "title", heading), { title: heading })));
    this.legend.replaceChildren(...legend(data.legend));
    if (!same) {
      this.unfolded = new Set();
      this.rows.cursor = -1;
      this.rows.root.scrollTop = 0;
    }
    this.wanted = this.search.value.trim().toLowerCase();
    this.fold();
  }

  // What is shown: rows by their places, and a pair [first, end] for each folded part.
  fold() {
    const { rows } = this.data;
    this.shown = [];
    for (let first = 0; first < rows.length; ) {
      let end = first;
      while (end < rows.length && rows[end][0] === SAME) end += 1;
      if (end === first) this.shown.push(first++);
      else {
        const head = first === 0 ? first : first + CONTEXT;
        const tail = end === rows.length ? end : end - CONTEXT;
        const folds = tail - head >= FEWEST_FOLDED && this.unfolded !== true && !this.unfolded.has(head) && end - first < rows.length;
        for (let place = first; place < end; place += 1) {
          if (folds && place === head) this.shown.push([head, tail]);
          if (!folds || place < head || place >= tail) this.shown.push(place);
        }
        first = end;
      }
    }
    this.starts = this.shown.flatMap((place, row) => (this.differs(place) && !this.differs(this.shown[row - 1]) ? [row] : []));
    this.all.textContent = this.unfolded === true ? "Fold" : "Unfold all";
    this.back.disabled = this.on.disabled = !this.starts.length;
    this.all.disabled = this.unfolded !== true && !this.shown.some(Array.isArray);
    this.find({ keep: true });
  }

  differs(place) {
    return Number.isInteger(place) && this.data.rows[place][0] !== SAME;
  }

  row(place) {
    if (Array.isArray(place)) return node("div", "row fold", `${plural(place[1] - place[0], "equal instruction")}: unfold`);
    const [kind, a, b] = this.data.rows[place];
    const sides = [this.data.a[a], this.data.b[b]];
    const marks = (text, side) => this.marks(text, sides[1 - side], this.data.families[side][[a, b][side]]);
    const differing = kind === CHANGED ? sides.map(marks) : [null, null];
    return node("div", "row", ...[a, b].map((at, side) => this.half(at, side, sides[side], kind, differing[side])));
  }

  half(place, side, text, kind, differing) {
    if (place < 0) return node("div", "half none");
    const parts = differing ?? instruction(text, this.data.families[side][place], this.wanted);
    const half = node("div", "half", node("span", "number", offset(place)), node("span", "text", ...parts));
    if (kind === CHANGED) half.classList.add(side ? "come" : "gone");
    else if (kind !== SAME) half.classList.add(kind === ONLY_A ? "gone" : "come");
    half.title = text;
    return half;
  }

  // The parts of an instruction, with the tokens marked that the other instruction has not at the same place.
  marks(text, other, family) {
    const [one, counterpart] = [text, other].map((each) => INSTRUCTION.exec(each) ?? ["", "", ""]);
    const normal = (token) => token?.trim().replace(REGISTER, "$1");
    const part = (own, others) => (normal(own) === normal(others) ? own : node("mark", "", own));
    const [rest, others] = [text.slice(one[0].length), other.slice(counterpart[0].length)].map((each) => each.match(TOKEN) ?? []);
    return [
      node("span", "guard", part(one[1], counterpart[1])), node("b", `opcode family${family}`, part(one[2], counterpart[2])),
      ...rest.map((token, place) => part(token, others[place])),
    ];
  }

  unfold(row) {
    const place = this.shown[row];
    if (!Array.isArray(place)) return;
    this.unfolded.add(place[0]);
    this.fold();
  }

  find({ keep = false } = {}) {
    this.wanted = this.search.value.trim().toLowerCase();
    const has = (place) => Number.isInteger(place) && this.texts(place).some((text) => text.toLowerCase().includes(this.wanted));
    this.matches = this.wanted ? this.shown.flatMap((place, row) => (has(place) ? [row] : [])) : [];
    this.count.textContent = this.wanted ? plural(this.matches.length, "row") : "";
    this.rows.take(this.shown.length, 0);
    if (!keep && this.matches.length) this.rows.move(this.matches[0]);
  }

  texts(place) {
    const [, a, b] = this.data.rows[place];
    return [this.data.a[a], this.data.b[b]].filter((text) => text !== undefined);
  }

  step(among, by) {
    if (!among.length) return;
    const { cursor } = this.rows;
    const to = by > 0 ? among.find((row) => row > cursor) ?? among[0] : among.findLast((row) => row < cursor) ?? among.at(-1);
    this.rows.cursor = to;
    this.rows.reveal(to, { third: true });
  }
}
