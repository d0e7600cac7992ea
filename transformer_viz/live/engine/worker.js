// @ts-check
// The engine in a thread of its own, so that the page never stands still. It is sent the model, and then texts.
//
// {model, words} → {isReady} · {id, text, options} → {id, run}, or {id, error} · {cancel: id}: that run is not wanted any more.
import { speak } from "../../viewer/language.js";
import { decode, Model } from "./decode.js";
import { InputError, Text } from "./text.js";
import { Weights } from "./weights.js";

let loaded;
const cancelled = new Set();

// Messages that have come meanwhile are read before this goes on.
function pause() {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => { port1.close(); resolve(); };
    port2.postMessage(null);
  });
}

async function load(model) {
  return [new Model(model.config, await Weights.unpack(model.weights)), new Text(model)];
}

async function answer({ id, text, options }) {
  const steps = decode(...(await loaded), text, options);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await pause();
    if (cancelled.delete(id)) return null;
  }
}

onmessage = async ({ data }) => {
  if (data.cancel !== undefined) return cancelled.add(data.cancel);
  try {
    if (!data.model) return postMessage({ id: data.id, run: await answer(data) });
    speak(data.words);
    loaded = load(data.model);
    await loaded;
    return postMessage({ isReady: true });
  } catch (error) {
    return postMessage({ id: data.id, error: error.message, isTold: error instanceof InputError });
  }
};
