// A figure drawn on one canvas, for those that consist of maps, lines, marks, words and lying bars: a fifth of the time that
// plotly.js takes. It reads Plotly's figures, of which it knows what attention maps, masks and search trees use, and asks for no
// file. Put before the chart.
//
// `data` and `layout` of the host are the figure, as with Plotly; `__picture.texts` is every text that was drawn, with its box.

const LABEL_GAP = 4, LINE = 1.25, TITLE_GAP = 6, TEXT_GAP = 4;
const LEGEND = { sign: 30, gap: 20, line: 20 };
// How far from a mark a hand still means it, in pixels.
const REACH = 20;
const NAME_OF_AXIS = /^([xy])axis(\d*)$/;

class Picture {
  constructor(host) {
    this.host = host;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.canvas.style.cssText = "display: block; max-width: 100%;";
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    host.replaceChildren(this.canvas, this.tip);
    host.addEventListener("pointermove", (event) => this.point(event));
    host.addEventListener("pointerleave", () => (this.tip.hidden = true));
    // Paper has finer dots than a screen.
    this.listeners = new AbortController();
    const { signal } = this.listeners;
    window.addEventListener("beforeprint", () => this.paint(3), { signal });
    window.addEventListener("afterprint", () => this.paint(), { signal });
    document.fonts.addEventListener("loadingdone", () => this.paint(), { signal });
  }

  show(figure, width) {
    Object.assign(this.host, { data: figure.data, layout: figure.layout });
    this.width = width;
    this.tip.hidden = true;
    this.paint();
  }

  // A frame: other numbers in some traces, other names on an axis.
  update(frame) {
    const { data, layout } = this.host;
    frame.data.forEach((changes, place) => Object.assign(data[frame.traces[place]], changes));
    for (const [name, changes] of Object.entries(frame.layout ?? {})) Object.assign(layout[name], changes);
    this.tip.hidden = true;
    this.paint();
  }

  end() {
    this.listeners.abort();
  }

  paint(ratio = window.devicePixelRatio || 1) {
    const { canvas, width, host: { data, layout } } = this, { height } = layout;
    if (!data || !width) return;
    [this.ratio, this.texts] = [ratio, []];
    Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    canvas.style.width = `${width}px`;
    this.context = canvas.getContext("2d", { alpha: false });
    this.context.scale(ratio, ratio);
    this.context.fillStyle = layout.paper_bgcolor;
    this.context.fillRect(0, 0, width, height);
    this.family = layout.font.family;
    this.axes = this.arranged();
    const isAbove = (trace) => (trace.zorder ?? 0) > 0;
    for (const axis of Object.values(this.axes)) this.grid(axis);
    // Of two maps that lie upon each other the first is the upper one, as in what a hand asks.
    for (const trace of data.filter(isMap).filter((trace) => !isAbove(trace)).reverse()) this.map(trace);
    for (const trace of data.filter(isMap)) this.gaps(trace);
    for (const trace of data) DRAWS[trace.type]?.call(this, trace);
    for (const trace of data.filter(isMap).filter(isAbove)) this.map(trace);
    for (const shape of layout.shapes ?? []) this.shape(shape);
    for (const axis of Object.values(this.axes)) this.labels(axis);
    for (const words of layout.annotations ?? []) this.annotation(words);
    this.legend();
    for (const name of Object.keys(layout).filter((name) => name.startsWith("coloraxis"))) this.bar(layout[name]);
    if (layout.title?.text) this.title(layout.title);
  }

  // ---- where everything is

