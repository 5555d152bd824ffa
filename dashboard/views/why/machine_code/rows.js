// A list of rows of one height, of which only the visible ones are in the document. Every text is set as text and never as markup.

const ROW_PX = 18;
const BEYOND = 12;
let lists = 0;

class Rows {
  /**
   * @param root the element that scrolls.
   * @param draw gives the element of a row.
   * @param act is called with a row that was clicked or entered.
   */
  constructor(root, label, draw, act) {
    Object.assign(this, { root, draw, act, length: 0, cursor: -1, number: (lists += 1) });
    this.space = document.createElement("div");
    this.space.className = "space";
    root.replaceChildren(this.space);
    Object.assign(root, { tabIndex: 0, role: "listbox", ariaLabel: label });
    root.addEventListener("scroll", () => this.render(), { passive: true });
    root.addEventListener("keydown", (event) => this.hear(event));
    root.addEventListener("focus", () => this.enter());
    // Of the list and not of a row, because the rows are replaced at each drawing, also between the press of a button and its release.
    root.addEventListener("click", (event) => this.choose(Math.floor((event.clientY - this.space.getBoundingClientRect().top) / ROW_PX)));
    new ResizeObserver(() => this.render()).observe(root);
  }

  // A list of another length. The characters are those of its longest row.
  take(length, characters) {
    this.length = length;
    this.cursor = Math.min(this.cursor, length - 1);
    this.space.style.height = `${length * ROW_PX}px`;
    this.space.style.minWidth = `calc(var(--fixed, 0px) + ${characters + 2}ch)`;
    this.render();
  }

  render() {
    const first = Math.max(Math.floor(this.root.scrollTop / ROW_PX) - BEYOND, 0);
    const last = Math.min(Math.ceil((this.root.scrollTop + this.root.clientHeight) / ROW_PX) + BEYOND, this.length);
    const drawn = [];
    for (let row = first; row < last; row += 1) {
      const element = this.draw(row);
      element.style.top = `${row * ROW_PX}px`;
      Object.assign(element, { id: this.id(row), role: "option", ariaSelected: String(row === this.cursor) });
      element.setAttribute("aria-setsize", this.length);
      element.setAttribute("aria-posinset", row + 1);
      if (row === this.cursor) element.classList.add("cursor");
      drawn.push(element);
    }
    this.space.replaceChildren(...drawn);
    if (this.cursor >= first && this.cursor < last) this.root.setAttribute("aria-activedescendant", this.id(this.cursor));
    else this.root.removeAttribute("aria-activedescendant");
  }

  id(row) {
    return `row-${this.number}-${row}`;
  }

  // The first visible row is where the keyboard starts.
  enter() {
    const first = Math.ceil(this.root.scrollTop / ROW_PX);
    if (this.cursor < 0 && this.length && this.root.matches(":focus-visible")) this.move(first);
  }

  choose(row) {
    // A drag over a text selects it and chooses nothing.
    if (row < 0 || row >= this.length || String(this.root.getRootNode().getSelection?.() ?? document.getSelection())) return;
    this.cursor = row;
    this.act(row);
    this.render();
  }

  move(row) {
    this.cursor = Math.min(Math.max(row, 0), this.length - 1);
    this.reveal(this.cursor);
  }

  // Scroll so that a row is seen: the least that is needed, or to a third of the height.
  reveal(row, { third = false } = {}) {
    const { root } = this;
    const [top, bottom] = [row * ROW_PX, (row + 1) * ROW_PX];
    if (third && (top < root.scrollTop || bottom > root.scrollTop + root.clientHeight)) {
      root.scrollTop = top - root.clientHeight / 3;
    } else if (top < root.scrollTop) root.scrollTop = top;
    else if (bottom > root.scrollTop + root.clientHeight) root.scrollTop = bottom - root.clientHeight;
    this.render();
  }

  hear(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.length) return;
    const page = Math.max(Math.floor(this.root.clientHeight / ROW_PX) - 1, 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.length, End: this.length };
    if (event.key in steps) this.move(this.cursor + steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") {
      if (this.cursor >= 0) this.act(this.cursor);
      this.render();
    } else return;
    event.preventDefault();
  }
}

function node(name, kind, ...parts) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.append(...parts.map((part) => (part instanceof Node ? part : document.createTextNode(String(part)))));
  return made;
}

// The parts of a text as elements, with what is searched for marked, also where it goes over several parts.
function marked(parts, wanted) {
  const whole = parts.map(([text]) => text).join("").toLowerCase();
  const found = [];
  for (let at = wanted ? whole.indexOf(wanted) : -1; at >= 0; at = whole.indexOf(wanted, at + wanted.length)) found.push(at);
  let start = 0;
  return parts.map(([text, name, kind]) => {
    const [first, end] = [start, (start += text.length)];
    const pieces = [];
    let from = first;
    for (const at of found) {
      const [low, high] = [Math.max(at, from), Math.min(at + wanted.length, end)];
      if (low >= high) continue;
      pieces.push(text.slice(from - first, low - first), node("mark", "", text.slice(low - first, high - first)));
      from = high;
    }
    return node(name, kind, ...pieces, text.slice(from - first));
  });
}

const INSTRUCTION = /^((?:@!?U?P\w+ )?)([A-Z][\w.]*)/;

// An instruction with its opcode in the colour of its family.
function instruction(text, family, wanted) {
  const [whole, guard, opcode] = INSTRUCTION.exec(text) ?? ["", "", ""];
  const parts = [[guard, "span", "guard"], [opcode, "b", `opcode family${family}`], [text.slice(whole.length), "span", ""]];
  return marked(parts, wanted);
}

function offset(place) {
  return (16 * place).toString(16).padStart(4, "0");
}

function paint(root, colors) {
  for (const [name, color] of Object.entries(colors)) root.style.setProperty(`--${name}`, color);
}

function longest(texts) {
  return texts.reduce((most, text) => Math.max(most, text.length), 0);
}

function legend(names) {
  return names.map((name, place) => node("b", `opcode family${place}`, name));
}

function plural(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
