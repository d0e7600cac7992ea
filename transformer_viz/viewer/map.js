// @ts-check
// The large map with the candidates, the numbers filled into the figure that Python laid out. What it draws at a step
// is what `figures.player` draws there: at step t the rows after t are blank. The row of the step and the rings are marks.
import { candidatesAt, hasOneEach } from "./candidates.js";
import { upTo } from "./colours.js";
import { outline, secondTraces } from "./secondmap.js";

const NO_CANDIDATES = { x: [], text: [], textposition: [], customdata: [], names: [], chosen: [] };

// While somebody guesses, the row to come is outlined, and `step` is the one before it: -1 before the first.
export function mapFigure(kind, { layer, head, step, row: outlinedRow = step }, parts, run, colours) {
  const { rows, columns, covered: [first, end] = [0, 0] } = kind;
  const until = kind.picture.grows ? step + 1 : rows;
  const weights = kind.weightsOf(layer, head), reasons = kind.reasonsOf(layer, head);
  const data = [{ ...parts.weights, z: grid(kind, until, (cells, from) => {
    for (let i = 0; i < columns; i += 1) if (!reasons[from + i]) cells[i] = weights[from + i];
  }) }];
  if (kind.picture.ids) data[0].text = idsOf(kind.picture.ids);
  for (const code of kind.codes) {
    data.push({ ...parts.masked[code], z: grid(kind, until, (cells, from) => {
      for (let i = 0; i < columns; i += 1) if (reasons[from + i] === code) cells[i] = 1;
    }) });
  }
  if (kind.codes.length) data.push({ ...parts.hatch, ...outline(reasons, columns, until) });
  if (parts.covered) {
    // A row that is asked about is there before its step.
    const last = Math.max(until - 1, run.coveredFrom ?? -1, run.asked?.kind === kind.linked.kind ? run.asked.row : -1);
    data.push({ ...parts.covered, z: Array.from({ length: rows }, (_, row) => [row >= first && row < end && row <= last ? 1 : NaN]) });
  }
  const row = parts.row && outlinedRow < rows && { ...parts.row, ...rowOutline(columns, outlinedRow) };
  const marks = { row, rings: rings(parts.rings, kind.linked.kind === "cross" ? run.true : [], step, until), before: data.length };
  const layout = { ...parts.layout };
  if (kind.colouring === "head") layout.coloraxis = upTo(kind.mostOf(layer, head), parts.layout.coloraxis);
  if (parts.bars) {
    const { bars, names } = candidatesAt(run.candidates[step] ?? NO_CANDIDATES, colours, run.isBrief);
    data.push({ ...parts.bars, ...bars });
    const axis = parts.names ?? "yaxis2";
    layout[axis] = { ...layout[axis], ...names };
    const across = axis.replace("y", "x");
    if (run.isBrief && hasOneEach(run.candidates)) {
      // The buttons of the chart come on its right.
      const [left, right] = layout[across].domain, domain = [left, left + 0.4 * (right - left)];
      layout[across] = { ...layout[across], domain, tickvals: [], ticktext: [], showgrid: false, side: "top" };
    }
  }
  if (parts.second) data.push(...secondTraces(parts.second, kind.second.of(layer, head), { rows, columns, until: step + 1 }));
  data.push(...parts.colourBar);
  return { data, layout, marks };
}

// A row of numbers for each query; those before `until` are filled by this function, from a place in all of them on.
function grid({ rows, columns }, until, fillRow) {
  return Array.from({ length: rows }, (_, row) => {
    const cells = new Float32Array(columns).fill(NaN);
    if (row < until) fillRow(cells, row * columns);
    return cells;
  });
}

// The figure with what is marked over its chart, as Python draws it.
export function withMarks({ data, layout, marks: { row, rings, before } }) {
  return { data: [...data.slice(0, before), ...(row ? [row] : []), rings, ...data.slice(before)], layout };
}

/** @type {WeakMap<object, string[][]>} */
const ids = new WeakMap();

// The ids of each cell's tokens, for the hover; made once, since they are the same for all heads and steps.
function idsOf(ofKind) {
  const [rows, columns] = ofKind;
  if (!ids.has(ofKind)) ids.set(ofKind, rows.map((row) => columns.map((column) => `${row}, ${column}`)));
  return ids.get(ofKind);
}

function rowOutline(columns, step) {
  const right = columns - 0.5, top = step - 0.5, bottom = step + 0.5;
  return { x: [-0.5, right, right, -0.5, -0.5], y: [top, top, bottom, bottom, top] };
}

// A thin ring around the true key of every row that has happened, thicker in this one.
function rings(template, trueKeys, step, until) {
  const marked = trueKeys.map((key, t) => [key, t]).filter(([key, t]) => key !== null && t < until);
  const width = marked.map(([, t]) => (t === step ? 3 : 1.5));
  const marker = { ...template.marker, line: { ...template.marker.line, width } };
  return { ...template, x: marked.map(([key]) => key), y: marked.map(([, t]) => t), marker };
}