  // Every axis with its two ends in pixels. The labels are measured, and the maps have what they leave.
  arranged() {
    const { width, host: { layout } } = this, { height, margin } = layout;
    const found = Object.entries(layout).flatMap(([key, axis]) => {
      const [, letter, number] = NAME_OF_AXIS.exec(key) ?? [];
      if (!letter) return [];
      const other = layout[`${letter === "x" ? "y" : "x"}axis${number}`];
      return [{ ...axis, letter, name: letter + number, domain: axis.domain ?? [0, 1], crossed: other?.domain ?? [0, 1] }];
    });
    const grows = (axis) => isShown(axis) && axis.automargin;
    const room = (axes, least, length, end) => Math.max(least, ...axes.filter(grows).map((axis) => {
      const [start] = axis.crossed;
      return (this.depth(axis) - start * (length - end)) / (1 - start);
    }));
    const rows = found.filter(({ letter }) => letter === "y"), columns = found.filter(({ letter }) => letter === "x");
    const area = { left: room(rows, rows.some(grows) ? 0 : margin.l, width, margin.r) };
    area.width = width - area.left - margin.r;
    this.entries = layout.showlegend ? this.entriesIn(area.width) : [];
    area.top = Math.max(margin.t, ...this.entries.map(({ line }) => (line + 1) * LEGEND.line));
    for (const axis of columns) {
      Object.assign(axis, { from: area.left + axis.domain[0] * area.width, to: area.left + axis.domain[1] * area.width });
      axis.isUpright = isShown(axis) && this.isUpright(axis);
    }
    area.height = height - area.top - room(columns, columns.some(grows) ? 0 : margin.b, height, area.top);
    for (const axis of rows) {
      const at = (share) => area.top + (1 - share) * area.height;
      Object.assign(axis, { from: at(axis.domain[0]), to: at(axis.domain[1]) });
    }
    this.area = area;
    return Object.fromEntries(found.map((axis) => [axis.name, axis]));
  }

  // How far labels and title reach out from an axis.
  depth(axis) {
    const { size } = axis.tickfont, lies = axis.letter === "x" && !axis.isUpright;
    const labels = lies ? LINE * size : Math.max(0, ...(axis.ticktext ?? []).map((text) => this.measure(text, axis.tickfont)));
    const title = axis.title?.text ? TITLE_GAP + LINE * axis.title.font.size : 0;
    return LABEL_GAP + (axis.ticklabelstandoff ?? 0) + labels + title;
  }

  isUpright(axis) {
    if (axis.tickangle !== undefined) return axis.tickangle === -90;
    const [first, second] = (axis.tickvals ?? []).map((value) => this.at(axis, value));
    return Math.max(0, ...(axis.ticktext ?? []).map((text) => this.measure(text, axis.tickfont))) + TEXT_GAP > Math.abs(second - first);
  }

  at(axis, value) {
    const [first, last] = axis.range, place = axis.type === "log" ? Math.log10(value) : value;
    return axis.from + (axis.to - axis.from) * (place - first) / (last - first);
  }

  axesOf(trace) {
    return [this.axes[trace.xaxis ?? "x"], this.axes[trace.yaxis ?? "y"]];
  }

  // As `areas` of the clicks has them.
  areas() {
    const { left, top } = this.host.getBoundingClientRect();
    return Object.values(this.axes).filter(({ letter }) => letter === "x").map((x) => {
      const y = this.axes[x.name.replace("x", "y")], [low, high] = [Math.min(y.from, y.to), Math.max(y.from, y.to)];
      const on = (axis, origin) => (value) => origin + axis.from + (axis.to - axis.from) * (value - axis.range[0]) / (axis.range[1] - axis.range[0]);
      const back = (axis, pixel) => axis.range[0] + (axis.range[1] - axis.range[0]) * (pixel - axis.from) / (axis.to - axis.from);
      return {
        name: x.name + y.name,
        box: new DOMRect(left + x.from, top + low, x.to - x.from, high - low),
        right: on(x, left),
        down: on(y, top),
        x: (event) => back(x, event.clientX - left),
        y: (event) => back(y, event.clientY - top),
      };
    });
  }

  // ---- maps

  map(trace) {
    const { values, rows, columns } = cellsOf(trace.z);
    if (!rows || !columns) return;
    const { left, top, across, down } = this.boxOf(trace, rows, columns);
    const size = [Math.min(columns, Math.max(1, Math.ceil(across * this.ratio))), Math.min(rows, Math.max(1, Math.ceil(down * this.ratio)))];
    const strongest = size[0] < columns || size[1] < rows ? pooled(values, rows, columns, size) : values;
    const image = new ImageData(...size), dots = new Uint32Array(image.data.buffer);
    const { shade, least, most } = this.colours(trace);
    for (let i = 0; i < dots.length; i += 1) {
      // No number draws nothing: its dot stays transparent.
      const value = strongest[i];
      if (value === value) dots[i] = shade(Math.max(0, Math.min(1, (value - least) / (most - least || 1))));
    }
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(small(image), 0, 0, ...size, left, top, across, down);
  }

  // In whole pixels.
  boxOf(trace, rows, columns) {
    const [x, y] = this.axesOf(trace), { x0 = 0, dx = 1 } = trace;
    const [left, top, right, bottom] = [this.at(x, x0 - dx / 2), this.at(y, -0.5), this.at(x, x0 + (columns - 0.5) * dx), this.at(y, rows - 0.5)].map(Math.round);
    return { left, top, across: right - left, down: bottom - top };
  }

