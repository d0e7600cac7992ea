// @ts-check
// The large picture of a training: one head's map at a moment, every head's way through the training, and the candidates of one
// position, the numbers filled into what Python laid out. It draws what `figures.training_playback` draws there.
import { unpacked } from "./arrays.js";
import { mapFigure } from "./map.js";

// `layer` is the place among those that there are; `moment` and `position` count from 0.
export function playbackFigure(kind, { layer, head, moment, position }, run) {
  const then = kind.by(String(moment)), candidates = run.candidates[moment], parts = kind.picture;
  const figure = mapFigure(then, { layer, head, step: position }, parts, { ...run, candidates }, run.colours);
  return {
    ...figure, data: [...figure.data, ...ways(kind, layer, head)],
    marks: { ...figure.marks, now: now(kind, { layer, head, moment }) },
  };
}

// The figure with what is marked over its chart, for who saves it.
export function withNow({ data, layout, marks }, { now: template }) {
  const { moment, value, words, isBelow, isLeft } = marks.now, isKnown = words !== "";
  const text = ["", "", `<b>${words}</b>`], textposition = `${isBelow ? "bottom" : "top"} ${isLeft ? "left" : "right"}`;
  const at = isKnown ? { x: [moment, moment, moment], y: [0, 1, value], text, textposition } : { x: [moment, moment], y: [0, 1], marker: { size: 0 } };
  return { data: [...data, { ...template, ...at }], layout };
}

// The other heads in grey as one line with gaps, that of a head which looks everywhere alike, and the one in focus over them.
function ways(kind, layer, head) {
  const { grey, even, own, hovers } = kind.picture.ways, all = valuesOf(kind), places = hovers.flatMap((row, l) => row.map((_, h) => [l, h]));
  const others = places.filter(([l, h]) => l !== layer || h !== head), moments = all.moments;
  const of = (l, h) => moments.map((m) => known(all.at(m, l, h)));
  return [
    {
      ...grey, x: others.flatMap(() => [...moments, null]), y: others.flatMap(([l, h]) => [...of(l, h), null]),
      text: others.flatMap(([l, h]) => [...hovers[l][h], ""]),
    },
    even,
    { ...own, x: moments, y: of(layer, head), text: hovers[layer][head] },
  ];
}

// Where the head in focus stands at a moment, and on which side of it there is room for its number.
function now(kind, { layer, head, moment }) {
  const { said, turns } = kind.picture.ways, all = valuesOf(kind), value = all.at(moment, layer, head);
  const words = said[layer][head][moment], isLeft = moment > (all.moments.length - 1) / 2;
  return { moment, value, words, isLeft, isBelow: value > turns };
}

// Of a moment that is covered until somebody has answered nothing is known.
const known = (value) => (Number.isNaN(value) ? null : value);

const VALUES = new WeakMap();

function valuesOf({ picture: { ways: given } }) {
  if (!VALUES.has(given)) {
    const { values, shape: [n, layers, heads] } = unpacked(given.values);
    VALUES.set(given, { moments: Array.from({ length: n }, (_, m) => m), at: (m, l, h) => values[(m * layers + l) * heads + h] });
  }
  return VALUES.get(given);
}
