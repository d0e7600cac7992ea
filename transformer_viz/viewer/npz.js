// @ts-check
// A run as the file that the program opens: a zip of `.npy` arrays and one `meta.json`, nothing compressed.

const utf8 = new TextEncoder();

// trace: all of it but the arrays, as JSON; arrays: [member's name, {values, shape}].
export function npzFile(trace, arrays) {
  const members = arrays.map(([name, array]) => [`${name}.npy`, npy(array)]);
  return zipped([...members, ["meta.json", utf8.encode(JSON.stringify({ format: 1, ...trace }))]]);
}

// What numpy writes before an array, and its numbers; the header ends at a multiple of 64 bytes.
function npy({ values, shape }) {
  const descr = { Float32Array: "<f4", Uint8Array: "|u1" }[values.constructor.name];
  const axes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const words = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${axes}), }`;
  const header = words.padEnd(Math.ceil((10 + words.length + 1) / 64) * 64 - 11) + "\n";
  const start = Uint8Array.of(0x93, ...utf8.encode("NUMPY"), 1, 0, header.length & 255, header.length >> 8);
  return joined([start, utf8.encode(header), new Uint8Array(values.buffer, values.byteOffset, values.byteLength)]);
}

function zipped(members) {
  const parts = [], directory = [];
  let at = 0;
  for (const [name, content] of members) {
    const path = utf8.encode(name);
    // Version, flags, method, time and date (2017-06-12), checksum, sizes, lengths of the name and of nothing more.
    const about = [[20, 2], [0, 2], [0, 2], [0, 2], [0x4acc, 2], [checksum(content), 4], [content.length, 4], [content.length, 4],
      [path.length, 2], [0, 2]];
    const local = joined([wholeNumbers([[0x04034b50, 4], ...about]), path, content]);
    directory.push(wholeNumbers([[0x02014b50, 4], [20, 2], ...about, [0, 2], [0, 2], [0, 2], [0, 4], [at, 4]]), path);
    parts.push(local);
    at += local.length;
  }
  const list = joined(directory), n = members.length;
  return joined([...parts, list, wholeNumbers([[0x06054b50, 4], [0, 2], [0, 2], [n, 2], [n, 2], [list.length, 4], [at, 4], [0, 2]])]);
}

function wholeNumbers(all) {
  return Uint8Array.from(all.flatMap(([number, n]) => Array.from({ length: n }, (_, i) => (number >>> (8 * i)) & 255)));
}

function joined(parts) {
  const whole = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  parts.reduce((at, part) => { whole.set(part, at); return at + part.length; }, 0);
  return whole;
}

// CRC-32, as a zip has it.
function checksum(bytes) {
  let sum = -1;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