  colours(trace) {
    const axis = trace.coloraxis ? this.host.layout[trace.coloraxis] : null;
    const { colorscale } = axis ?? trace;
    return { shade: shadeOf(colorscale), least: axis?.cmin ?? trace.zmin ?? 0, most: axis?.cmax ?? trace.zmax ?? 1 };
  }

  // What lies between the cells is paper: the first dot of each but the first one of a row or column.
  gaps(trace) {
    if (!trace.xgap) return;
    const { rows, columns } = cellsOf(trace.z), { left, top, across, down } = this.boxOf(trace, rows, columns), { context, ratio } = this;
    const dot = (place) => Math.ceil(place * ratio - 0.5) / ratio;
    context.fillStyle = this.host.layout.plot_bgcolor;
    for (let column = 1; column < columns; column += 1) context.fillRect(dot(left + column * across / columns), top, trace.xgap, down);
    for (let row = 1; row < rows; row += 1) context.fillRect(left, dot(top + row * down / rows), across, trace.ygap);
  }

  // ---- lines, marks, words

  scatter(trace) {
    const [x, y] = this.axesOf(trace), has = (part) => (trace.mode ?? "lines").includes(part);
    const points = (trace.x ?? []).map((value, place) => (value === null ? null : [this.at(x, value), this.at(y, trace.y[place])]));
    if (!points.some(Boolean)) return;
    if (has("lines")) this.line(points, trace);
    if (has("markers")) points.forEach(([left, top], place) => this.mark(left, top, each(trace.marker, place)));
    if (has("text")) points.forEach(([left, top], place) => this.caption(left, top, trace, place));
  }

  line(points, { fill, line, ...trace }) {
    const { context } = this, path = new Path2D();
    points.forEach((point, place) => point && (points[place - 1] ? path.lineTo(...point) : path.moveTo(...point)));
    if (fill === "toself") this.fill(path, trace);
    if (!line?.width) return;
    const dot = Math.max(3, line.width);
    context.setLineDash(line.dash === "dot" ? [dot, dot] : []);
    Object.assign(context, { strokeStyle: line.color, lineWidth: line.width, lineJoin: "miter" });
    context.stroke(path);
    context.setLineDash([]);
  }

  // The text of a point: on it, above it, or before it.
  caption(left, top, { text, textfont, textposition, marker }, place) {
    if (!text[place]) return;
    const font = { ...this.host.layout.font, ...each(textfont, place) }, position = oneOf(textposition, place) ?? "middle center";
    const away = marker ? oneOf(marker.size, place) / 2 + TEXT_GAP / 2 : 0;
    const up = position.startsWith("top") ? away + 0.7 * font.size : 0, align = position.endsWith("left") ? "right" : "center";
    this.write(text[place], left, top - up, font, { align });
  }

  fill(path, { fillpattern, fillcolor }) {
    this.context.fillStyle = fillpattern ? hatch(this.context, fillpattern, this.ratio) : fillcolor;
    this.context.fill(path);
  }

  mark(left, top, { size, color, symbol = "circle", opacity = 1, line }) {
    const { context } = this, half = size / 2, isOpen = symbol.endsWith("-open"), path = new Path2D();
    if (symbol.startsWith("square")) path.rect(left - half, top - half, size, size);
    else if (symbol.startsWith("diamond")) {
      const reach = half * 1.3;
      [[0, -1], [1, 0], [0, 1], [-1, 0]].forEach(([x, y]) => path.lineTo(left + x * reach, top + y * reach));
      path.closePath();
    } else path.arc(left, top, half, 0, 2 * Math.PI);
    context.globalAlpha = opacity;
    if (!isOpen) {
      context.fillStyle = color;
      context.fill(path);
    }
    Object.assign(context, { strokeStyle: isOpen ? color : line?.color, lineWidth: line?.width ?? 0 });
    if (line?.width) context.stroke(path);
    context.globalAlpha = 1;
  }

