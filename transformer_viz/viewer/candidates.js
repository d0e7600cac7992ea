// @ts-check
// The candidates of a step: a bar for each, and their names on the axis. Of a single one a bar would say nothing: its probability
// stands beside its name alone.

/** Candidates with less say nothing to whoever wants few words. */
const LEAST = 0.001;

// Whether a run has a single candidate at each step, so that there are no bars to read on an axis.
export function hasOneEach(candidates) {
  return candidates.every(({ x, chosen }) => x.filter((p, place) => p >= LEAST || chosen[place]).length < 2);
}

export function candidatesAt(candidates, colours, isBrief = false) {
  const isSaid = candidates.x.map((p, place) => !isBrief || p >= LEAST || candidates.chosen[place]);
  const of = (values) => values.filter((_, place) => isSaid[place]);
  const [x, text, textposition, customdata, names, chosen] = ["x", "text", "textposition", "customdata", "names", "chosen"]
    .map((name) => of(candidates[name]));
  const places = x.map((_, place) => place);
  if (isBrief && x.length === 1) [x[0], textposition[0]] = [0, "outside"];
  const marker = { color: chosen.map((is) => (is ? colours.chosen : colours.other)) };
  return { bars: { x, y: places, text, textposition, customdata, marker }, names: { tickvals: places, ticktext: names } };
}
