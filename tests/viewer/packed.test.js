import assert from "node:assert/strict";
import test from "node:test";
import { deflateRawSync } from "node:zlib";
import { Kind } from "../../transformer_viz/viewer/numbers.js";
import { exactPart, mapOf, unpackedRun } from "../../transformer_viz/viewer/packed.js";

const SCALE = 0.25;

function bytesOf(wholes, rows) {
  const scales = new Uint8Array(Float32Array.from({ length: rows }, (_, row) => SCALE * (row + 1)).buffer);
  return Uint8Array.of(...scales, ...wholes.map((one) => one & 255), ...wholes.map((one) => one >> 8));
}

const packedOf = (bytes) => deflateRawSync(bytes).toString("base64");
const sentences = (word) => packedOf(new TextEncoder().encode(JSON.stringify([[["plain", word]], [["plain", "…"]]])));

// Two layers, of which the second is the model's sixth, of two heads of two rows by three keys.
function run() {
  const head = (first) => ({ weights: packedOf(bytesOf([first, 2, 3, 4, 5, 65535], 2)), sentences: sentences(`from ${first}`) });
  const packed = { "1 0": head(257), "1 1": head(1), "1 mean": { sentences: sentences("mean") }, "1 max": { sentences: sentences("max") } };
  const reasons = { dtype: "u1", shape: [2, 2, 2, 3], deflated: packedOf(Uint8Array.of(...Array(12).fill(0), 4, ...Array(11).fill(0))) };
  return { kinds: { cross: { shape: [2, 2, 2, 3], numbers: [0, 5], packed, reasons, picture: { masked: {} } } } };
}

test("the low and the high bytes are numbers again, and a number that is none stays none", () => {
  assert.deepEqual([...mapOf(bytesOf([0, 1, 256, 65534, 65535, 513], 2), 2, 3)], [0, 0.25, 64, 32767, NaN, 256.5]);
});

test("a head comes by its layer's number, with its sentences", async () => {
  const { part } = await unpackedRun(run()), { weights, sentences } = await part("cross", 5, 0);
  assert.deepEqual([...weights.values], [64.25, 0.5, 0.75, 2, 2.5, NaN]);
  assert.deepEqual(sentences[0], [["plain", "from 257"]]);
});

test("a layer's mean and maximum are made of all its heads", async () => {
  const { part } = await unpackedRun(run()), mean = await part("cross", 5, "mean"), max = await part("cross", 5, "max");
  assert.deepEqual([...mean.weights.values.subarray(0, 3)], [32.25, 0.5, 0.75]);
  assert.equal(max.weights.values[0], 64.25);
  assert.deepEqual(max.sentences[0], [["plain", "max"]]);
});

test("a kind takes such a head, and its masks are there before", async () => {
  const unpacked = await unpackedRun(run()), kind = new Kind(unpacked.kinds.cross);
  assert.deepEqual([kind.has(1, 0), [...kind.reasonsOf(1, 0)].join("")], [false, "400000"]);
  kind.add(1, 0, await unpacked.part("cross", 5, 0));
  assert.equal(kind.weightsOf(1, 0)[0], 64.25);
  assert.deepEqual(kind.sentencesOf(1, 0)[0], [["plain", "from 257"]]);
});

test("a small run stays as it is", async () => {
  const small = { kinds: { cross: { weights: { values: [1], shape: [1, 1, 1, 1] }, reasons: { values: [0], shape: [1, 1] } } } };
  assert.deepEqual((await unpackedRun(small)).kinds, small.kinds);
});

test("the app's part has every number as it is, its sentences, and its reasons where it has some", async () => {
  const numbers = Float32Array.of(0, 0.1, 1, NaN, 1e-30, 0.75), bytes = new Uint8Array(numbers.buffer);
  const planes = Uint8Array.from(bytes, (_, at) => bytes[4 * (at % numbers.length) + Math.floor(at / numbers.length)]);
  const part = { weights: packedOf(planes), sentences: sentences("here") };
  const { weights, sentences: said, reasons } = await exactPart(part);
  assert.deepEqual(weights.values, numbers);
  assert.deepEqual(said[0], [["plain", "here"]]);
  assert.equal(reasons, null);
  assert.deepEqual((await exactPart({ ...part, reasons: packedOf(Uint8Array.of(0, 4)) })).reasons.values, Uint8Array.of(0, 4));
});
