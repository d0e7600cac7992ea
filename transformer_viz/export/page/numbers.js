// The run's numbers: one head's map, and what is combined from a layer's heads.

class Kind {
  constructor(data) {
    Object.assign(this, data);
    this.all = unpacked(data.weights);
    this.allReasons = unpacked(data.reasons);
    [this.rows, this.columns] = this.all.shape.slice(2);
    this.size = this.rows * this.columns;
    this.codes = Object.keys(data.picture.masked).map(Number);
  }

  // Weights of one head, or of a layer's heads combined, row after row. float32 as in the file: sums are rounded as there.
  weightsOf(layer, head) {
    if (Number.isInteger(head)) return this.tile(layer, head);
    const combined = Float32Array.from(this.tile(layer, 0));
    for (let other = 1; other < this.heads; other++) {
      const tile = this.tile(layer, other);
      for (let i = 0; i < combined.length; i++) {
        combined[i] = head === "max" ? Math.max(combined[i], tile[i]) : combined[i] + tile[i];
      }
    }
    return head === "max" ? combined : combined.map((sum) => sum / this.heads);
  }

  tile(layer, head) {
    const from = (layer * this.heads + head) * this.size;
    return this.all.values.subarray(from, from + this.size);
  }

  // The largest weight of a map that is not masked; 1 where there is none.
  mostOf(layer, head) {
    const reasons = this.reasonsOf(layer, head);
    return this.weightsOf(layer, head).reduce((most, weight, i) => (!reasons[i] && weight > most ? weight : most), 0) || 1;
  }

  // Why each cell is masked, 0 where it is not. A combined map is masked only where every head of the layer is.
  reasonsOf(layer, head) {
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

  // Per step the piece numbers of its sentence.
  sentencesOf(layer, head) {
    return this.sentences.length === 1 && this.sentences[0].length === 1
      ? this.sentences[0][0]
      : this.sentences[layer][this.headNumber(head)];
  }

  // The source position with the most weight, or null.
  lookedAt(layer, head, step) {
    if (this.linked.kind !== "cross") return null;
    const row = this.weightsOf(layer, head).subarray(step * this.columns, (step + 1) * this.columns);
    const most = row.reduce((most, weight) => Math.max(most, weight), 0);
    return most > 0 ? row.indexOf(most) : null;
  }
}

// A copy of a template in which each of these colours is replaced by its other one.
function recoloured(part, colours) {
  if (typeof part === "string") return Object.hasOwn(colours, part) ? colours[part] : part;
  if (Array.isArray(part)) return part.map((entry) => recoloured(entry, colours));
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, recoloured(value, colours)]));
}
