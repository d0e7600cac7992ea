// @ts-check
// A Transformer of an encoder and a decoder (Vaswani et al. 2017, section 3.1), and how it writes: the encoder reads the source
// once; then the decoder reads what was written so far, one token a step, and says how probable each next token is. What it
// computed of earlier tokens, their keys and values, is kept, since a later token never changes it.
import { add, attend, feedForward, layerNorm, linear, matrix } from "./attention.js";
import { later, say } from "../../viewer/language.js";
import { Edits } from "./edits.js";
import { chooser, ranking } from "./sampling.js";
import { END, InputError, shown, START } from "./text.js";
import { sinusoid } from "./weights.js";

const NORM_BEFORE = "pre";
const NORM_AFTER = "post";
const NORM_WITHIN = "residual-post";

export class Model {
  constructor(config, weights) {
    Object.assign(this, { config, weights });
  }

  // The encoder's output, (token, d_model), for ids of a source.
  encode(ids, edits, record) {
    const { config, weights } = this;
    const isTied = config.tied_embeddings === "all", scaled = config.embedding_scale !== "none";
    let x = this.embed(weights.get(`${isTied ? "target" : "source"}_embedding.weight`), "source_norm", ids, 0, scaled);
    for (let layer = 0; layer < config.n_encoder_layers; layer += 1) {
      const place = `encoder.${layer}`, site = { kind: "encoder", layer, first: 0 };
      x = this.sublayer(x, place, "attention", (y) => this.attention(y, y, `${place}.attention`, site, edits, record));
      x = this.sublayer(x, place, "feed_forward", (y) => this.feedForward(y, place));
    }
    return config.final_norm ? layerNorm(x, weights.layer("encoder_norm")) : x;
  }

  // Logits (token, vocabulary) of what follows each of these target ids. `cache` has the keys and values of those before, to
  // which theirs are added; {} is the beginning.
  decode(ids, memory, cache, edits, record) {
    const { config, weights } = this, first = cache.length ?? 0;
    let x = this.embed(weights.get("target_embedding.weight"), "target_norm", ids, first, config.embedding_scale === "both");
    for (let layer = 0; layer < config.n_decoder_layers; layer += 1) {
      const place = `decoder.${layer}`, own = { kind: "decoder", layer, first }, cross = { kind: "cross", layer, first };
      x = this.sublayer(x, place, "attention", (y) => this.attention(y, y, `${place}.attention`, own, edits, record, cache));
      x = this.sublayer(x, place, "cross_attention", (y) =>
        this.attention(y, memory, `${place}.cross_attention`, cross, edits, record, cache));
      x = this.sublayer(x, place, "feed_forward", (y) => this.feedForward(y, place));
    }
    cache.length = first + ids.length;
    if (config.final_norm) x = layerNorm(x, weights.layer("decoder_norm"));
    const weight = weights.get(config.tied_embeddings === "none" ? "output.weight" : "target_embedding.weight");
    return linear(x, { weight, bias: weights.get("output.bias") });
  }

  // Each token's vector, its row of a table, and where it stands.
  embed(table, norm, ids, first, scaled) {
    const { config, weights } = this, n = config.d_model, x = matrix(ids.length, n), learned = weights.get("positions.table");
    ids.forEach((id, row) => {
      const place = learned ? learned.values.subarray((first + row) * n, (first + row + 1) * n)
        : config.position === "sinusoid" ? sinusoid(first + row, n, config.sinusoid_base) : new Float64Array(n);
      const factor = scaled ? Math.sqrt(n) : 1;
      for (let i = 0; i < n; i += 1) x.values[row * n + i] = table.values[id * n + i] * factor + place[i];
    });
    return config.embedding_norm ? layerNorm(x, weights.layer(norm)) : x;
  }

  // A residual connection: what is computed is added to the stream. Models differ in where the norm stands.
  sublayer(x, place, name, compute) {
    const shared = this.config.shared_norm ? `${place}.norm` : `${place}.around_${name}.norm`;
    const norm = (y) => layerNorm(y, this.weights.layer(shared));
    if (this.config.norm === NORM_BEFORE) return add(x, compute(norm(x)));
    if (this.config.norm === NORM_AFTER) return norm(add(x, compute(x)));
    if (this.config.norm === NORM_WITHIN) return add(x, norm(compute(x)));
    throw new InputError(say("This page does not know where the norm stands: {norm}", { norm: this.config.norm }));
  }

  feedForward(x, place) {
    const inner = this.weights.layer(`${place}.feed_forward.inner`), outer = this.weights.layer(`${place}.feed_forward.outer`);
    return feedForward(x, { inner, outer }, this.config.activation);
  }

