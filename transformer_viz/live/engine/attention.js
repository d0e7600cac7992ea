// @ts-check
// The arithmetic of a Transformer: linear layers, norms, and scaled dot-product attention (Vaswani et al. 2017, section 3.2).
// A matrix is {values, rows, columns}, one row a token, row after row. All in double precision.

export function matrix(rows, columns, values = new Float64Array(rows * columns)) {
  return { values, rows, columns };
}

// x · Wᵀ + b. A row of W says how much of each input number goes into one output number.
export function linear(x, { weight, bias }) {
  const result = matrix(x.rows, weight.rows), n = x.columns, from = x.values, w = weight.values;
  for (let row = 0; row < x.rows; row += 1) {
    for (let out = 0; out < weight.rows; out += 1) {
      let sum = 0;
      for (let i = row * n, j = out * n, end = i + n; i < end; i += 1, j += 1) sum += from[i] * w[j];
      result.values[row * weight.rows + out] = sum + (bias ? bias.values[out] : 0);
    }
  }
  return result;
}

export function add(x, y) {
  return { ...x, values: x.values.map((value, i) => value + y.values[i]) };
}

// Each row is brought to mean 0 and variance 1, then scaled and shifted by learned numbers, where there are any.
export function layerNorm(x, { weight, bias }) {
  const result = matrix(x.rows, x.columns), n = x.columns;
  for (let row = 0; row < x.rows; row += 1) {
    const from = x.values.subarray(row * n, (row + 1) * n);
    let mean = 0, variance = 0;
    for (const value of from) mean += value / n;
    for (const value of from) variance += (value - mean) ** 2 / n;
    for (let i = 0; i < n; i += 1) {
      const normal = (from[i] - mean) / Math.sqrt(variance + 1e-5);
      result.values[row * n + i] = weight ? normal * weight.values[i] + bias.values[i] : normal;
    }
  }
  return result;
}

const ACTIVATIONS = {
  relu: (value) => Math.max(0, value),
  gelu: (value) => (value * (1 + erf(value / Math.SQRT2))) / 2,
};

// Two linear layers with an activation between them, for each token by itself (section 3.3).
export function feedForward(x, { inner, outer }, activation) {
  const hidden = linear(x, inner);
  return linear({ ...hidden, values: hidden.values.map(ACTIVATIONS[activation]) }, outer);
}

// The error function, as a series of terms that are all positive, so that nothing cancels out.
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x, sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n += 1) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return ((2 / Math.sqrt(Math.PI)) * Math.exp(-x * x)) * sum;
}

// The weights of one query from its scores: positive, 1 together. A masked key has a score of −∞ and gets exactly 0, and a query
// that may look at nothing gets zeros.
function softmax(scores) {
  const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  if (most === -Infinity) return scores.fill(0);
  let sum = 0;
  for (let i = 0; i < scores.length; i += 1) sum += scores[i] = Math.exp(scores[i] - most);
  for (let i = 0; i < scores.length; i += 1) scores[i] /= sum;
  return scores;
}

// Each head by itself: how well a query fits each key (the scores), how its weight is divided among the keys that are not masked
// (softmax), and the sum of the keys' values in these shares.
//
// query, key, value: (token, head × width), a head's numbers side by side. masked: (head, query, key), 1 = masked.
// changed: what an edit makes of the weights (head, query, key). Returns the weights and (query, head × width).
export function attend(query, key, value, masked, nHeads, changed = (weights) => weights) {
  const width = query.columns / nHeads, valueWidth = value.columns / nHeads, nKeys = key.rows;
  let weights = new Float64Array(nHeads * query.rows * nKeys);
  for (let head = 0; head < nHeads; head += 1) {
    for (let row = 0; row < query.rows; row += 1) {
      const place = (head * query.rows + row) * nKeys, scores = weights.subarray(place, place + nKeys);
      for (let k = 0; k < nKeys; k += 1) {
        const q = row * query.columns + head * width, at = k * key.columns + head * width;
        let sum = 0;
        for (let i = 0; i < width; i += 1) sum += query.values[q + i] * key.values[at + i];
        scores[k] = masked[place + k] ? -Infinity : sum / Math.sqrt(width);
      }
      softmax(scores);
    }
  }
  weights = changed(weights);

  const heads = matrix(query.rows, value.columns);
  for (let row = 0; row < query.rows; row += 1) {
    for (let column = 0; column < value.columns; column += 1) {
      const place = (Math.floor(column / valueWidth) * query.rows + row) * nKeys;
      let sum = 0;
      for (let k = 0; k < nKeys; k += 1) sum += weights[place + k] * value.values[k * value.columns + column];
      heads.values[row * value.columns + column] = sum;
    }
  }
  return { weights, heads };
}
