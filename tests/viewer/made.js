// Parts of runs for the tests beside this file; sizes are different primes.

export const packed = (values, shape) => ({ values: Float32Array.from(values), shape });
export const codes = (values, shape) => ({ values: Uint8Array.from(values), shape });

// A picture as page_templates.py gives it, without anything that only Plotly reads.
export function picture({ grows = true, row = true, bars = false } = {}) {
  const axis = { range: [-0.5, 4.5], tickvals: [0, 1, 2], ticktext: ["1·a", "2·b", "3·c"] };
  const layout = {
    xaxis: axis, yaxis: axis, yaxis2: {}, meta: { unwritten: ["yaxis"] },
    coloraxis: { colorscale: [[0, "#ffffff"], [1, "#000000"]], cmin: 0, cmax: 1, colorbar: {} },
  };
  const rings = { type: "scatter", mode: "markers", marker: { size: 9, line: { color: "green" } } };
  return {
    weights: { type: "heatmap", coloraxis: "coloraxis" },
    masked: { 2: { type: "heatmap", colorscale: [[0, "#cccccc"], [1, "#cccccc"]] } },
    hatch: { type: "scatter", mode: "lines", fill: "toself", fillpattern: {} },
    row: row ? { type: "scatter", mode: "lines", line: { color: "red", width: 2 } } : null,
    bars: bars ? { type: "bar", xaxis: "x2", yaxis: "y2" } : null,
    colourBar: [],
    wide: { layout, rings },
    narrow: { layout: { ...layout, isNarrow: true }, rings },
    grows,
  };
}

// A kind of 2 layers, 2 heads, 3 rows and 5 columns: weight 0.01 · its number; the last two columns of the first row are masked.
export function kind(more = {}) {
  const n = 2 * 2 * 3 * 5, pieces = [["plain", "a"], ["strong", "b"], ["code", "c"]];
  const of = (head) => [0, 1, 2].map((step) => [(head + step) % 3]);
  const sentences = [0, 1].map((layer) => [0, 1, 2, 3].map((head) => of(layer + head)));
  return [{
    title: "cross-attention", legend: "rows", colouring: "fixed", numbers: [3, 7], names: [["a", "b", "c", "d"], ["e", "f", "g", "h"]],
    weights: packed(Array.from({ length: n }, (_, i) => i / 100), [2, 2, 3, 5]),
    reasons: codes([0, 0, 0, 2, 2, ...Array(10).fill(0)], [3, 5]),
    sentences, picture: picture(), mosaic: { data: [], layout: {} },
    linked: { kind: "cross", rows: ["r1", "r2", "r3"], keys: ["k1", "k2", "k3", "k4", "k5"] },
    ...more,
  }, pieces];
}