  // Lying bars, each with its number in it or after it.
  bars(trace) {
    const [x, y] = this.axesOf(trace), { context } = this;
    (trace.x ?? []).forEach((value, place) => {
      const [low, high] = [trace.y[place] - trace.width / 2, trace.y[place] + trace.width / 2].map((end) => this.at(y, end)).sort((a, b) => a - b);
      const end = Math.max(x.from, this.at(x, value)), isInside = trace.textposition[place] === "inside";
      const color = trace.marker.color[place], ink = isInside ? contrast(color) : this.host.layout.font.color;
      context.fillStyle = color;
      context.fillRect(x.from, low, end - x.from, high - low);
      const left = isInside ? end - TEXT_GAP : end + TEXT_GAP;
      this.write(trace.text[place], left, (low + high) / 2, { ...trace.textfont, color: ink }, { align: isInside ? "right" : "left" });
    });
  }

  // ---- around the maps

  shape({ xref, yref, x0, x1, y0, y1, line }) {
    const [x, y] = [this.axes[xref], this.axes[yref]], [left, right] = [x0, x1].map((value) => this.at(x, value));
    const [top, bottom] = [y0, y1].map((value) => this.at(y, value));
    Object.assign(this.context, { strokeStyle: line.color, lineWidth: line.width });
    this.context.strokeRect(left, top, right - left, bottom - top);
  }

  // Words at a share of the area, above or below that place.
  annotation({ text, x, y, yanchor, yshift = 0, font }) {
    const { area } = this, half = LINE * font.size / 2;
    const down = area.top + (1 - y) * area.height - yshift + (yanchor === "top" ? half : -half);
    this.write(text, area.left + x * area.width, down, font, { align: "left", kind: "annotation" });
  }

  // Where the signs of the legend stand, in as many lines as they need.
  entriesIn(width) {
    const { data, layout } = this.host, font = { ...layout.font, ...layout.legend.font };
    const shown = data.filter((trace) => trace.name && trace.showlegend !== false && trace.type === "scatter");
    let line = 0, left = 0;
    return shown.map((trace) => {
      const room = LEGEND.sign + this.measure(trace.name, font) + LEGEND.gap;
      if (left && left + room > width) [line, left] = [line + 1, 0];
      const entry = { trace, font, line, left };
      left += room;
      return entry;
    });
  }

  legend() {
    const { area } = this, n = Math.max(0, ...this.entries.map(({ line }) => line + 1));
    for (const { trace, font, line, left } of this.entries) {
      const down = area.top - (n - line - 0.5) * LEGEND.line, right = area.left + left;
      this.mark(right + LEGEND.sign / 2, down, { ...each(trace.marker, 0), size: Math.min(...[trace.marker.size].flat()) });
      this.write(trace.name, right + LEGEND.sign, down, font, { align: "left", kind: "legend" });
    }
  }

  grid(axis) {
    if (isShown(axis) && axis.showline && axis.letter === "x") {
      const { from, to } = this.axes[axis.name.replace("x", "y")];
      Object.assign(this.context, { strokeStyle: axis.linecolor, lineWidth: 1 });
      this.context.strokeRect(axis.from - 0.5, to - 0.5, axis.to - axis.from + 1, from - to + 1);
    }
    if (!isShown(axis) || !axis.gridcolor || axis.showgrid === false) return;
    const other = this.axes[axis.name.replace(/[xy]/, (letter) => (letter === "x" ? "y" : "x"))];
    const start = Math.min(other.from, other.to), length = Math.abs(other.from - other.to);
    this.context.fillStyle = axis.gridcolor;
    for (const value of axis.tickvals) {
      const at = Math.round(this.at(axis, value));
      this.context.fillRect(...(axis.letter === "x" ? [at, start, 1, length] : [start, at, length, 1]));
    }
  }

  labels(axis) {
    if (!isShown(axis)) return;
    const isX = axis.letter === "x", other = this.axes[axis.name.replace(/[xy]/, isX ? "y" : "x")];
    const gap = LABEL_GAP + (axis.ticklabelstandoff ?? 0), { size } = axis.tickfont;
    const edge = isX ? Math.max(other.from, other.to) : other.from;
    const room = Math.abs(this.at(axis, axis.tickvals?.[1]) - this.at(axis, axis.tickvals?.[0]));
    // Where cells are lower than letters, which fill nine tenths of their line, some labels are left out.
    const every = isX && !axis.isUpright ? 1 : Math.max(1, Math.ceil(0.9 * size / room) || 1);
    const names = axis.showticklabels === false ? [] : axis.ticktext ?? [];
    names.forEach((text, place) => {
      if (place % every) return;
      const at = this.at(axis, axis.tickvals[place]), kind = `${axis.name}tick`;
      if (!isX) this.write(text, edge - gap, at, axis.tickfont, { align: "right", kind });
      else if (axis.isUpright) this.write(text, at, edge + gap, axis.tickfont, { align: "right", angle: -90, kind });
      else this.write(text, at, edge + gap + size / 2, axis.tickfont, { kind });
    });
    if (!axis.title?.text) return;
    const { text, font } = axis.title, away = edge + (isX ? 1 : -1) * (this.depth(axis) - LINE * font.size / 2), middle = (axis.from + axis.to) / 2;
    const kind = `${axis.name}title`;
    if (isX) this.write(text, this.inside(middle, this.measure(text, font)), away, font, { kind });
    else this.write(text, away, middle, font, { angle: -90, kind });
  }

