// @ts-check
// The run's numbers: one head's map, and what is combined from a layer's heads. They may come in parts, a head at a time.
import { unpacked } from "./arrays.js";
import { recoloured } from "./colours.js";

export class Kind {
  // `pieces` are those of all sentences, which have their numbers.
  constructor(data, pieces = []) {
    Object.assign(this, data);
    this.pieces = pieces;
    this.all = data.weights ? unpacked(data.weights) : null;
    this.allReasons = data.reasons ? unpacked(data.reasons) : null;
    [this.layers, this.heads, this.rows, this.columns] = this.all?.shape ?? data.shape;
    this.size = this.rows * this.columns;
    this.codes = Object.keys(data.picture.masked).map(Number);
    this.parts = new Map();
    this.views = new Map();
    this.combined = new Map();
  }

  // Whether the numbers of this head, or of these together, are here.
  has(layer, head) {
    return Boolean(this.all) || this.parts.has(`${layer} ${head}`);
  }

  // What came of a head.
  add(layer, head, { weights, reasons, sentences }) {
    const values = (array) => array && unpacked(array).values;
    this.parts.set(`${layer} ${head}`, { weights: values(weights), reasons: values(reasons), sentences });
  }

  // The kind as a measure shows it: with its numbers in the place of the weights, or with a second map beside them.
  by(measure) {
    const own = this.measures?.[measure];
    if (!own) return this;
    if (!this.views.has(measure)) this.views.set(measure, this.#measured(own));
    return this.views.get(measure);
  }

  #measured({ weights, second, ...own }) {
    const numbers = weights ? { all: unpacked(weights), parts: new Map() } : {};
    return Object.assign(Object.create(this), own, numbers, {
      combined: new Map(), second: second && new Second(second, this.rows * this.columns),
    });
  }

  // Weights of one head, or of a layer's heads combined, row after row. float32 as in the file: sums are rounded as there.
  weightsOf(layer, head) {
    const part = this.parts.get(`${layer} ${head}`)?.weights;
    if (part) return part;
    if (!this.all) return (this.none ??= new Float32Array(this.size).fill(NaN));
    if (Number.isInteger(head)) return this.tile(layer, head);
    const key = `${layer} ${head}`;
    if (!this.combined.has(key)) this.combined.set(key, combine(this.heads, (other) => this.tile(layer, other), head));
    return this.combined.get(key);
  }

  tile(layer, head) {
    const from = (layer * this.heads + head) * this.size;
    return this.all.values.subarray(from, from + this.size);
  }

  // The largest weight of a map that is not masked; 1 where there is none.
  mostOf(layer, head) {
    const reasons = this.reasonsOf(layer, head), weights = this.weightsOf(layer, head);
    let most = 0;
    for (let i = 0; i < weights.length; i += 1) if (!reasons[i] && weights[i] > most) most = weights[i];
    return most || 1;
  }

  // Why each cell is masked, 0 where it is not. A combined map is masked only where every head of the layer is.
  reasonsOf(layer, head) {
    const part = this.parts.get(`${layer} ${head}`)?.reasons;
    if (part) return part;
    if (!this.allReasons) return new Uint8Array(this.size);
    const { values, shape } = this.allReasons;
    if (shape.length === 2) return values;
    const from = (other) => (layer * this.heads + other) * this.size;
    const of = (other) => values.subarray(from(other), from(other + 1));
    if (Number.isInteger(head)) return of(head);
    const combined = Uint8Array.from(of(0));
    for (let other = 1; other < this.heads; other++) {
      of(other).forEach((code, i) => { combined[i] = code && combined[i] ? Math.max(code, combined[i]) : 0; });
    }
    return combined;
  }

  headNumber(head) {
    return Number.isInteger(head) ? head : this.heads + ["mean", "max"].indexOf(head);
  }

  // Per step the pieces of its sentence; none where they have not come yet.
  sentencesOf(layer, head) {
    const part = this.parts.get(`${layer} ${head}`)?.sentences;
    return part ?? this.said(this.sentences, layer, head) ?? Array.from({ length: this.rows }, () => []);
  }

  // What a measure says of each step below its sentence.
  measuredOf(layer, head) {
    return this.said(this.measured, layer, head);
  }

  said(sentences, layer, head) {
    if (!sentences?.length) return null;
    const isOne = sentences.length === 1 && sentences[0].length === 1;
    const numbers = isOne ? sentences[0][0] : sentences[layer][this.headNumber(head)];
    return numbers.map((sentence) => sentence.map((number) => this.pieces[number]));
  }

  // The large map without its numbers, and the small ones with them, in these colours.
  mapParts(isNarrow, _isLarge, colours) {
    const { wide, narrow, ...parts } = this.picture;
    return recoloured({ ...parts, ...(isNarrow ? narrow : wide) }, colours);
  }

  smallMaps(colours) {
    return recoloured(this.mosaic, colours);
  }

  // The source position with the most weight, or null.
  lookedAt(layer, head, step) {
    if (this.linked.kind !== "cross" || !this.has(layer, head)) return null;
    const weights = this.weightsOf(layer, head), from = step * this.columns;
    let place = null, most = 0;
    for (let key = 0; key < this.columns; key += 1) {
      if (weights[from + key] > most) [place, most] = [key, weights[from + key]];
    }
    return place;
  }
}

// The numbers of a second map: of all heads as one, of each layer, or of each head.
class Second {
  constructor({ values, words, unit }, size) {
    Object.assign(this, unpacked(values), { size, words, unit });
  }

  of(layer, head) {
    if (this.shape.length === 2) return this.values;
    const n = this.shape[1], tile = (other) => this.values.subarray((layer * n + other) * this.size, (layer * n + other + 1) * this.size);
    if (n === 1) return tile(0);
    return Number.isInteger(head) ? tile(head) : combine(n, tile, head);
  }
}

// The mean of n maps, or the largest of each cell.
export function combine(n, tile, head) {
  const combined = Float32Array.from(tile(0));
  for (let other = 1; other < n; other++) {
    const values = tile(other);
    for (let i = 0; i < combined.length; i++) {
      combined[i] = head === "max" ? Math.max(combined[i], values[i]) : combined[i] + values[i];
    }
  }
  return head === "max" ? combined : combined.map((sum) => sum / n);
}
