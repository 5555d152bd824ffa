// Numbers as text, and texts cut to a width. __init__.py joins this file to timeline.js.

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

function unitOf(value) {
  return UNITS.find(([factor]) => Math.abs(value) >= factor) || UNITS[3];
}

function duration(nanoseconds) {
  if (nanoseconds === 0) return "0 ns";
  const [factor, unit] = unitOf(Number(nanoseconds.toPrecision(3)));
  const value = Number((nanoseconds / factor).toPrecision(3));
  const digits = unit === "ns" && Number.isInteger(nanoseconds) ? 0 : Math.max(2 - Math.floor(Math.log10(Math.abs(value) || 1)), 0);
  return `${value.toFixed(digits)} ${unit}`;
}

// A time from the start of the trace, to the nanosecond.
function clock(nanoseconds) {
  const [factor, unit] = unitOf(nanoseconds);
  const digits = Math.round(Math.log10(factor));
  const text = (nanoseconds / factor).toFixed(digits);
  return `${digits ? text.replace(/\.?0+$/, "") : text} ${unit}`;
}

function tickText(value, step) {
  if (value === 0) return "0";
  const [factor, unit] = unitOf(value);
  const digits = Math.max(0, -Math.floor(Math.log10(step / factor) + 1e-9));
  return `${(value / factor).toFixed(digits)} ${unit}`;
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return power * [1, 2, 5, 10].find((each) => each * power >= least);
}

function bytes(count) {
  const [factor, unit] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]].find(([each]) => count >= each) || [1, "B"];
  return `${Number((count / factor).toPrecision(3))} ${unit}`;
}

function percent(share) {
  return `${Number((100 * share).toPrecision(3))} %`;
}

function fitted(text, pixels) {
  const most = Math.floor(pixels / 5.9);
  if (text.length <= most) return text;
  return most < 3 ? "" : `${text.slice(0, most - 1)}…`;
}

function readable(color) {
  const [red, green, blue] = [1, 3, 5].map((place) => parseInt(color.slice(place, place + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 150 ? "#101418" : "#ffffff";
}
