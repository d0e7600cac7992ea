// @ts-check
// Numbers as bytes in base64, as Plotly's figures and a run carry them.

const ARRAYS = {
  f4: Float32Array, f8: Float64Array, i1: Int8Array, i2: Int16Array, i4: Int32Array,
  u1: Uint8Array, u2: Uint16Array, u4: Uint32Array,
};

// All numbers, row after row, and the sizes along each axis. Plotly writes these as text, "3,4", and none for a single axis.
// Numbers that are no bytes any more stay as they are.
export function unpacked({ dtype, shape, bdata, values: numbers }) {
  if (numbers) return { values: numbers, shape };
  const values = new ARRAYS[dtype](bytesOf(bdata).buffer);
  return { values, shape: shape ? String(shape).split(",").map(Number) : [values.length] };
}

export function bytesOf(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  // A loop takes a fifth of the time of `Uint8Array.from`: 4 ms of an Enter.
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// Numbers that travelled as bytes stay bytes in Plotly's data. A matrix becomes an array of rows.
export function numbersOf(values) {
  if (!values?.bdata) return values ?? [];
  const { values: flat, shape: [rows, columns] } = unpacked(values);
  return !columns ? flat : Array.from({ length: rows }, (_, row) => flat.subarray(row * columns, (row + 1) * columns));
}
