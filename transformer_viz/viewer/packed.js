// @ts-check
// The heads of a large run in a page, each packed alone, as `export/packed_heads.py` does it, and unpacked when it is chosen.
import { bytesOf } from "./arrays.js";
import { combine } from "./numbers.js";

const NOT_A_NUMBER = 65535;

/**
 * A run whose heads come in parts, or as it is where it is small.
 * @param {any} run as `content.py` gives it
 * @returns {Promise<any>}
 */
export async function unpackedRun(run) {
  for (const { reasons } of Object.values(run.kinds)) {
    if (reasons?.deflated) reasons.values = await inflated(reasons.deflated);
  }
  return { ...run, part: (kind, layer, head) => partOf(run.kinds[kind], layer, head) };
}

/** What of a run in parts the app sends of a head (`packed_heads.exact_part`). */
export function exactPart({ weights, sentences, reasons }) {
  return partFrom(...[weights, sentences, reasons].map((text) => text && bytesOf(text)));
}

/** The same, as bytes. */
export async function partFrom(weights, sentences, reasons = null) {
  const [numbers, said, codes] = await Promise.all([weights, sentences, reasons].map((bytes) => bytes && unpackedAs("deflate-raw", bytes)));
  return {
    weights: { values: float32Of(numbers) }, reasons: codes && { values: codes },
    sentences: JSON.parse(new TextDecoder().decode(said)),
  };
}

/** The bytes that Python's gzip has packed. */
export function unzipped(bytes) {
  return unpackedAs("gzip", bytes);
}

/** The first bytes of all numbers, then the second ones and so on. */
export function float32Of(planes) {
  const size = planes.length / 4, bytes = new Uint8Array(planes.length);
  for (let i = 0, at = 0; i < size; i += 1) for (let from = i; from < planes.length; from += size) bytes[at++] = planes[from];
  return new Float32Array(bytes.buffer);
}

/** The numbers and sentences of a layer's head; of its mean and maximum as of all its heads. */
async function partOf({ packed, shape: [, heads, rows, columns], numbers }, layer, head) {
  const of = (one) => packed[`${numbers.indexOf(layer)} ${one}`], isOne = Number.isInteger(head);
  const all = isOne ? [head] : Array.from({ length: heads }, (_, one) => one);
  const [said, ...maps] = await Promise.all([of(head).sentences, ...all.map((one) => of(one).weights)].map(inflated));
  const weights = maps.map((bytes) => mapOf(bytes, rows, columns));
  return {
    weights: { values: isOne ? weights[0] : combine(heads, (one) => weights[one], head) },
    sentences: said && JSON.parse(new TextDecoder().decode(said)),
  };
}

/** The weights in the bytes of a head: the scales of the rows, the low bytes of all numbers, and the high ones. */
export function mapOf(bytes, rows, columns) {
  const scales = new Float32Array(bytes.buffer, bytes.byteOffset, rows), size = rows * columns, low = 4 * rows, high = low + size;
  const weights = new Float32Array(size);
  for (let row = 0, i = 0; row < rows; row += 1) {
    for (let end = i + columns; i < end; i += 1) {
      const whole = bytes[low + i] | (bytes[high + i] << 8);
      weights[i] = whole === NOT_A_NUMBER ? NaN : whole * scales[row];
    }
  }
  return weights;
}

// Nothing of nothing.
async function inflated(text) {
  return text ? unpackedAs("deflate-raw", bytesOf(text)) : null;
}

async function unpackedAs(format, bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
