// Fills the traces of a map of A − B, for test_difference.py: reads {template, a, b} from its input.
import { readFileSync } from "node:fs";
import { differenceFigure } from "../../transformer_viz/viewer/difference.js";

const { template, a, b } = JSON.parse(readFileSync(0, "utf-8"));
const side = ({ weights, ...others }) => ({ ...others, weights: Float32Array.from(weights, (value) => value ?? NaN) });
const plain = (key, value) => (ArrayBuffer.isView(value) ? [...value].map((number) => (Number.isNaN(number) ? null : number)) : value);
process.stdout.write(JSON.stringify(differenceFigure(template, template.wide, side(a), side(b)), plain));
