// Fills the traces of a second map, for test_second_map.py: reads {template, values, shape, until} from its input.
import { readFileSync } from "node:fs";
import { secondTraces } from "../../transformer_viz/viewer/secondmap.js";

const { template, values, shape: [rows, columns], until } = JSON.parse(readFileSync(0, "utf-8"));
const numbers = Float32Array.from(values, (value) => value ?? NaN);
const plain = (key, value) => (ArrayBuffer.isView(value) ? [...value].map((number) => (Number.isNaN(number) ? null : number)) : value);
process.stdout.write(JSON.stringify(secondTraces(template, numbers, { rows, columns, until }), plain));