  inside(middle, width) {
    return Math.min(middle, this.width - width / 2 - 2);
  }

  bar({ colorbar, colorscale, cmin, cmax, showscale }) {
    if (!colorbar || showscale === false) return;
    if (colorbar.orientation === "h") {
      this.lyingBar(colorbar, colorscale);
      return;
    }
    const { context, area } = this, { thickness, title, tickfont } = colorbar, top = area.top + LINE * title.font.size + TITLE_GAP;
    const left = area.left + colorbar.x * area.width + 10, height = colorbar.len * area.height - (top - area.top);
    const colours = context.createLinearGradient(0, top + height, 0, top);
    for (const [share, colour] of colorscale) colours.addColorStop(share, colour);
    context.fillStyle = colours;
    context.fillRect(left, top, thickness, height);
    this.write(title.text, left, area.top + LINE * title.font.size / 2, title.font, { align: "left", kind: "bar" });
    colorbar.tickvals.forEach((value, place) => {
      const text = colorbar.ticktext?.[place] ?? String(value), down = top + height * (cmax - value) / (cmax - cmin || 1);
      this.write(text, left + thickness + TEXT_GAP, down, tickfont, { align: "left", kind: "bar" });
    });
  }

  // Above the right end of a map, its numbers between both.
  lyingBar({ x, y, ypad, len, thickness, tickfont, ticktext, outlinewidth, outlinecolor }, colorscale) {
    const { context, area } = this, width = len * area.width, right = area.left + x * area.width, left = right - width;
    const bottom = area.top + (1 - y) * area.height - ypad - LINE * tickfont.size, top = bottom - thickness;
    const colours = context.createLinearGradient(left, 0, right, 0);
    for (const [share, colour] of colorscale) colours.addColorStop(share, colour);
    context.fillStyle = colours;
    context.fillRect(left, top, width, thickness);
    Object.assign(context, { strokeStyle: outlinecolor, lineWidth: outlinewidth });
    if (outlinewidth) context.strokeRect(left, top, width, thickness);
    ticktext.forEach((text, place) => {
      const at = left + width * place / (ticktext.length - 1);
      this.write(text, at, bottom + LINE * tickfont.size / 2, tickfont, { kind: "bar" });
    });
  }

  title({ text, font }) {
    this.write(text, this.width / 2, TITLE_GAP + font.size / 2, font, { kind: "title" });
  }

  // ---- texts

  // The runs of a label: Plotly's are markup, in which a token is escaped.
  write(text, left, top, { size, color }, { align = "center", angle = 0, kind = "text" } = {}) {
    const { context } = this, parts = runsOf(text), width = this.measure(text, { size });
    context.save();
    context.translate(left, top);
    context.rotate(angle * Math.PI / 180);
    Object.assign(context, { fillStyle: color, textAlign: "left", textBaseline: "middle", direction: "ltr" });
    let along = { left: 0, center: -width / 2, right: -width }[align];
    for (const { words, isBold, isRaised } of parts) {
      context.font = this.font(isRaised ? size * 0.7 : size, isBold);
      context.fillText(words, along, isRaised ? -size * 0.35 : size * 0.04);
      along += context.measureText(words).width;
    }
    context.restore();
    const start = { left: 0, center: -width / 2, right: -width }[align];
    const box = angle ? [left - size / 2, top - start - width, size, width] : [left + start, top - size / 2, width, size];
    this.texts.push({ kind, text: parts.map(({ words }) => words).join(""), box });
  }

  measure(text, { size }) {
    return runsOf(text).reduce((width, { words, isBold, isRaised }) => {
      this.context.font = this.font(isRaised ? size * 0.7 : size, isBold);
      return width + this.context.measureText(words).width;
    }, 0);
  }

