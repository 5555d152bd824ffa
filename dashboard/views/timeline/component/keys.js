// The keyboard. Letters and / are taken wherever the page has no input in use, the other keys only on the lanes.

const STEP = 0.12;
const FACTOR = 0.75;

class Keys {
  constructor(timeline) {
    const { search, measure } = timeline;
    this.timeline = timeline;
    this.help = timeline.root.querySelector(".help");
    this.button = timeline.root.querySelector(".keys");
    this.button.onclick = () => this.toggle();
    this.anywhere = {
      "/": () => search.open(), n: () => search.step(1), N: () => search.step(-1), m: () => measure.mark(),
      f: () => timeline.focus(), w: () => timeline.zoom(FACTOR, timeline.pointed), s: () => timeline.zoom(1 / FACTOR, timeline.pointed),
      a: () => timeline.pan(-STEP), d: () => timeline.pan(STEP), "?": () => this.toggle(),
    };
    this.onLanes = {
      ArrowLeft: () => timeline.pan(-0.2), ArrowRight: () => timeline.pan(0.2), "+": () => timeline.zoom(0.5),
      "=": () => timeline.zoom(0.5), "-": () => timeline.zoom(2), 0: () => timeline.fit(), Home: () => timeline.fit(),
      ArrowUp: () => (timeline.scroll.scrollTop -= 40), ArrowDown: () => (timeline.scroll.scrollTop += 40),
    };
    this.heard = (event) => this.hear(event);
  }

  // Called with each answer: the browser keeps one listener, and drops it when the page is left.
  listen() {
    document.addEventListener("keydown", this.heard);
  }

  toggle(shown = this.help.hidden) {
    this.help.hidden = !shown;
    this.button.ariaExpanded = String(shown);
  }

  hear(event) {
    const { timeline } = this;
    if (!timeline.root.isConnected) {
      document.removeEventListener("keydown", this.heard);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !timeline.data) return;
    const [target] = event.composedPath();
    if (target.matches?.("input, textarea, select, [contenteditable=true], [role=combobox], [role=dialog] *")) return;
    const inside = timeline.root.contains(target);
    const act = this.anywhere[event.key] || (target === timeline.lanes && this.onLanes[event.key]);
    if (act) {
      event.preventDefault();
      act();
    } else if (event.key === "Escape" && (inside || target === document.body)) {
      this.toggle(false);
      timeline.drop();
    }
  }
}
