// @ts-check
// All heads of a kind as small maps, of which those in focus have a strong frame.
import { tilesOf } from "./cells.js";

const FRAME_PX = 2.5;

// Which tiles are those in focus; of the mean and the maximum a whole layer.
export function tilesInFocus({ meta }, { layer, head }) {
  return tilesOf(meta).map((tile) => tile.layer === layer && (tile.head === head || !Number.isInteger(head)));
}

// What is marked over small maps: the frames of those in focus as boxes, in cells, and their captions [x, y, text].
export function focusOf({ data, layout }, place) {
  const isOn = tilesInFocus(layout, place), captions = data.at(-1), n = captions.text?.length ?? 0;
  const boxes = tilesOf(layout.meta).filter((_, i) => isOn[i]).map(({ x, y, columns, rows }) =>
    [x - 0.5, y - 0.5, x + columns - 0.5, y + rows - 0.5]);
  const words = Array.from({ length: n }, (_, i) => [captions.x[i], captions.y[i], captions.text[i]]).filter((_, i) => isOn[i]);
  return { boxes, words, font: captions.textfont ?? {}, width: FRAME_PX };
}

// Small maps with these marks as traces of their own, as Python draws them; the thin frames and the captions are their last.
export function outlined({ data, layout }, place, { accent, muted }) {
  const [frames, captions] = data.slice(-2), { boxes } = focusOf({ data, layout }, place);
  const strong = {
    ...frames,
    line: { color: accent, width: FRAME_PX },
    x: boxes.flatMap(([left, , right]) => [left, right, right, left, left, null]),
    y: boxes.flatMap(([, top, , bottom]) => [top, top, bottom, bottom, top, null]),
  };
  const color = tilesInFocus(layout, place).map((isOn) => (isOn ? accent : muted));
  return { data: [...data.slice(0, -1), strong, { ...captions, textfont: { ...captions.textfont, color } }], layout };
}