  font(size, isBold) {
    return `${isBold ? "bold " : ""}${size}px ${this.family}`;
  }

  // ---- the words at the hand

  point(event) {
    const near = this.nearest(event), found = near ? this.said(near) : this.under(event);
    this.canvas.style.cursor = near?.trace.customdata ? "pointer" : "";
    this.tip.hidden = !found;
    if (!found) return;
    this.tip.replaceChildren(...found.split("<br>").map((line) => {
      const row = document.createElement("div");
      row.append(...runsOf(line).map(({ words, isBold }) => {
        const piece = document.createElement(isBold ? "b" : "span");
        piece.textContent = words;
        return piece;
      }));
      return row;
    }));
    const { left, top, width, height } = this.host.getBoundingClientRect(), [right, down] = [event.clientX - left, event.clientY - top];
    Object.assign(this.tip.style, right < width / 2 ? { left: `${right + 14}px`, right: "auto" } : { left: "auto", right: `${width - right + 14}px` });
    Object.assign(this.tip.style, down < height / 2 ? { top: `${down + 14}px`, bottom: "auto" } : { top: "auto", bottom: `${height - down + 14}px` });
  }

  // The mark that is meant, if it says anything, and which point of its trace it is.
  nearest(event) {
    if (!this.axes) return null;
    const { left, top } = this.host.getBoundingClientRect(), [right, down] = [event.clientX - left, event.clientY - top];
    let found = null, least = REACH;
    for (const trace of this.host.data) {
      if (trace.type !== "scatter" || !trace.hovertemplate) continue;
      const [x, y] = this.axesOf(trace);
      trace.x.forEach((value, place) => {
        const away = Math.hypot(this.at(x, value) - right, this.at(y, trace.y[place]) - down);
        if (away <= least) [least, found] = [away, { trace, place }];
      });
    }
    return found;
  }

  said({ trace: { hovertemplate, hovertext }, place }) {
    return filled(hovertemplate, { hovertext: oneOf(hovertext, place) });
  }

  // The hover of the cell or bar under the pointer, as markup; null where there is none.
  under(event) {
    const area = this.axes && this.areas().find(({ box }) => {
      return event.clientX >= box.left && event.clientX < box.right && event.clientY >= box.top && event.clientY < box.bottom;
    });
    if (!area) return null;
    const [column, row] = [area.x(event), area.y(event)].map(Math.round), { data, layout } = this.host;
    // Labels alone may not tell tokens apart.
    const named = (axis, name, place) => label(axis, place) + (layout.meta?.ids?.[name][place] ?? "");
    for (const trace of data.filter((trace) => areaOf(trace) === area.name && trace.hoverinfo !== "skip")) {
      const [x, y] = axesOf(this.host, trace);
      if (trace.type === "bar" && trace.customdata?.[row]) return filled(trace.hovertemplate, { customdata: trace.customdata[row] });
      if (!isMap(trace)) continue;
      const { values, rows, columns } = cellsOf(trace.z), place = columns === 1 ? 0 : column;
      const z = row >= 0 && row < rows && place >= 0 && place < columns ? values[row * columns + place] : NaN;
      if (Number.isNaN(z)) continue;
      if (trace.hoverinfo === "none") return null;
      return filled(trace.hovertemplate, { x: named(x, "x", column), y: named(y, "y", row), z, text: trace.text?.[row]?.[column] });
    }
    return null;
  }
}

const DRAWS = { scatter: Picture.prototype.scatter, bar: Picture.prototype.bars };

const isMap = (trace) => trace.type === "heatmap";
const isShown = (axis) => axis.visible !== false;

// The properties of one point: some are a list with one for each.
function each(properties = {}, place) {
  const found = Object.entries(properties).map(([name, value]) => [name, name === "line" ? each(value, place) : oneOf(value, place)]);
  // Marks of many sizes let those below shine through, as with Plotly.
  return { ...(Array.isArray(properties.size) ? { opacity: 0.7 } : {}), ...Object.fromEntries(found) };
}

function oneOf(value, place) {
  return Array.isArray(value) ? value[place] : value;
}

// One canvas for all small pictures, in the computer's own memory: nobody but another canvas sees it.
const SMALL = document.createElement("canvas");

