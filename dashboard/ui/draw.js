// Draws charts in a blank page that holds plotly.js. Python calls `draw`.

const host = document.createElement('div');
const MOST_TURNS = 3;
const MOST_MARGIN = 0.8;  // of the width

async function prepare(css) {
  const style = document.createElement('style');
  style.textContent = css + ' body { margin: 0 } svg { display: block }';
  document.head.append(style);
  document.body.append(host);
  await Promise.all([...document.fonts].map(face => face.load()));
}

const boxOf = element => element.getBoundingClientRect();

// The boxes of all texts of the drawing that is shown. A turned text has a larger box than its letters.
function texts() {
  return [...host.querySelectorAll('text')]
    .filter(text => text.textContent.trim() && getComputedStyle(text).opacity !== '0')
    .map(text => ({ text: text.textContent, box: boxOf(text) }));
}

async function show(figure, size) {
  const options = { format: 'svg', width: size.width, height: size.height, imageDataOnly: true };
  const svg = await Plotly.toImage({ ...figure, config: { plotGlPixelRatio: 4 } }, options);
  host.innerHTML = svg;
  return svg;
}

// Pixels by which texts are cut off at each side.
function cut(size) {
  const over = { l: 0, r: 0, t: 0, b: 0 };
  for (const { box } of texts()) {
    over.l = Math.max(over.l, -box.left);
    over.r = Math.max(over.r, box.right - size.width);
    over.t = Math.max(over.t, -box.top);
    over.b = Math.max(over.b, box.bottom - size.height);
  }
  return over;
}

// A margin grows where texts are cut off, and the figure by as much above and below.
async function fit(figure, size) {
  let svg = await show(figure, size);
  const margin = figure.layout.margin;
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    const over = cut(size);
    const sides = Object.keys(over).filter(side => over[side] > 0.5);
    const across = margin.l + margin.r + over.l + over.r;
    if (!sides.length || across > MOST_MARGIN * size.width) break;
    for (const side of sides) {
      const more = Math.ceil(over[side]) + 2;
      margin[side] += more;
      if (side === 't' || side === 'b') size.height += more;
    }
    svg = await show(figure, size);
  }
  return svg;
}

async function pixels(svg, size, scale) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = Math.round(size.width * scale);
  canvas.height = Math.round(size.height * scale);
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return canvas.toDataURL('image/png').split(',')[1];
}

// The SVG of a figure, with its size in pixels. It stays in the page.
async function draw(text) {
  const figure = JSON.parse(text);
  const size = { width: figure.layout.width, height: figure.layout.height };
  return JSON.stringify({ svg: await fit(figure, size), ...size });
}

async function rasterize(svg, width, height, scale) {
  return pixels(svg, { width, height }, scale);
}
