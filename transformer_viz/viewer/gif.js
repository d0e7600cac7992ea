// @ts-check
// Pictures that move, as a GIF file (GIF89a): one table of colours for all frames, and of each frame only what has changed.
// https://www.w3.org/Graphics/GIF/spec-gif89a.txt

/** Bits of a channel by which colours are told apart, and colours of a file; the last one stands for what has not changed. */
const BITS = 5;
const COLOURS = 256;
const SAME = 255;
const MOST_CODES = 4096;
const LARGEST_BLOCK = 255;

/** @typedef {{pixels: Uint8ClampedArray, ms: number}} Frame red, green, blue and alpha of each pixel, and how long it is seen */

/**
 * The bytes of a GIF that repeats for ever.
 * @param {Frame[]} frames
 * @param {number} width
 * @param {number} height
 * @param {() => Promise<void>} [pause] between two frames, so that a page can go on
 */
export async function gifOf(frames, width, height, pause = async () => {}) {
  const { colours, nearest } = paletteOf(frames), out = new Bytes();
  out.text("GIF89a");
  out.words(width, height);
  out.bytes(0xf7, 0, 0, ...colours);
  out.bytes(0x21, 0xff, 11);
  out.text("NETSCAPE2.0");
  out.bytes(3, 1, 0, 0, 0);
  let before = null;
  for (const { pixels, ms } of frames) {
    const codes = codesOf(pixels, nearest), changed = codes.slice();
    if (before) for (let i = 0; i < changed.length; i += 1) if (codes[i] === before[i]) changed[i] = SAME;
    out.bytes(0x21, 0xf9, 4, before ? 0b101 : 0b100);
    out.words(Math.round(ms / 10));
    out.bytes(SAME, 0, 0x2c);
    out.words(0, 0, width, height);
    out.bytes(0, 8);
    out.blocks(packedCodes(changed));
    before = codes;
    await pause();
  }
  out.bytes(0x3b);
  return out.all();
}

const binOf = (pixels, i) => ((pixels[i] >> 3) << (2 * BITS)) | ((pixels[i + 1] >> 3) << BITS) | (pixels[i + 2] >> 3);

/**
 * The colours that most pixels have, and for each other one the nearest of them.
 * @param {Frame[]} frames
 */
function paletteOf(frames) {
  const n = 1 << (3 * BITS), counts = new Float64Array(n), sums = [0, 1, 2].map(() => new Float64Array(n));
  for (const { pixels } of frames) {
    for (let i = 0; i < pixels.length; i += 4) {
      const bin = binOf(pixels, i);
      counts[bin] += 1;
      for (let c = 0; c < 3; c += 1) sums[c][bin] += pixels[i + c];
    }
  }
  const found = [...counts.keys()].filter((bin) => counts[bin]), mean = (bin) => sums.map((sum) => sum[bin] / counts[bin]);
  const kept = found.sort((a, b) => counts[b] - counts[a]).slice(0, COLOURS - 1).map(mean), nearest = new Uint8Array(n);
  for (const bin of found) {
    const colour = mean(bin), far = (other) => other.reduce((sum, value, c) => sum + (value - colour[c]) ** 2, 0);
    nearest[bin] = kept.reduce((best, other, i) => (far(other) < far(kept[best]) ? i : best), 0);
  }
  const colours = Array.from({ length: COLOURS }, (_, i) => (kept[i] ?? [0, 0, 0]).map(Math.round)).flat();
  return { colours, nearest };
}

function codesOf(pixels, nearest) {
  const codes = new Uint8Array(pixels.length / 4);
  for (let i = 0; i < codes.length; i += 1) codes[i] = nearest[binOf(pixels, 4 * i)];
  return codes;
}

/**
 * Lempel, Ziv and Welch's codes of bytes, with as many bits each as are needed.
 * @param {Uint8Array} codes
 */
export function packedCodes(codes) {
  const clear = 256, end = 257, out = [];
  let bits = 0, held = 0, size = 9, next = end + 1;
  /** @type {Map<number, number>} */
  let known = new Map();
  const write = (code) => {
    held |= code << bits;
    for (bits += size; bits >= 8; bits -= 8, held >>>= 8) out.push(held & 255);
  };
  write(clear);
  let prefix = codes[0];
  for (let i = 1; i < codes.length; i += 1) {
    const key = (prefix << 8) | codes[i], longer = known.get(key);
    if (longer !== undefined) {
      prefix = longer;
      continue;
    }
    write(prefix);
    if (next < MOST_CODES) {
      if (next === 1 << size) size += 1;
      known.set(key, next);
      next += 1;
    } else {
      write(clear);
      known = new Map();
      [size, next] = [9, end + 1];
    }
    prefix = codes[i];
  }
  write(prefix);
  // A reader has taken one more code by then.
  if (next === 1 << size && size < 12) size += 1;
  write(end);
  if (bits) out.push(held & 255);
  return Uint8Array.from(out);
}

class Bytes {
  constructor() {
    /** @type {Uint8Array[]} */
    this.parts = [];
  }

  bytes(...values) {
    this.parts.push(Uint8Array.from(values));
  }

  words(...values) {
    this.bytes(...values.flatMap((value) => [value & 255, value >> 8]));
  }

  text(words) {
    this.bytes(...[...words].map((letter) => letter.charCodeAt(0)));
  }

  blocks(data) {
    for (let i = 0; i < data.length; i += LARGEST_BLOCK) {
      const block = data.subarray(i, i + LARGEST_BLOCK);
      this.bytes(block.length);
      this.parts.push(block);
    }
    this.bytes(0);
  }

  all() {
    const all = new Uint8Array(this.parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of this.parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
}
