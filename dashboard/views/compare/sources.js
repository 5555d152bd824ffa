// Two sources side by side. Every text is set as text and never as markup.

export default function ({ parentElement, data }) {
  const root = parentElement.querySelector(".sources");
  for (const [name, color] of Object.entries(data.colors)) root.style.setProperty(`--${name}`, color);
  const head = row(data.headings.map((heading) => cell("th", "", [heading], 2)));
  root.querySelector("tbody").replaceChildren(head, ...data.rows.map(drawn));
}

function drawn(line) {
  if (line.skipped) return row([cell("td", "skipped", [`${line.skipped} equal lines`], 4)]);
  return row([...side(line.before, "gone", line.changed), ...side(line.after, "come", line.changed)]);
}

function side(found, kind, changed) {
  if (!found) return [cell("td", "line", []), cell("td", "text", [])];
  const parts = found.parts.map(([text, marked]) => {
    const node = document.createElement(marked ? "mark" : "span");
    node.textContent = text;
    return node;
  });
  return [cell("td", "line", [found.number]), cell("td", changed ? `text ${kind}` : "text", parts)];
}

function row(cells) {
  const made = document.createElement("tr");
  made.replaceChildren(...cells);
  return made;
}

function cell(name, kind, parts, span) {
  const made = document.createElement(name);
  made.className = kind;
  if (span) made.colSpan = span;
  made.replaceChildren(...parts.map((part) => (part instanceof Node ? part : document.createTextNode(String(part)))));
  return made;
}