  // Attention of `x` to `memory`: to itself, or, where it is cross-attention, to what the encoder made of the source.
  attention(x, memory, name, site, edits, record, cache = {}) {
    const { weights, config: { n_heads: nHeads } } = this, layer = (part) => weights.layer(`${name}.${part}`);
    const query = linear(x, layer("query"));
    let [key, value] = cache[name] ?? [];
    if (!key || site.kind !== "cross") {
      const added = [linear(memory, layer("key")), linear(memory, layer("value"))];
      [key, value] = key ? [below(key, added[0]), below(value, added[1])] : added;
      cache[name] = [key, value];
    }
    const changes = edits.at(site, nHeads, query.rows, key.rows);
    const masked = changes.mask(futureMask(site, nHeads, query.rows, key.rows));
    const { weights: shares, heads } = attend(query, key, value, masked, nHeads, changes.weights);
    record(site, shares, masked, nHeads, query.rows, key.rows);
    return linear(changes.heads(heads), layer("out"));
  }
}

function below(upper, lower) {
  const values = new Float64Array(upper.values.length + lower.values.length);
  values.set(upper.values);
  values.set(lower.values, upper.values.length);
  return matrix(upper.rows + lower.rows, upper.columns, values);
}

// (head, query, key), 1 = masked: no token of the decoder may look at one that comes after it.
function futureMask({ kind, first }, nHeads, nQueries, nKeys) {
  const masked = new Uint8Array(nHeads * nQueries * nKeys);
  if (kind !== "decoder") return masked;
  return masked.map((_, place) => Number(place % nKeys > first + (Math.floor(place / nKeys) % nQueries)));
}

const OPTIONS = {
  strategy: (value) => ["greedy", "sample"].includes(value) || say("greedy or sample"),
  max_length: (value, most) => (Number.isInteger(value) && value >= 1 && value <= most) || say("a whole number from 1 to {most}", { most }),
  prefix: (value) => Array.isArray(value) || say("a list of tokens"),
  ban: (value) => Array.isArray(value) || say("a list of tokens"),
  edits: (value) => typeof value === "string" || say("a text such as cross.1.2:zero"),
  temperature: (value) => (value >= 0 && value <= 100) || say("a number from 0 to 100"),
  top_k: (value) => (Number.isInteger(value) && value >= 1) || say("a whole number from 1"),
  top_p: (value) => (value > 0 && value <= 1) || say("a number above 0, at most 1"),
  seed: (value) => (Number.isInteger(value) && value >= 0 && value < 2 ** 32) || say("a whole number from 0 below 2³²"),
  candidates: (value) => (Number.isInteger(value) && value >= 1 && value <= 100) || say("a whole number from 1 to {most}", { most: 100 }),
};

function checkOptions(options, most) {
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(OPTIONS, name)) throw new InputError(say("There is no option “{name}”; there are {names}.", { name: shown(name), names: Object.keys(OPTIONS).join(", ") }));
    const is = OPTIONS[name](value, most);
    if (is !== true) throw new InputError(say("{name} = {value} is not possible; it is {what}.", { name, value: shown(String(value)), what: is }));
  }
  return { strategy: "greedy", prefix: [], ban: [], edits: "", candidates: 10, ...options };
}

