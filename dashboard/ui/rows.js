// A grid of rows that can be opened, sorted and walked through with the arrow keys. Of many rows it draws those that are seen.

const ROW_PX = 28;
const MOST_DRAWN = 200;
const BEYOND = 10; // rows that are drawn above and below those that are seen

const grids = new WeakMap();

export default function ({ parentElement, data, setTriggerValue }) {
  const place = parentElement.querySelector(".rows");
  const grid = grids.get(place) ?? new Grid(place);
  grids.set(place, grid);
  grid.opened = (row) => setTriggerValue("opened", row);
  grid.take(data);
}

class Grid {
  constructor(place) {
    this.place = place;
    this.at = [0, 0]; // the row and the column that have the focus; row -1 is the headings
    this.sorted = [-1, 1]; // a column, and 1 or -1
    place.addEventListener("keydown", (event) => this.press(event));
    place.addEventListener("click", (event) => this.click(event));
    place.addEventListener("scroll", () => this.draw());
  }

  // Rows that are the same stay where they are.
  take(data) {
    const content = JSON.stringify(data);
    if (content === this.content) return;
    this.content = content;
    this.data = data;
    this.at = [Math.min(this.at[0], data.rows.length - 1), Math.min(this.at[1], data.columns.length - 1)];
    const tracks = data.columns.map(({ kind, width }) =>
      kind === "words" || kind === "path" ? `minmax(${width / 2}px, ${width}fr)` : `minmax(${width}px, ${width / 4}fr)`);
    this.place.style.setProperty("--columns", tracks.join(" "));
    this.place.style.maxHeight = `${ROW_PX * (Math.min(data.rows.length, data.most) + 1) + 2}px`;
    this.place.setAttribute("aria-label", `${data.title}. Arrow keys move, Enter opens a row.`);
    this.place.setAttribute("aria-rowcount", data.rows.length + 1);
    this.head = element("div", "head", "row");
    this.head.append(...data.columns.map((each, column) => this.heading(each, column)));
    this.body = element("div", "body", "rowgroup");
    this.place.replaceChildren(this.head, this.body);
    this.sort();
  }

  heading({ label, help, kind }, column) {
    const cell = element("div", kind, "columnheader");
    cell.dataset.at = `-1,${column}`;
    cell.textContent = label;
    if (help) {
      cell.title = help;
      cell.setAttribute("aria-description", help);
    }
    return cell;
  }

  sort() {
    const [column, direction] = this.sorted;
    const every = this.data.rows.map((_, row) => row);
    if (column >= 0 && column < this.data.columns.length) {
      const of = this.data.order[column] ?? this.data.rows.map((row) => row[column]);
      every.sort((a, b) => (of[a] === null) - (of[b] === null) || direction * compared(of[a], of[b]) || a - b);
    }
    this.every = every;
    [...this.head.children].forEach((cell, place) => {
      const way = place === column ? (direction > 0 ? "ascending" : "descending") : "none";
      cell.setAttribute("aria-sort", way);
    });
    this.drawn = null;
    this.draw();
  }

  draw() {
    const number = this.every.length;
    let [first, last] = [0, number];
    if (number > MOST_DRAWN) {
      first = Math.max(Math.floor(this.place.scrollTop / ROW_PX) - BEYOND, 0);
      last = Math.min(first + Math.ceil((this.place.clientHeight || 600) / ROW_PX) + 2 * BEYOND, number);
    }
    if (this.drawn === `${first}-${last}`) return;
    this.drawn = `${first}-${last}`;
    const focused = this.place.getRootNode().activeElement?.dataset.at;
    this.body.style.paddingTop = `${first * ROW_PX}px`;
    this.body.style.paddingBottom = `${(number - last) * ROW_PX}px`;
    this.body.replaceChildren(...this.every.slice(first, last).map((row, place) => this.row(row, first + place)));
    this.mark();
    if (focused) this.cell(...this.at)?.focus({ preventScroll: true });
  }

  row(row, place) {
    const line = element("div", "line", "row");
    line.setAttribute("aria-rowindex", place + 2);
    line.append(...this.data.rows[row].map((value, column) => {
      const { kind } = this.data.columns[column];
      const cell = element("div", kind, "gridcell");
      cell.dataset.at = `${place},${column}`;
      if (kind === "bars") bars(cell, value);
      else {
        const text = element("span");
        text.textContent = value;
        cell.title = value;
        cell.append(text);
      }
      return cell;
    }));
    return line;
  }

  cell(row, column) {
    return this.place.querySelector(`[data-at="${row},${column}"]`);
  }

  // One cell is a stop of the Tab key: the one that had the focus last.
  mark() {
    for (const cell of this.place.querySelectorAll("[data-at]")) cell.tabIndex = -1;
    (this.cell(...this.at) ?? this.cell(-1, this.at[1])).tabIndex = 0;
  }

  press(event) {
    const last = this.every.length - 1;
    const page = Math.max(Math.floor(this.place.clientHeight / ROW_PX) - 2, 1);
    const [row, column] = event.target.dataset.at?.split(",").map(Number) ?? this.at;
    const moves = {
      ArrowDown: [row + 1, column], ArrowUp: [row - 1, column], ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1],
      PageDown: [row + page, column], PageUp: [Math.max(row - page, 0), column],
      Home: event.ctrlKey ? [0, 0] : [row, 0], End: event.ctrlKey ? [last, Infinity] : [row, Infinity],
    };
    if (event.key === "Enter" || event.key === " ") this.act(row, column);
    else if (moves[event.key] && !event.altKey && !event.metaKey) this.go(...moves[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  go(row, column) {
    this.at = [Math.max(Math.min(row, this.every.length - 1), -1), Math.max(Math.min(column, this.data.columns.length - 1), 0)];
    const [top, bottom] = [this.at[0] * ROW_PX, (this.at[0] + 2) * ROW_PX];
    if (this.at[0] >= 0 && top < this.place.scrollTop) this.place.scrollTop = top;
    else if (bottom > this.place.scrollTop + this.place.clientHeight) this.place.scrollTop = bottom - this.place.clientHeight;
    this.draw();
    this.mark();
    this.cell(...this.at)?.focus();
  }

  click(event) {
    const at = event.target.closest("[data-at]")?.dataset.at.split(",").map(Number);
    if (!at || String(this.place.ownerDocument.getSelection())) return; // who selects text does not open its row
    this.at = at;
    this.mark();
    this.act(...at);
  }

  // Open a row. A heading sorts by its column, then the other way, then not.
  act(row, column) {
    if (row >= 0) return this.opened(this.every[row]);
    const [before, direction] = this.sorted;
    this.sorted = before !== column ? [column, 1] : direction > 0 ? [column, -1] : [-1, 1];
    this.sort();
    this.mark();
  }
}

function element(name, kind = "", role = "") {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (role) made.setAttribute("role", role);
  return made;
}

function bars(cell, percents) {
  const words = percents.map((each) => `${each.toPrecision(3)} %`).join(", ");
  const picture = element("div", "picture", "img");
  picture.setAttribute("aria-label", words || "none");
  cell.title = words;
  picture.append(...percents.map((each) => {
    const bar = element("div");
    bar.style.height = `${Math.min(each, 100)}%`;
    return bar;
  }));
  cell.append(picture);
}

function compared(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
