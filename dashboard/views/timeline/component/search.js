// The search box: what is typed goes to the server, which counts the hits and leads to the next one.

const TYPED_MS = 250;

class Search {
  constructor(timeline) {
    this.timeline = timeline;
    for (const name of ["text", "previous", "next", "count"]) this[name] = timeline.root.querySelector(`.search .${name}`);
    this.text.addEventListener("input", () => this.typed());
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.next.onclick = () => this.step(1);
    this.previous.onclick = () => this.step(-1);
  }

  get wanted() {
    return this.text.value;
  }

  open() {
    this.text.focus();
    this.text.select();
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      this.timeline.ask();
    }, TYPED_MS);
    this.count.textContent = this.text.value ? "…" : "";
  }

  key(event) {
    // Streamlit has keys of its own, such as r and c, and cannot see that this is an input.
    event.stopPropagation();
    if (event.key === "Enter") {
      event.preventDefault();
      this.step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      // Without this, the browser empties the box.
      event.preventDefault();
      this.timeline.lanes.focus();
    }
  }

  step(by) {
    if (!this.text.value) return this.open();
    clearTimeout(this.timer);
    this.timer = null;
    return this.timeline.ask({ step: by });
  }

  // An answer of the server. What was typed since it was asked stays.
  take({ text, total, place }) {
    if (this.timer) return;
    if (!this.timeline.root.getRootNode().activeElement?.matches(".search .text")) this.text.value = text;
    if (this.wanted.trim() !== text.trim()) return;
    const hits = `${total.toLocaleString("en")} ${total === 1 ? "hit" : "hits"}`;
    const found = total && place >= 0 ? `${(place + 1).toLocaleString("en")} of ${total.toLocaleString("en")}` : hits;
    this.count.textContent = !text ? "" : total ? found : "no hits";
    this.next.disabled = this.previous.disabled = Boolean(text) && !total;
  }
}
