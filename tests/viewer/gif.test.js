// @ts-check
import assert from "node:assert/strict";
import test from "node:test";
import { gifOf, packedCodes } from "../../transformer_viz/viewer/gif.js";

// A reader of its own, as the specification has it: codes of 9 bits that grow as its table does.
function unpackedCodes(data) {
  let at = 0, size = 9, table = [], before = null;
  const out = [];
  const begin = () => {
    table = Array.from({ length: 258 }, (_, i) => [i]);
    [size, before] = [9, null];
  };
  const read = () => {
    let code = 0;
    for (let bit = 0; bit < size; bit += 1, at += 1) code |= ((data[at >> 3] >> (at & 7)) & 1) << bit;
    return code;
  };
  begin();
  for (;;) {
    const code = read();
    if (code === 257) return out;
    if (code === 256) {
      begin();
      continue;
    }
    const entry = code < table.length ? table[code] : [...before, before[0]];
    for (const value of entry) out.push(value);
    if (before && table.length < 4096) table.push([...before, entry[0]]);
    before = entry;
    if (table.length === 1 << size && size < 12) size += 1;
  }
}

test("what was packed is read again, of one colour, of noise, and where the table is full", () => {
  let seed = 7;
  const noise = () => (seed = (seed * 16807) % 2147483647);
  for (const [length, colours] of [[1, 1], [5, 2], [700, 1], [3000, 3], [20000, 256], [90000, 17]]) {
    const codes = Uint8Array.from({ length }, () => noise() % colours);
    assert.deepEqual(unpackedCodes(packedCodes(codes)), [...codes]);
  }
});

test("a file says its size, repeats, and has a picture and a time for each frame", async () => {
  const frame = (value) => ({ pixels: new Uint8ClampedArray([value, 0, 0, 255, 0, value, 0, 255]), ms: 250 });
  const bytes = await gifOf([frame(255), frame(128)], 2, 1), text = String.fromCharCode(...bytes);
  assert.ok(text.startsWith("GIF89a") && text.includes("NETSCAPE2.0") && bytes.at(-1) === 0x3b);
  assert.deepEqual([...bytes.slice(6, 10)], [2, 0, 1, 0]);
  assert.equal(text.split("\x21\xf9\x04").length - 1, 2);
  assert.equal(text.split("\x21\xf9\x04")[1].charCodeAt(1), 25);
});
