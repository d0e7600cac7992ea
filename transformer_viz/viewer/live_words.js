// @ts-check
// The words of a run that was made in this page, as the program says them of a saved run: strips, sentences, candidates.
import { percentWords, probabilityWords } from "./brief.js";
import { later, say, saySentence } from "./language.js";

const MOST_WORDS = 120;
const N_CANDIDATES = 6;
const ROWS = {
  encoder: later("row = the source {unit} that looks"), decoder: later("row = the {unit} being written"),
  cross: later("row = the {unit} being written"),
};

export const shorten = (text, most = 40) => {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
};

// A text whose blanks are something to see.
export function displayText(text) {
  const named = (sign) => `<U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
  return text.replace(/[\p{Cc} ]/gu, (sign) => ({ "\n": "↵", "\t": "⇥", " ": "␣" })[sign] ?? named(sign));
}

export const displayToken = (token, most) => displayText(shorten(token, most));
const code = (text) => ["code", shorten(displayText(text), MOST_WORDS)];

// The place of a token, and of a step, in a sentence.
const placeWords = (place) => say("{noun} {place}", { noun: say("token"), place: place + 1 });
const stepWords = (step) => say("step {step}", { step: step + 1 });

// Text as Plotly draws it literally.
export function escaped(text) {
  const marks = { "&": "&amp;", "<": "&lt;", ">": "&gt;", $: "&#36;" };
  const safe = text.replace(/[&<>$]/g, (sign) => marks[sign])
    .replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (sign) => `\\u${sign.codePointAt(0).toString(16).padStart(4, "0")}`);
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(safe) ? safe.replaceAll("→", "\u200e→\u200e") : safe;
}

const isSpecial = (token) => ["<pad>", "<start>", "<end>", "<unk>"].includes(token);
export const placeLabels = (tokens) => tokens.map((token, place) => `${place + 1}·${displayToken(token)}`);

// What a person calls one of these tokens.
export function unitWords(tokens) {
  const own = tokens.filter((token) => !isSpecial(token));
  return own.every((token) => Array.from(token).length === 1) && own.some((token) => /\p{L}/u.test(token)) ? say("letter") : say("token");
}

export function legendOf(kind, trace) {
  const own = trace.source_tokens.filter((_, place) => trace.source_letters[place] !== null);
  const read = unitWords(own), written = unitWords(trace.target_tokens);
  const parts = [
    say(ROWS[kind], { unit: kind === "encoder" ? read : written }), say("column = the {unit} looked at", { unit: kind === "decoder" ? written : read }),
    say("stronger colour = more"),
    ...(kind === "decoder" ? [say("grey = masked")] : []),
    ...(kind === "cross" && trace.alignment.some((key) => key !== null) ? [say("ring = where the {unit} comes from", { unit: written })] : []),
  ];
  return parts.join(" · ");
}

// About how wide a label is, in pixels.
export function textWidth(label, size) {
  const share = (sign) => {
    if (/\p{M}/u.test(sign)) return 0;
    if (/[ᄀ-ᅟ⺀-〾ぁ-㏿㐀-䶿一-鿿ꀀ-꓏가-힣豈-﫿︰-﹯！-｠￠-￦]|\p{Emoji_Presentation}/u.test(sign)) return 1;
    if ("fijlrtI.,:;'|!()[]· ".includes(sign)) return 0.32;
    if ("mwMW@%→…␣<>".includes(sign)) return 0.85;
    return /\p{Lu}/u.test(sign) ? 0.65 : 0.52;
  };
  return size * Array.from(label).reduce((sum, sign) => sum + share(sign), 0);
}

// ---- numbers in words; nothing is rounded to what it is not

// ---- the strips

export function sourceStrip({ source_tokens: tokens }) {
  return tokens.map((token, place) => ({
    text: displayToken(token),
    title: say("{place}: {token}", { place: placeWords(place), token: displayToken(token) }),
    class: isSpecial(token) ? "special" : "",
  }));
}

export function outputStrip({ output_tokens: tokens, expected_tokens: expected, steps }) {
  return tokens.map((token, t) => {
    const right = expected?.[t], isWrong = right !== undefined && right !== token, p = steps[t].probability;
    const named = say("{place}: {token}", { place: stepWords(t), token: displayToken(token) });
    const title = say("{token}, probability {p}", { token: named, p: probabilityWords(p, 2) });
    return {
      text: displayToken(token),
      title: isWrong ? say("{token}; the right token is {right}", { token: title, right: displayToken(right) }) : title,
      class: (isSpecial(token) ? "special" : "") + (isWrong ? " wrong" : ""),
      tint: Number(p.toFixed(4)),
    };
  });
}

// Whether the output is right: words, and what kind of words; null where this page does not know the answer.
export function answerMark(trace) {
  const { expected_tokens: expected, output_tokens: written, finished } = trace, hasEnded = finished === "end";
  if (!expected) {
    // An output that ends where something is left to be read is wrong, though nobody knows the answer.
    const step = hasEnded ? written.length - 1 : -1, key = trace.alignment[step] ?? null;
    if (key !== null && trace.source_letters[key] !== null) {
      const fields = { wrong: ["strong", say("wrong")], token: code(shorten(displayText(trace.source_tokens[key]))), place: placeWords(key) };
      return { class: "wrong", words: saySentence("{wrong}, ends before {token} ({place}) is read", fields) };
    }
    return null;
  }
  if (hasEnded && trace.text === trace.expected) return { class: "right", words: [["strong", say("what the model wrote is right")]] };
  const differing = Array.from({ length: Math.max(written.length, expected.length) }).findIndex((_, t) => written[t] !== expected[t]);
  const isCut = differing === written.length && !hasEnded;
  if (isCut || (differing < 0 && !hasEnded)) return {
    class: "unfinished", words: saySentence("{unfinished}, right so far", { unfinished: ["strong", say("unfinished")] }),
  };
  const right = trace.expected ? ["code", shorten(displayText(trace.expected), 160)] : say("nothing");
  const fields = { wrong: ["strong", say("wrong")], text: right, step: stepWords(differing) };
  return { class: "wrong", words: saySentence("{wrong}, expected {text}, differs from {step} on", fields) };
}

// The head of cross-attention with the most weight on the true keys: its layer, its number in that, and this weight.
export function bestHead({ attentions: { cross }, alignment }) {
  const [layers, heads, rows, keys] = cross.weights.shape;
  const known = alignment.flatMap((key, t) => (key === null ? [] : [[t, key]]));
  if (!known.length) return null;
  const masses = Array.from({ length: layers * heads }, (_, head) =>
    known.reduce((sum, [t, key]) => sum + cross.weights.values[(head * rows + t) * keys + key], 0) / known.length);
  const most = Math.max(...masses), best = masses.indexOf(most);
  return [Math.floor(best / heads), best % heads, most];
}

export function bestHeadWords(trace) {
  const best = bestHead(trace);
  if (!best) return null;
  const head = `L${best[0] + 1} H${best[1] + 1}`;
  return say("best cross head: {head}, {share} on the right token", { head, share: percentWords(best[2]) });
}

// What the bars of a step are: the best candidates, and the step's own token in the last place where it is not among them.
export function candidatesOf({ token, probability, candidates }) {
  const first = candidates.slice(0, N_CANDIDATES);
  const best = first.some(([name]) => name === token) ? first : [...first.slice(0, N_CANDIDATES - 1), [token, probability]];
  return {
    x: best.map(([, p]) => p),
    text: best.map(([, p]) => probabilityWords(p, p > 0 && p < 0.01 ? 2 : 0)),
    textposition: best.map(([, p]) => (p >= 0.5 ? "inside" : "outside")),
    customdata: best.map(([name, p]) => [escaped(displayToken(name)), probabilityWords(p, 2)]),
    names: best.map(([name]) => `<b>${barName(name)}</b>`),
    chosen: best.map(([name]) => name === token),
  };
}

// Cut where it would lie over the map beside it.
function barName(token) {
  for (let most = 14; most > 1; most -= 1) {
    if (textWidth(displayToken(token, most), 1) <= 6.3) return escaped(displayToken(token, most));
  }
  return escaped(displayToken(token, 1));
}

// ---- the sentences of a head, one for each step

export function sentencesOf(kind, trace, { layer, head }) {
  const { output_tokens: written, steps, expected_tokens: expected } = trace, n = written.length, isEncoder = kind.linked.kind === "encoder";
  return written.map((token, t) => {
    const soFar = trace.spelt(written.slice(0, t)), shown = Array.from(soFar);
    const text = shown.length <= MOST_WORDS ? soFar : `…${shown.slice(1 - MOST_WORDS).join("")}`;
    const read = text ? saySentence("having written {text}", { text: code(text) }) : saySentence("having written nothing yet");
    const begin = [["strong", say("Step {step} of {n}: ", { step: t + 1, n })], ...read];
    const right = expected?.[t], isWrong = right !== undefined && right !== token;
    const fields = { token: code(token), p: probabilityWords(steps[t].probability) };
    let end = isEncoder ? saySentence(", the model writes {token} (probability {p}).", fields) : saySentence(" and the model writes {token} (probability {p}).", fields);
    if (isWrong) end = saySentence("{end} The right token: {token}.", { end, token: code(right) });
    if (isEncoder) {
      return [...begin, ...saySentence("{end} The encoder read the whole source before the first step: its maps are the same at every step.", { end })];
    }
    const named = kind.names[layer][kind.headNumber(head)];
    return saySentence("{begin}, {head} {look}{end}", { begin, head: named, look: looksWords(kind, layer, head, t), end });
  });
}

function looksWords(kind, layer, head, t) {
  const row = kind.weightsOf(layer, head).subarray(t * kind.columns, (t + 1) * kind.columns);
  const most = row.reduce((a, b) => Math.max(a, b), 0), key = row.indexOf(most);
  if (most === 0) return saySentence("may look at nothing");
  const at = saySentence("{token} ({place})", { token: code(kind.tokens[key]), place: placeWords(key) });
  return saySentence("looks {share} at {key}", { share: percentWords(most), key: at });
}
