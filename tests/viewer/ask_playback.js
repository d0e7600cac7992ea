// Fills the figure of a training, for test_playback.py: reads {kind, run, place} from its input.
import { readFileSync } from "node:fs";
import { withMarks } from "../../transformer_viz/viewer/map.js";
import { Kind } from "../../transformer_viz/viewer/numbers.js";
import { playbackFigure, withNow } from "../../transformer_viz/viewer/playback.js";

const { kind: data, run, place } = JSON.parse(readFileSync(0, "utf-8"));
const kind = new Kind(data, run.pieces), figure = playbackFigure(kind, place, run);
const { data: traces, layout } = withNow({ ...withMarks(figure), marks: figure.marks }, kind.picture.ways);
const said = kind.sentencesOf(place.layer, place.head)[place.moment].map(([, text]) => text).join("");
const plain = (key, value) => (ArrayBuffer.isView(value) ? [...value].map((number) => (Number.isNaN(number) ? null : number)) : value);
process.stdout.write(JSON.stringify({ traces, names: layout.yaxis3.ticktext, said, looked: kind.by(String(place.moment)).lookedAt(place.layer, place.head, place.position) }, plain));