function small(image) {
  const width = Math.max(SMALL.width, image.width), height = Math.max(SMALL.height, image.height);
  if (width !== SMALL.width || height !== SMALL.height) Object.assign(SMALL, { width, height });
  SMALL.getContext("2d", { willReadFrequently: true }).putImageData(image, 0, 0);
  return SMALL;
}

const CELLS = new WeakMap();

function cellsOf(z) {
  if (!CELLS.has(z)) {
    const { values, shape: [rows, columns] } = unpacked(z);
    CELLS.set(z, { values, rows, columns });
  }
  return CELLS.get(z);
}

// The strongest cell of those that one dot stands for: to leave cells out would tear lines apart.
function pooled(values, rows, columns, [across, down]) {
  const found = new Float32Array(across * down).fill(NaN);
  for (let row = 0; row < rows; row += 1) {
    const line = Math.floor(row * down / rows) * across;
    for (let column = 0; column < columns; column += 1) {
      const value = values[row * columns + column], at = line + Math.floor(column * across / columns);
      if (!(found[at] >= value)) found[at] = value === value ? value : found[at];
    }
  }
  return found;
}

const SHADES = new Map();

// A colour scale as a function of a share from 0 to 1, which gives the dot of a picture. 1,021 shades are made beforehand, of which
// the codes of a byte, 0 to 255, are every fourth; a scale whose colours lie closer together is asked for each dot.
function shadeOf(scale) {
  const name = JSON.stringify(scale);
  if (!SHADES.has(name)) {
    const stops = scale.map(([share, colour]) => [share, partsOf(colour)]);
    const isFine = stops.some(([share], i) => i && share > stops[i - 1][0] && share - stops[i - 1][0] < 1 / 300);
    const table = Uint32Array.from({ length: 1021 }, (_, i) => shadeAt(stops, i / 1020));
    SHADES.set(name, isFine ? (share) => shadeAt(stops, share) : (share) => table[Math.round(share * 1020)]);
  }
  return SHADES.get(name);
}

function shadeAt(stops, share) {
  const next = Math.max(1, stops.findIndex(([end]) => end >= share)), [[from, low], [to, high]] = [stops[next - 1], stops[next]];
  const [r, g, b] = low.map((part, i) => Math.round(part + (high[i] - part) * Math.max(0, share - from) / (to - from || 1)));
  return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
}

// `#rrggbb` or `rgb(r, g, b)`.
function partsOf(colour) {
  if (colour.startsWith("#")) return [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
  return colour.match(/\d+/g).slice(0, 3).map(Number);
}

function contrast(colour) {
  const [r, g, b] = partsOf(colour).map((part) => (part / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#10161f" : "#ffffff";
}

// Of a pattern, one tile in the dots of the screen.
function hatch(context, { shape, fgcolor, bgcolor, size, solidity }, ratio) {
  const side = Math.round(size * ratio), tile = new OffscreenCanvas(side, side), ink = tile.getContext("2d");
  if (bgcolor) {
    ink.fillStyle = bgcolor;
    ink.fillRect(0, 0, side, side);
  }
  Object.assign(ink, { strokeStyle: fgcolor, fillStyle: fgcolor, lineWidth: Math.max(1, solidity * side / (shape === "x" ? 2 : 1.4)) });
  ink.beginPath();
  if (shape === ".") ink.arc(side / 2, side / 2, side * Math.sqrt(solidity / Math.PI), 0, 2 * Math.PI);
  else {
    for (const shift of [-side, 0, side]) {
      ink.moveTo(shift - side, 2 * side);
      ink.lineTo(shift + 2 * side, -side);
      if (shape === "x") {
        ink.moveTo(shift - side, -side);
        ink.lineTo(shift + 2 * side, 2 * side);
      }
    }
  }
  shape === "." ? ink.fill() : ink.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}

const RUNS = new Map();

// The pieces of a label: bold, raised, or neither.
function runsOf(label) {
  if (RUNS.size > 5000) RUNS.clear();
  if (!RUNS.has(label)) {
    const isMarkup = /[&<]/.test(label), nodes = isMarkup ? new DOMParser().parseFromString(label, "text/html").body.childNodes : [];
    const pieces = [...nodes].filter((node) => node.textContent);
    RUNS.set(label, isMarkup
      ? pieces.map((node) => ({ words: node.textContent, isBold: node.nodeName === "B", isRaised: node.nodeName === "SUP" }))
      : [{ words: String(label), isBold: false, isRaised: false }]);
  }
  return RUNS.get(label);
}
