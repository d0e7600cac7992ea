// @ts-check
// The candidates of a step: a bar for each, and their names on the axis.

export function candidatesAt({ x, text, textposition, customdata, names, chosen }, colours) {
  const places = x.map((_, place) => place);
  const marker = { color: chosen.map((is) => (is ? colours.chosen : colours.other)) };
  return { bars: { x, y: places, text, textposition, customdata, marker }, names: { tickvals: places, ticktext: names } };
}
