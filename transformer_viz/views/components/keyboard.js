// Put before the chart. What a chart shows, for the keyboard and for a screen reader: one Tab stop, in which the arrows go from
// cell to cell of a map, from tile to tile of a mosaic, or from point to point; Page Up and Page Down go to the next map or line
// of the same chart, and Enter does what a click there does. A place is said in the words of its hover.

class Walk {
  constructor(host, press) {
    this.host = host;
    this.press = press;
    this.at = { section: 0, row: 0, column: 0 };
    this.grid = document.createElement("div");
    this.grid.className = "walk";
    this.grid.setAttribute("role", "grid");
    this.grid.hidden = true;
    host.after(this.grid);
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("focus", () => this.show());
    for (const name of ["chart-drawn", "step-drawn"]) host.addEventListener(name, () => this.drawn());
  }

  // Another figure may be smaller, or have nothing to walk through, as one that only says why it is empty.
  drawn() {
    this.sections = sectionsOf(this.host);
    this.grid.hidden = !this.sections.length;
    if (this.grid.hidden) return;
    this.grid.tabIndex = 0;
    this.grid.setAttribute("aria-label", `${this.host.getAttribute("aria-label")} Arrow keys go through it.`);
    this.go(this.at);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { section, row, column } = this.at, now = this.sections[section];
    const to = {
      ArrowLeft: { column: column - 1 },
      ArrowRight: { column: column + 1 },
      ArrowUp: { row: row - 1 },
      ArrowDown: { row: row + 1 },
      Home: { column: 0 },
      End: { column: now.columns - 1 },
      PageUp: { section: section - 1 },
      PageDown: { section: section + 1 },
    }[event.key];
    if (to) this.go({ ...this.at, ...to });
    else if (event.key === "Enter" || event.key === " ") this.press(now.point?.(row, column), this.middle());
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  go({ section, row, column }) {
    const within = (place, n) => Math.max(0, Math.min(n - 1, place));
    this.at.section = within(section, this.sections.length);
    this.at.row = within(row, this.sections[this.at.section].rows);
    this.at.column = within(column, this.sections[this.at.section].columns);
    this.show();
  }

  // The cell is a new element each time: a screen reader says another one, not another text.
  show() {
    const { section, row, column } = this.at, now = this.sections[section];
    const line = document.createElement("div"), cell = document.createElement("div"), words = document.createElement("span");
    line.setAttribute("role", "row");
    line.setAttribute("aria-rowindex", row + 1);
    cell.setAttribute("role", "gridcell");
    cell.setAttribute("aria-colindex", column + 1);
    cell.id = `walk-${(Walk.cells = (Walk.cells ?? 0) + 1)}`;
    words.textContent = now.words(row, column);
    cell.append(words);
    line.append(cell);
    this.grid.replaceChildren(line);
    this.grid.setAttribute("aria-rowcount", now.rows);
    this.grid.setAttribute("aria-colcount", now.columns);
    this.grid.setAttribute("aria-activedescendant", cell.id);
    // Only who walks sees where: the browser would have to arrange the whole page to say it.
    if (document.activeElement === this.grid) this.place(cell);
  }

  // The outline of the place, and its words beside it, for those who see.
  place(cell) {
    const box = this.box(), mine = this.grid.getBoundingClientRect();
    if (!box) return;
    Object.assign(cell.style, {
      left: `${box.left - mine.left}px`, top: `${box.top - mine.top}px`, width: `${box.width}px`, height: `${box.height}px`,
    });
    cell.classList.toggle("rightwards", box.left - mine.left < mine.width / 2);
  }

  box() {
    const { section, row, column } = this.at, now = this.sections[section];
    const area = areas(this.host).find((area) => area.name === now.area);
    return area && boxOn(area, now.edges(row, column));
  }

  middle() {
    const box = this.box();
    return box && { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
  }
}

// The tiles of a mosaic, or else the maps and lines of a chart, one after the other.
function sectionsOf(chart) {
  if (chart.layout.meta?.pitch_x) return [tilesOf(chart.layout.meta)];
  const traces = chart.data.filter((trace) => trace.visible !== false && trace.hoverinfo !== "skip");
  const maps = Map.groupBy(traces.filter((trace) => trace.type === "heatmap"), areaOf);
  const lines = traces.filter((trace) => trace.type !== "heatmap" && trace.x && trace.y);
  return [...[...maps.values()].map((map) => mapOf(chart, map)), ...lines.flatMap((trace) => linesOf(chart, trace))];
}

function tilesOf({ layers, tiles, said, heads, pitch_x, pitch_y }) {
  const name = (tile) => (tile ? `layer ${tile[0] + 1} head ${tile[1] + 1}` : "nothing");
  return {
    area: "xy",
    rows: layers,
    columns: heads,
    words: (row, column) => name(tiles[row * heads + column]) + (said ? `: ${said[row * heads + column]}` : ""),
    edges: (row, column) => [column * pitch_x - 0.5, row * pitch_y - 0.5, (column + 1) * pitch_x - 0.5, (row + 1) * pitch_y - 0.5],
  };
}

// Heatmaps that lie upon each other, each with some of the cells: weights, and a trace for each reason of a mask.
function mapOf(chart, traces) {
  const sizes = traces.map((trace) => sizeOf(trace.z));
  // A cover over the rows to come has one number a row.
  const number = ({ z }, row, column) => (sizeOf(z)[1] === 1 ? numbersOf(z)[row]?.[0] : numbersOf(z)[row]?.[column]);
  const isNumber = (value) => typeof value === "number" && !Number.isNaN(value);
  return {
    area: areaOf(traces[0]),
    rows: Math.max(...sizes.map(([rows]) => rows)),
    columns: Math.max(...sizes.map(([, columns]) => columns)),
    words: (row, column) => {
      const trace = traces.find((trace) => isNumber(number(trace, row, column))), [x, y] = axesOf(chart, trace ?? traces[0]);
      const place = { x: label(x, trace?.x?.[column] ?? column), y: label(y, trace?.y?.[row] ?? row) };
      if (!trace || trace.hoverinfo === "none") return cellWords(place.y, place.x, "nothing yet");
      const [text, customdata] = [trace.text, trace.customdata].map((values) => values && numbersOf(values)[row]?.[column]);
      return hoverWords(trace.hovertemplate ?? "", { ...place, z: number(trace, row, column), text, customdata });
    },
    edges: (row, column) => [column - 0.5, row - 0.5, column + 0.5, row + 0.5],
  };
}

// One trace may hold many lines, with a gap after each.
function linesOf(chart, trace) {
  const lines = [[]];
  numbersOf(trace.x).forEach((x, place) => (x === null ? lines.push([]) : lines[lines.length - 1].push(place)));
  return lines.filter((places) => places.length).map((places) => lineOf(chart, trace, places));
}

function lineOf(chart, trace, places) {
  const [x, y] = axesOf(chart, trace), name = trace.name ? `${trace.name}: ` : "";
  const [across, down] = [numbersOf(trace.x), numbersOf(trace.y)];
  const at = (values, place) => (typeof values === "object" && values ? numbersOf(values)[place] : values);
  return {
    area: areaOf(trace),
    rows: 1,
    columns: places.length,
    words: (_, column) => {
      const place = places[column];
      const values = { x: label(x, across[place]), y: label(y, down[place]) };
      for (const key of ["text", "hovertext", "customdata"]) values[key] = at(trace[key], place);
      return name + hoverWords(at(trace.hovertemplate, place) || "%{x}: %{y}", values);
    },
    edges: (_, column) => {
      const place = places[column];
      const [right, below] = [onAxis(x, across[place]), onAxis(y, down[place])];
      return trace.orientation === "h" ? [Math.min(...x.range), below - 0.4, right, below + 0.4] : [right, below, right, below];
    },
    point: (_, column) => at(trace.customdata, places[column]),
  };
}

const UNPACKED = new WeakMap();

// Numbers travel as bytes, which Plotly leaves in the data as they came. A matrix becomes an array of rows.
function numbersOf(values) {
  if (!values.bdata) return values;
  if (!UNPACKED.has(values)) {
    const { values: flat, shape: [rows, columns] } = unpacked(values);
    const matrix = () => Array.from({ length: rows }, (_, row) => flat.subarray(row * columns, (row + 1) * columns));
    UNPACKED.set(values, columns === undefined ? flat : matrix());
  }
  return UNPACKED.get(values);
}

function sizeOf(values) {
  const rows = numbersOf(values);
  return [rows.length, rows[0]?.length];
}

function areaOf(trace) {
  return (trace.xaxis ?? "x") + (trace.yaxis ?? "y");
}

function axesOf(chart, trace) {
  return [trace.xaxis ?? "x", trace.yaxis ?? "y"].map((name) => chart.layout[`${name[0]}axis${name.slice(1)}`]);
}

function onAxis(axis, value) {
  if (axis.type === "log") return Math.log10(Math.max(value, 10 ** Math.min(...axis.range)));
  return typeof value === "number" ? value : (axis.categoryarray ?? []).indexOf(value);
}

function label(axis, value) {
  return axis.ticktext?.[axis.tickvals?.indexOf(value)] ?? axis.labelalias?.[value] ?? value;
}

function boxOn(area, [left, top, right, bottom]) {
  const across = [area.right(left), area.right(right)].sort((a, b) => a - b), down = [area.down(top), area.down(bottom)].sort((a, b) => a - b);
  // A point has no size, and its outline a little.
  const least = 14, wider = Math.max(0, least - (across[1] - across[0])) / 2, taller = Math.max(0, least - (down[1] - down[0])) / 2;
  return { left: across[0] - wider, top: down[0] - taller, width: across[1] - across[0] + 2 * wider, height: down[1] - down[0] + 2 * taller };
}

// `row 3, e: 0.98 on token 9, s`, or of what is no number `row 3, e, token 9, s: may look`; from the two labels of a cell's axes.
function cellWords(query, key, what) {
  const [row, token] = [query, key].map((label) => plainText(label).replace("·", ", "));
  return /\d$/.test(what) ? `row ${row}: ${what} on token ${token}` : `row ${row}, token ${token}: ${what}`;
}

const OF_A_CELL = /^query %\{y\}<br>key %\{x\}<br>/;

// What a hover says, as text. Plotly has no function for it.
function hoverWords(template, values) {
  const about = OF_A_CELL.test(template), words = plainText(filled(template.replace(OF_A_CELL, ""), values));
  return about ? cellWords(values.y, values.x, words.replace(/^weight /, "")) : words;
}

// A hover's template with its values, still markup.
function filled(template, values) {
  return template.replace(/<extra>.*$/, "").replace(
    /%\{(\w+)(?:\[(\d+)\])?(?::([^}]*))?\}/g,
    (_, name, place, format) => formatted(place === undefined ? values[name] : values[name]?.[place], format),
  );
}

function formatted(value, format) {
  const [, sign, places, percent] = /^(\+?)\.(\d+)([f%])$/.exec(format ?? "") ?? [];
  if (places === undefined || typeof value !== "number") return value ?? "";
  const number = percent === "%" ? `${(100 * value).toFixed(places)} %` : value.toFixed(places);
  return sign && value >= 0 ? `+${number}` : number;
}

// Plotly's labels are markup, in which a token is escaped; a document of its own neither loads nor runs anything.
function plainText(label) {
  return new DOMParser().parseFromString(String(label).replace(/(:?)<br>/g, (_, colon) => (colon ? ": " : ", ")), "text/html").body.textContent;
}
