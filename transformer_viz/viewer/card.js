// @ts-check
// A run as a card to take along: what was read above what was written, between them where one head looked, and what it is of.
import { withCrossings } from "./lines.js";

const MARGIN = 50;
const WIDEST_LINE = 9;
const LEAST_PX = 16;
const SIGN = "Transformer Viz";

/**
 * @typedef {{query: number, key: number, weight: number}} Look
 * @typedef {{read: string[], written: string[], isOfSource: boolean, rows: Look[][], all: Look[], title: string,
 *   words: {rests: string, plays: string}[], crossing: string, about: string, file: string, step: number,
 *   colours: {ground: string, ink: string, muted: string, accent: string, tile: string}, fonts: {words: string, code: string}}} Card
 *   `rows` are the looks of each step, `all` the strong ones of all; `file` is a name for it, `step` what is seen now
 */

/**
 * Draws a card.
 * @param {CanvasRenderingContext2D} to
 * @param {Card} card
 * @param {number} step the last one that is written; as many as there are: all lines at once
 * @param {number} part of the way that the look of this step has gone, 0 to 1
 */
export function drawCard(to, card, step, part = 1) {
  const { width, height } = to.canvas, scale = width / 1200, { colours, fonts } = card, isEnd = step >= card.written.length;
  to.setTransform(scale, 0, 0, scale, 0, 0);
  to.fillStyle = colours.ground;
  to.fillRect(0, 0, 1200, height / scale);
  const bottom = height / scale, [top, below] = [bottom * 0.3, bottom * 0.6];
  print(to, card.title, 600, bottom * 0.13, `600 34px ${fonts.words}`, colours.ink);
  const read = tiles(card.read, top), written = tiles(card.written, below);
  const looks = isEnd ? withCrossings(card.all) : card.rows[step].map((look) => ({ ...look, crosses: true }));
  for (const { query, key, weight, crosses } of looks) {
    const from = card.isOfSource ? read[key] : written[key - 1], to_ = written[query];
    if (!from || !to_ || weight < 0.02) continue;
    to.globalAlpha = crosses ? 0.85 : 0.45;
    to.strokeStyle = crosses ? colours.accent : colours.muted;
    to.lineWidth = (isEnd ? 0.6 : 1) * (1 + (WIDEST_LINE - 1) * weight);
    line(to, from, to_, card.isOfSource, isEnd ? 1 : part);
  }
  to.globalAlpha = 1;
  const most = isEnd ? -1 : card.rows[step].reduce((best, look) => (look.weight > (best?.weight ?? 0) ? look : best), /** @type {Look | null} */ (null))?.key ?? -1;
  read.forEach((tile, place) => drawTile(to, tile, card, card.isOfSource && place === most));
  written.forEach((tile, place) => {
    if (isEnd || place < step || (place === step && part === 1)) drawTile(to, tile, card, !isEnd && place === step);
    else drawTile(to, { ...tile, text: "" }, card, false);
  });
  const words = isEnd ? card.crossing : part < 1 ? card.words[step].plays : card.words[step].rests;
  print(to, words, 600, bottom * 0.79, `400 34px ${fonts.words}`, colours.ink);
  to.textAlign = "left";
  print(to, card.about, MARGIN, bottom - 34, `400 20px ${fonts.words}`, colours.muted, 840);
  to.textAlign = "right";
  print(to, SIGN, 1200 - MARGIN, bottom - 34, `700 22px ${fonts.words}`, colours.ink);
  to.textAlign = "center";
}

/**
 * The moments of a card that moves: which step, how far its look has gone, and how long it is seen.
 * @param {number} n steps
 * @param {number} [of] milliseconds of a step
 * @returns {{step: number, part: number, ms: number}[]}
 */
export function moments(n, of = Math.max(160, Math.min(660, 4800 / n))) {
  const steps = Array.from({ length: n }, (_, step) => [0.35, 0.7, 1].map((part, i) => ({ step, part, ms: of * [0.18, 0.18, 0.64][i] })));
  return [...steps.flat(), { step: n, part: 1, ms: 1800 }];
}

function tiles(tokens, y) {
  const wide = tokens.map((token) => Math.max(1.5, [...token].length * 0.62 + 0.75)), sum = wide.reduce((a, b) => a + b, 0) + 0.18 * tokens.length;
  const size = Math.min(36, (1200 - 2 * MARGIN) / sum);
  let from = (1200 - sum * size) / 2;
  return tokens.map((text, i) => {
    const tile = { text, x: from, y: y - size * 0.95, width: wide[i] * size, height: size * 1.9, size };
    from += (wide[i] + 0.18) * size;
    return tile;
  });
}

function drawTile(to, { text, x, y, width, height, size }, { colours, fonts }, isNow) {
  to.beginPath();
  to.roundRect(x, y, width, height, 6);
  to.fillStyle = text ? colours.tile : colours.ground;
  to.fill();
  to.lineWidth = isNow ? 4 : 1.5;
  to.strokeStyle = isNow ? colours.accent : colours.muted;
  to.stroke();
  print(to, text, x + width / 2, y + height / 2, `600 ${size}px ${fonts.code}`, colours.ink);
}

// From the token that is looked at to the written one; within a line, in a bow above it.
function line(to, from, until, isOfSource, part) {
  const [x1, x2] = [from, until].map(({ x, width }) => x + width / 2), y1 = isOfSource ? from.y + from.height : from.y, y2 = until.y;
  const middle = isOfSource ? (y1 + y2) / 2 : y1 - 40 - Math.abs(x2 - x1) / 5;
  to.beginPath();
  to.setLineDash(part < 1 ? [part * (Math.hypot(x2 - x1, y2 - y1) + 60), 4000] : []);
  to.moveTo(x1, y1);
  to.bezierCurveTo(x1, middle, x2, middle, x2, y2);
  to.stroke();
  to.setLineDash([]);
}

function print(to, text, x, y, font, colour, most = 1100) {
  to.font = font;
  const { width } = to.measureText(text);
  // Smaller where it is too long, and only then narrower.
  if (width > most) to.font = font.replace(/([\d.]+)px/, (_, size) => `${Math.max(LEAST_PX, (Number(size) * most) / width)}px`);
  to.fillStyle = colour;
  to.textBaseline = "middle";
  to.fillText(text, x, y, most);
}
