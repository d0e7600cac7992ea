// @ts-check
// The figures of a run that was made in this page: what depends on its tokens and their number is set in templates that the
// program laid out. Sizes are those of `figures/` there.
import { rounded } from "./brief.js";
import { enumerated, later, say } from "./language.js";
import { escaped, textWidth, unitWords } from "./live_words.js";

const QUERY_TITLES = {
  encoder: later("query: the {unit} that looks"), decoder: later("query: read → written"), cross: later("query: read → written"),
};
const KEY_TITLES = {
  encoder: later("key: the source {unit} looked at"), decoder: later("key: the written {unit} looked at"),
  cross: later("key: the source {unit} looked at"),
};
const MOST_TICKS = 64;
const GAPS_UP_TO = 40;

const isCrowded = (tokens) => tokens.length > 16 || Math.max(...tokens.map((token) => Array.from(token).length)) > 7;

// What of an axis of cells depends on its labels.
function namedAxis(labels, title, isDown = false) {
  const n = labels.length, every = Math.ceil(n / MOST_TICKS), names = labels.map(escaped);
  const leftOut = names.flatMap((name, place) => (place % every ? [[String(place), name]] : []));
  return {
    range: isDown ? [n - 0.5, -0.5] : [-0.5, n - 0.5],
    tickmode: "array",
    tickvals: names.flatMap((_, place) => (place % every ? [] : [place])),
    ticktext: names.filter((_, place) => place % every === 0),
    ...(leftOut.length ? { labelalias: Object.fromEntries(leftOut), hoverformat: "d" } : {}),
    title,
  };
}

function onAxis(axis, { title, ...changes }) {
  const { labelalias, hoverformat, tickangle, ...rest } = axis;
  return { ...rest, ...changes, title: { ...axis.title, text: title } };
}

// Both axes of a map, as the layout of a template has them.
export function tokenAxes({ xaxis, yaxis }, kind, rowLabels) {
  const { kind: name } = kind.linked, title = (titles, tokens) => say(titles[name], { unit: unitWords(tokens) });
  return {
    xaxis: onAxis(xaxis, namedAxis(kind.keys, title(KEY_TITLES, kind.tokens))),
    yaxis: onAxis(yaxis, namedAxis(rowLabels, title(QUERY_TITLES, kind.rowTokens), true)),
  };
}

function marginsOf(columns, rows, size, isUpright) {
  const widest = Math.max(0, ...rows.map((label) => textWidth(label, size)));
  const tallest = isUpright ? Math.max(0, ...columns.map((label) => textWidth(label, size))) : 1.2 * size;
  const title = 1.3 * size + 8;
  return { l: rounded(widest + title), b: rounded(tallest + title), r: 14, t: 8 };
}

// Where the map and its candidates stand: beside each other, or below each other in a narrow window.
function arranged(kind, below, isNarrow, isLarge) {
  const rows = Math.min(Math.max(12, kind.rows), 58);
  const beside = (isLarge ? 430 : 372) + Math.max(0, rows - 14) * (isLarge ? 14 : 12);
  let place = { height: Math.max(beside, 230 + below), y: [0, 1], hasScale: !isNarrow };
  if (isNarrow) {
    const between = Math.max(120, below + 40), tall = 210 + between + 14 * rows;
    place = { ...place, height: tall, x: [0, 1], y: [(170 + between) / tall, 1], x2: [0.02, 0.97], y2: [0, 170 / tall] };
  } else {
    place = { ...place, x: [0, 0.66], x2: [0.79, 1], y2: [0, 1 - 26 / place.height] };
  }
  const [labels, width] = isNarrow ? [110, 250] : [90, 400], [bottom, top] = place.y;
  const cell = Math.min(((place.height - labels) * (top - bottom)) / kind.rows, width / kind.columns);
  return { ...place, ring: Math.max(5, Math.min(24, rounded(cell) - 3)) };
}

