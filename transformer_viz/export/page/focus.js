// The focus map with the candidates, the numbers filled into the figure that Python laid out. What it draws at a step
// is what `figures.player` draws there: at step t the rows after t are blank.

function focusFigure(kind, { layer, head, step }, parts, run, colours) {
  const { rows, columns } = kind;
  const until = kind.picture.grows ? step + 1 : rows;
  const weights = kind.weightsOf(layer, head), reasons = kind.reasonsOf(layer, head);
  const grid = (pick) => Array.from({ length: rows }, (_, row) => Float32Array.from({ length: columns }, (_, column) =>
    row < until ? pick(row * columns + column) : NaN));
  const data = [{ ...parts.weights, z: grid((i) => (reasons[i] ? NaN : weights[i])) }];
  for (const code of kind.codes) data.push({ ...parts.masked[code], z: grid((i) => (reasons[i] === code ? 1 : NaN)) });
  if (kind.codes.length) data.push({ ...parts.hatch, ...outline(reasons, columns, until) });
  if (parts.row) data.push({ ...parts.row, ...rowOutline(columns, step) });
  data.push(rings(parts.rings, kind.linked.kind === "cross" ? run.true : [], step));
  const layout = { ...parts.layout };
  if (kind.colouring === "head") layout.coloraxis = upTo(kind.mostOf(layer, head), parts.layout.coloraxis);
  if (parts.bars) {
    const { x, text, textposition, customdata, names, chosen } = run.candidates[step];
    const places = x.map((_, place) => place);
    const marker = { color: chosen.map((is) => (is ? colours.chosen : colours.other)) };
    data.push({ ...parts.bars, x, y: places, text, textposition, customdata, marker });
    layout.yaxis2 = { ...layout.yaxis2, tickvals: places, ticktext: names };
  }
  data.push(...parts.colourBar);
  return { data, layout };
}

// A colour axis whose last colour is this weight.
function upTo(most, axis) {
  const ticktext = ["0", short(most / 2), short(most)];
  return { ...axis, cmax: most, colorbar: { ...axis.colorbar, tickvals: [0, most / 2, most], ticktext } };
}

function short(number) {
  return String(Number(number.toPrecision(2)));
}

// Rectangles around each row's runs of masked cells, null between two.
function outline(reasons, columns, until) {
  const x = [], y = [];
  for (let row = 0; row < until; row++) {
    for (let column = 0; column < columns; column++) {
      if (!reasons[row * columns + column]) continue;
      const left = column - 0.5;
      while (column < columns && reasons[row * columns + column]) column++;
      const right = column - 0.5;
      x.push(left, right, right, left, left, null);
      y.push(row - 0.5, row - 0.5, row + 0.5, row + 0.5, row - 0.5, null);
    }
  }
  return { x, y };
}

function rowOutline(columns, step) {
  const right = columns - 0.5, top = step - 0.5, bottom = step + 0.5;
  return { x: [-0.5, right, right, -0.5, -0.5], y: [top, top, bottom, bottom, top] };
}

// A thin ring around the true key of every row that has happened, thicker in this one.
function rings(template, trueKeys, step) {
  const marked = trueKeys.map((key, t) => [key, t]).filter(([key, t]) => key !== null && t <= step);
  const width = marked.map(([, t]) => (t === step ? 3 : 1.5));
  const marker = { ...template.marker, line: { ...template.marker.line, width } };
  return { ...template, x: marked.map(([key]) => key), y: marked.map(([, t]) => t), marker };
}