// Writes token after token; a generator that stops after each, so that whoever asks may do something else, or ask no more.
// Returns the run: what a Trace of the program has, with all arrays as they are there.
export function* decode(model, text, typed, options = {}) {
  const { config } = model, most = config.max_positions;
  const { max_length: maxLength = text.reading.longest, ...how } = checkOptions(options, most);
  const symbols = text.symbols(typed), source = text.encode(typed);
  const prefix = text.targetIds(how.prefix, later("The beginning: “{token}” is no token that this model writes."));
  const ban = text.targetIds(how.ban, later("Banned: “{token}” is no token that this model writes."));
  if (prefix.includes(END) || prefix.some((id) => ban.includes(id))) throw new InputError(say("The beginning holds <end>, or a banned token."));
  if (prefix.length > maxLength) throw new InputError(say("The beginning has {count} tokens; at most {most} are written.", { count: prefix.length, most: maxLength }));
  if (new Set(ban).size >= text.target.length) throw new InputError(say("Every token is banned; leave at least one."));
  const { n_encoder_layers: above, n_decoder_layers: below, n_heads: heads } = config;
  const edits = new Edits(how.edits, {
    encoder: { layers: above, heads, queries: source.length, keys: source.length },
    decoder: { layers: below, heads, queries: maxLength, keys: maxLength },
    cross: { layers: below, heads, queries: maxLength, keys: source.length },
  });

  const recorder = new Recorder(), record = recorder.record.bind(recorder), choose = chooser(how, ban);
  const memory = model.encode(source, edits, record);
  const written = [], steps = [];
  let cache = {};
  while (written.length < maxLength && written.at(-1) !== END) {
    yield written.length;
    if (edits.looksAhead) cache = {};
    const read = [START, ...written], rows = model.decode(read.slice(cache.length ?? 0), memory, cache, edits, record);
    const logits = rows.values.subarray((rows.rows - 1) * rows.columns);
    if (!logits.every(Number.isFinite)) throw new InputError(say("The model computes numbers that are not finite: its weights are too large."));
    const step = written.length, chosen = choose(logits);
    // Drawn where the beginning is given too, so that what comes later does not depend on it.
    const isGiven = step < prefix.length, id = isGiven ? prefix[step] : chosen.id;
    written.push(id);
    const drawn = isGiven && chosen.probability !== null ? 1 : chosen.probability;
    steps.push({ ...rankings(logits, id, how.candidates, text.target), sampling_probability: drawn });
  }

  // Edits stand in the run itself.
  const { edits: _, ...asked } = options;
  const tokens = written.map((id) => text.target[id]), { alignment, expected } = text.answer(symbols, written.length);
  return {
    source: typed,
    text: text.join(tokens),
    source_tokens: source.map((id) => text.source[id]),
    target_tokens: [START, ...written.slice(0, -1)].map((id) => text.target[id]),
    output_tokens: tokens,
    steps,
    attentions: recorder.attentions(),
    finished: written.at(-1) === END ? "end" : "length",
    alignment,
    source_letters: source.map((_, place) => (place > 0 && place < source.length - 1 ? place - 1 : null)),
    expected: expected && text.join(expected),
    expected_tokens: expected,
    edits: edits.texts,
    made_by: { strategy: "greedy", ...asked, max_length: maxLength },
  };
}

// How probable a written token was, and what was more so, best first: the softmax of the whole vocabulary, whatever is banned.
function rankings(logits, id, n, tokens) {
  const order = ranking(logits), most = logits[order[0]];
  const log = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0)) + most;
  const candidates = order.slice(0, n).map((other) => [tokens[other], Math.exp(logits[other] - log)]);
  const logarithm = logits[id] - log;
  return { token: tokens[id], probability: Math.exp(logarithm), log_probability: logarithm, rank: order.indexOf(id), candidates };
}

const FUTURE = 2;
const EDITED = 4;

// Keeps the weights and the mask of each query of each head. A row that is computed again takes the place of the earlier one.
class Recorder {
  constructor() {
    this.kinds = { encoder: [], decoder: [], cross: [] };
  }

  record({ kind, layer, first }, weights, masked, nHeads, nQueries, nKeys) {
    const heads = (this.kinds[kind][layer] ??= Array.from({ length: nHeads }, () => []));
    heads.forEach((rows, head) => {
      for (let row = 0; row < nQueries; row += 1) {
        const place = (head * nQueries + row) * nKeys;
        rows[first + row] = [weights.slice(place, place + nKeys), masked.slice(place, place + nKeys)];
      }
    });
  }

  // Of each kind the weights (layer, head, query, key), and why cells are masked: (query, key) where all heads agree.
  attentions() {
    return Object.fromEntries(Object.entries(this.kinds).map(([kind, layers]) => {
      const nQueries = layers[0][0].length, nKeys = layers[0][0].at(-1)[0].length;
      const shape = [layers.length, layers[0].length, nQueries, nKeys], size = nQueries * nKeys;
      const weights = new Float32Array(shape.reduce((a, b) => a * b)), reasons = new Uint8Array(weights.length);
      layers.flat().forEach((rows, head) => rows.forEach(([shares, masked], query) => {
        weights.set(shares, head * size + query * nKeys);
        for (let key = 0; key < nKeys; key += 1) {
          // What was not written yet when its row was computed was not seen.
          if (masked[key] ?? 1) reasons[head * size + query * nKeys + key] = kind === "decoder" && key > query ? FUTURE : EDITED;
        }
      }));
      const areAlike = reasons.every((code, place) => code === reasons[place % size]);
      return [kind, {
        weights: { values: weights, shape },
        reasons: areAlike ? { values: reasons.slice(0, size), shape: [nQueries, nKeys] } : { values: reasons, shape },
      }];
    }));
  }
}
