// @ts-check
// The numbers of a trained model, as they stand in the page: whole numbers of 16 bits with one scale a row, or float32, all of
// them one after the other, gzipped, in base64.
import { say } from "../../viewer/language.js";
import { matrix } from "./attention.js";

export class Weights {
  // data: base64; tensors: [name, "i2" or "f4", shape] in their order.
  static async unpack({ data, tensors }) {
    try {
      const packed = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      return new Weights(await new Response(stream).arrayBuffer(), tensors);
    } catch (error) {
      throw new Error(say("The weights in this file are damaged. Copy or download the file again."), { cause: error });
    }
  }

  constructor(buffer, tensors) {
    this.tensors = new Map();
    let at = 0;
    const take = (Type, n) => {
      const values = new Type(buffer, at, n);
      // Each array begins at a multiple of four bytes.
      at += Math.ceil(values.byteLength / 4) * 4;
      return values;
    };
    for (const [name, dtype, shape] of tensors) {
      const rows = shape.length > 1 ? shape[0] : 1, columns = shape.at(-1);
      if (dtype === "f4") {
        this.tensors.set(name, matrix(rows, columns, take(Float32Array, rows * columns)));
        continue;
      }
      const scales = take(Float32Array, rows), whole = take(Int16Array, rows * columns);
      const values = Float32Array.from(whole, (number, i) => number * scales[Math.floor(i / columns)]);
      this.tensors.set(name, matrix(rows, columns, values));
    }
    if (at !== buffer.byteLength) throw new Error("more numbers than were expected, or fewer");
  }

  // A matrix by its name, or null where this model has none, as biases that were left out.
  get(name) {
    return this.tensors.get(name) ?? null;
  }

  // What a linear layer or a norm has.
  layer(name) {
    return { weight: this.get(`${name}.weight`), bias: this.get(`${name}.bias`) };
  }
}

// What is added to a token's vector for where it stands (section 3.5): a sine on even channels, a cosine on odd ones, whose
// wavelengths grow from 2π to 2π · base.
export function sinusoid(position, width, base) {
  return Float64Array.from({ length: width }, (_, i) => {
    const angle = position * base ** (-(i - (i % 2)) / width);
    return i % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}
