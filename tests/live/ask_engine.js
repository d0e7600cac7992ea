// Asks the engine of live pages, for test_engine.py: reads {model, cases} or {weights} from its input, and writes what came of it.
import { readFileSync } from "node:fs";
import { decode, Model } from "../../transformer_viz/live/engine/decode.js";
import { InputError, Text } from "../../transformer_viz/live/engine/text.js";
import { Weights } from "../../transformer_viz/live/engine/weights.js";

async function runs(data, cases) {
  const model = new Model(data.config, await Weights.unpack(data.weights)), text = new Text(data);
  return cases.map(([typed, options]) => {
    try {
      const steps = decode(model, text, typed, options);
      let step = steps.next();
      while (!step.done) step = steps.next();
      const { attentions, ...run } = step.value;
      const plain = ({ values, shape }) => ({ values: Array.from(values), shape });
      const one = ([kind, { weights, reasons }]) => [kind, { weights: plain(weights), reasons: plain(reasons) }];
      return { ...run, attentions: Object.fromEntries(Object.entries(attentions).map(one)) };
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      return { error: error.message };
    }
  });
}

const { model, cases, weights } = JSON.parse(readFileSync(0, "utf-8"));
const answer = weights ? await Weights.unpack(weights).then(() => "taken", (error) => error.message) : await runs(model, cases);
process.stdout.write(JSON.stringify(answer));
