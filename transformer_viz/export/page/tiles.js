// All heads of a kind as small maps, one button each. A map with more cells than its tile has pixels shows the strongest
// cell of each pixel: leaving cells out would tear lines apart.

const LEAST_TILE_PX = 40;

class Mosaic {
  constructor(kindName, kind, choose) {
    this.kind = kind;
    this.kindName = kindName;
    this.root = element("section", "mosaic");
    this.root.append(element("h2", "", kind.title + kind.coloured));
    this.grid = element("div", "tiles");
    this.grid.style.setProperty("--heads", kind.heads);
    this.grid.style.setProperty("--shape", `${kind.columns} / ${kind.rows}`);
    this.tiles = [];
    for (let layer = 0; layer < kind.layers; layer++) {
      for (let head = 0; head < kind.heads; head++) {
        const button = element("button", "tile");
        button.type = "button";
        // The boxes are the keyboard's way: a hundred tab stops would be none.
        button.tabIndex = -1;
        button.title = `${kind.title}, ${kind.names[layer][head]}`;
        button.setAttribute("aria-label", button.title);
        button.append(element("span", "", kind.labels[layer][head]), document.createElement("canvas"));
        button.addEventListener("click", () => choose(kindName, layer, head));
        this.grid.append(button);
        this.tiles.push({ layer, head, button, canvas: button.lastChild });
      }
    }
    this.root.append(this.grid);
  }

  // `colours` has the scale as rgb and the masked colour; gives how many cells one pixel stands for, at most.
  draw(colours) {
    const table = shades(colours.scale);
    const grey = rgb(colours.masked), empty = rgb(colours.paper);
    const [tile] = this.tiles;
    const ratio = window.devicePixelRatio || 1;
    const box = tile.canvas.getBoundingClientRect();
    const across = Math.max(LEAST_TILE_PX, Math.round(box.width * ratio));
    const down = Math.max(LEAST_TILE_PX, Math.round(box.height * ratio));
    const width = Math.min(this.kind.columns, across), height = Math.min(this.kind.rows, down);
    for (const { layer, head, canvas } of this.tiles) {
      canvas.width = width;
      canvas.height = height;
      const context = canvas.getContext("2d");
      const image = context.createImageData(width, height);
      const weights = this.kind.tile(layer, head), reasons = this.kind.reasonsOf(layer, head);
      const share = shareOf(this.kind, layer, head);
      for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) {
          const weight = this.strongest(weights, reasons, x, y, width, height);
          const shade = weight === null ? grey : Number.isNaN(weight) ? empty : table[Math.round(Math.min(1, share(weight)) * 255)];
          image.data.set([...shade, 255], 4 * (y * width + x));
        }
      }
      context.putImageData(image, 0, 0);
    }
    return Math.ceil(this.kind.columns / width) * Math.ceil(this.kind.rows / height);
  }

  // The largest allowed weight of the cells that a pixel covers; null where all are masked.
  strongest(weights, reasons, x, y, width, height) {
    const { rows, columns } = this.kind;
    let most = null;
    for (let row = Math.floor(y * rows / height); row < Math.ceil((y + 1) * rows / height); row++) {
      for (let column = Math.floor(x * columns / width); column < Math.ceil((x + 1) * columns / width); column++) {
        const i = row * columns + column;
        if (!reasons[i] && !(most >= weights[i])) most = weights[i];
      }
    }
    return most;
  }

  mark(focus) {
    for (const { layer, head, button } of this.tiles) {
      const isOn = focus.kind === this.kindName && focus.layer === layer && (focus.head === head || !Number.isInteger(focus.head));
      button.setAttribute("aria-pressed", String(isOn));
    }
  }
}

// How far along the colours a weight of a head is. The logarithmic ones begin at 0.0001.
function shareOf(kind, layer, head) {
  if (kind.colouring === "log") return (weight) => 1 + Math.log10(Math.max(1e-4, weight)) / 4;
  const most = kind.colouring === "head" ? kind.mostOf(layer, head) : 1;
  return (weight) => weight / most;
}

function shades(scale) {
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (scale.length - 1), low = Math.min(scale.length - 2, Math.floor(at));
    return scale[low].map((part, channel) => Math.round(part + (at - low) * (scale[low + 1][channel] - part)));
  });
}

function rgb(colour) {
  return [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}
