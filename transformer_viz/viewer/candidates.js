// @ts-check
// The candidates of a step: a bar for each, and their names on the axis.

/** Candidates with less say nothing to whoever wants few words. */
const LEAST = 0.001;

export function candidatesAt(candidates, colours, isBrief = false) {
  const isSaid = candidates.x.map((p, place) => !isBrief || p >= LEAST || candidates.chosen[place]);
  const of = (values) => values.filter((_, place) => isSaid[place]);
  const [x, text, textposition, customdata, names, chosen] = ["x", "text", "textposition", "customdata", "names", "chosen"]
    .map((name) => of(candidates[name]));
  const places = x.map((_, place) => place);
  const marker = { color: chosen.map((is) => (is ? colours.chosen : colours.other)) };
  return { bars: { x, y: places, text, textposition, customdata, marker }, names: { tickvals: places, ticktext: names } };
}