// The parts of the large map, for a run of other tokens than those that the template was made for.
export function sizedParts(parts, kind, isNarrow, isLarge) {
  const size = isLarge ? 16 : 13, { layout } = parts, crowded = isCrowded(kind.tokens);
  const place = arranged(kind, marginsOf(kind.keys, [], size, crowded).b, isNarrow, isLarge);
  const gap = Number(Math.max(kind.rows, kind.columns) <= GAPS_UP_TO), gaps = { xgap: gap, ygap: gap };
  const { xaxis, yaxis } = tokenAxes(layout, kind, kind.queries), { coloraxis } = layout;
  return {
    ...parts,
    weights: { ...parts.weights, ...gaps },
    masked: Object.fromEntries(Object.entries(parts.masked).map(([reason, trace]) => [reason, { ...trace, ...gaps }])),
    rings: { ...parts.rings, marker: { ...parts.rings.marker, size: place.ring } },
    layout: {
      ...layout,
      height: place.height,
      margin: marginsOf(kind.keys, kind.queries, size, crowded && place.y[0] === 0),
      coloraxis: {
        ...coloraxis, showscale: place.hasScale, colorbar: { ...coloraxis.colorbar, x: place.x[1] + 0.01 },
      },
      xaxis: { ...xaxis, ...(crowded ? { tickangle: -90 } : {}), domain: place.x },
      yaxis: { ...yaxis, domain: place.y },
      xaxis2: { ...layout.xaxis2, domain: place.x2 },
      yaxis2: { ...layout.yaxis2, domain: place.y2 },
    },
  };
}

// All heads of a kind as small maps: one heatmap with gaps, another for masked cells, thin frames, and captions; the best head
// has a star.
export function mosaicOf(kind, { map, masked, frames, captions, layout, title }, best) {
  const { rows, columns, layers, heads } = kind;
  const gap = Math.max(1, rounded(columns * 0.06)), caption = Math.max(1, rounded(rows * 0.17));
  const pitchX = columns + gap, pitchY = rows + caption;
  const width = heads * pitchX - gap, height = layers * pitchY - caption;
  const canvas = (pick) => {
    const z = Array.from({ length: height }, () => new Float32Array(width).fill(NaN));
    kind.numbers.forEach((_, layer) => {
      for (let head = 0; head < heads; head += 1) {
        const weights = kind.weightsOf(layer, head), reasons = kind.reasonsOf(layer, head);
        weights.forEach((weight, i) => {
          z[layer * pitchY + Math.floor(i / columns)][head * pitchX + (i % columns)] = pick(weight, reasons[i]);
        });
      }
    });
    return z;
  };
  const places = kind.numbers.flatMap((_, layer) => Array.from({ length: heads }, (_, head) => [head * pitchX - 0.5, layer * pitchY - 0.5]));
  const hasMasked = kind.codes.length > 0;
  const maps = [{ ...map, z: canvas((weight, reason) => (reason ? NaN : weight)) }];
  if (hasMasked) maps.push({ ...masked, z: canvas((_, reason) => (reason ? 1 : NaN)) });
  const boxes = places.map(([left, top]) => [left, top, left + columns, top + rows]);
  const star = best ? best[0] * heads + best[1] : -1;
  const marks = [...(hasMasked ? [say("grey: masked")] : []), ...(best ? [say("★: best head")] : [])];
  const [[, said] = ["", ""]] = enumerated(marks);
  const pitch = { pitch_x: pitchX, pitch_y: pitchY, block: [1, 1], rows, columns };
  return {
    data: [
      ...maps,
      {
        ...frames,
        x: boxes.flatMap(([left, , right]) => [left, right, right, left, left, null]),
        y: boxes.flatMap(([, top, , bottom]) => [top, top, bottom, bottom, top, null]),
      },
      {
        ...captions,
        x: places.map(([left]) => left + 0.5 + (columns - 1) / 2),
        y: places.map(([, top]) => top - caption / 2),
        text: captions.text.map((name, place) => (place === star ? `${name} ★` : name)),
      },
    ],
    layout: {
      ...layout,
      title: { ...layout.title, text: said ? say("{attention} ({marks})", { attention: title, marks: said }) : title },
      xaxis: { ...layout.xaxis, range: [-0.5, width - 0.5] },
      yaxis: { ...layout.yaxis, range: [height - 0.5, -0.5 - caption] },
      meta: { ...layout.meta, ...pitch },
    },
  };
}
