// The search box: what is typed goes to the server, which counts the hits and leads to the next one.

const TYPED_MS = 250;

class Search {
  constructor(timeline) {
    this.timeline = timeline;
    for (const name of ["text", "regex", "previous", "next", "count"]) this[name] = timeline.root.querySelector(`.search .${name}`);
    this.text.addEventListener("input", () => this.typed());
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.regex.onclick = () => {
      this.press(this.regex.ariaPressed !== "true");
      this.typed(0);
    };
    this.next.onclick = () => this.step(1);
    this.previous.onclick = () => this.step(-1);
  }

  get wanted() {
    return [this.text.value, this.regex.ariaPressed === "true"];
  }

  open() {
    this.text.focus();
    this.text.select();
  }

  press(on) {
    this.regex.ariaPressed = String(on);
  }

  typed(quiet = TYPED_MS) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      this.timeline.ask();
    }, quiet);
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
  take({ text, regex, total, place, error }) {
    if (this.timer) return;
    if (!this.timeline.root.getRootNode().activeElement?.matches(".search .text")) {
      this.text.value = text;
      this.press(regex);
    }
    const [typed, pattern] = this.wanted;
    if (typed.trim() !== text.trim() || pattern !== regex) return;
    const hits = `${total.toLocaleString("en")} ${total === 1 ? "hit" : "hits"}`;
    const found = total && place >= 0 ? `${(place + 1).toLocaleString("en")} of ${total.toLocaleString("en")}` : hits;
    this.count.textContent = !text ? "" : error ? `no pattern: ${error}` : total ? found : "no hits";
    this.count.title = error ? `The text is no regular expression: ${error}` : "";
    this.count.classList.toggle("bad", Boolean(error));
    this.next.disabled = this.previous.disabled = Boolean(text) && !total;
  }
}
