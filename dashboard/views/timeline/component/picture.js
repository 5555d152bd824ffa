// The timeline as a PNG: the meaning of its colours, its axis and all of its lanes.

const KEY_PX = 20;

function savePicture({ data, axis, lanes, font, outer }) {
  const scale = window.devicePixelRatio || 1;
  const picture = document.createElement("canvas");
  const context = picture.getContext("2d");
  context.font = font;
  const keys = [];
  let [x, y] = [8, 0];
  for (const place of data.legend) {
    const wide = context.measureText(data.brief[place]).width + 28;
    if (x + wide > outer && x > 8) [x, y] = [8, y + KEY_PX];
    keys.push({ place, x, y });
    x += wide;
  }
  const top = keys.length ? (y + KEY_PX) * scale : 0;
  picture.width = lanes.width;
  picture.height = top + axis.height + lanes.height;
  context.fillStyle = data.tones.paper;
  context.fillRect(0, 0, picture.width, picture.height);
  context.drawImage(axis, 0, top);
  context.drawImage(lanes, 0, top + axis.height);
  context.scale(scale, scale);
  context.font = font;
  context.textBaseline = "middle";
  for (const { place, x: left, y: above } of keys) {
    context.fillStyle = data.colors[place];
    context.fillRect(left, above + 5, 11, 11);
    context.fillStyle = data.tones.text;
    context.fillText(data.brief[place], left + 16, above + 11);
  }
  const link = document.createElement("a");
  link.download = "timeline.png";
  link.href = picture.toDataURL("image/png");
  link.click();
}
