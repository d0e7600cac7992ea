// @ts-check
// The window through which a map of a long text is seen, and where in the text a token is.
import { numbersOf } from "./arrays.js";

/** Tokens from which on a map is seen through a window, and how many it has. */
const LONG_FROM = 100, MOST_SEEN = 48;
/** Of the tokens before and after the chosen one, that stay in sight. */
const AROUND = 6;

/** @typedef {{from: number, until: number}} Part */

/**
 * The part of a row or column of tokens that is seen. It stays where it is as long as the token is well within it.
 * @param {number} n how many there are
 * @param {number} place that is to be seen
 * @param {Part} [before]
 * @returns {Part}
 */
export function partAt(n, place, before) {
  const size = Math.min(n, MOST_SEEN), last = n - size;
  const isWithin = before && before.until - before.from === size && before.until <= n
    && (before.from === 0 || place >= before.from + AROUND) && (before.until === n || place < before.until - AROUND)
    && place >= before.from && place < before.until;
  if (isWithin) return before;
  const from = Math.max(0, Math.min(last, place - Math.floor(size / 2)));
  return { from, until: from + size };
}

/** @param {{rows: number, columns: number}} kind */
export function isLong({ rows, columns }) {
  return Math.max(rows, columns) > LONG_FROM;
}

/**
 * A map's figure with what of it is seen through a window: nothing else is drawn, so it is drawn as fast as that of a short text.
 * @param {any} figure
 * @param {{rows: Part, columns: Part}} window
 */
export function windowed({ data, layout, ...others }, { rows, columns }) {
  const axes = { x: columns, y: rows }, maps = ["", "3"].filter((number) => layout[`xaxis${number}`]);
  const seen = maps.flatMap((number) => Object.entries(axes).map(([way, part]) => [`${way}axis${number}`, axisOf(layout[`${way}axis${number}`], part)]));
  const isOfMap = ({ type, xaxis = "x" }) => type === "heatmap" && maps.includes(xaxis.slice(1));
  return { ...others, data: data.map((trace) => (isOfMap(trace) ? cut(trace, rows, columns) : trace)), layout: { ...layout, ...Object.fromEntries(seen) } };
}

// Every token in sight has its label.
function axisOf(axis, { from, until }) {
  const places = Array.from({ length: until - from }, (_, i) => from + i), { tickvals = [], ticktext = [], labelalias = {} } = axis;
  const named = new Map(tickvals.map((value, i) => [value, ticktext[i]])), [first, last] = axis.range;
  const size = Math.min(axis.tickfont?.size ?? 12, 11);
  return {
    ...axis, range: first < last ? [from - 0.5, until - 0.5] : [until - 0.5, from - 0.5], tickmode: "array", tickvals: places,
    ticktext: places.map((place) => named.get(place) ?? labelalias[place] ?? ""), tickfont: { ...axis.tickfont, size },
  };
}

// What covers whole rows has one number for each.
function cut(trace, rows, columns) {
  const isOfRows = trace.dx !== undefined, part = (row) => (isOfRows ? row : row.slice(columns.from, columns.until));
  const z = numbersOf(trace.z).slice(rows.from, rows.until).map(part);
  const text = Array.isArray(trace.text) ? { text: trace.text.slice(rows.from, rows.until).map((row) => row.slice(columns.from, columns.until)) } : {};
  return { ...trace, z, ...text, y0: rows.from, ...(isOfRows ? {} : { x0: columns.from }) };
}

/**
 * The places of a token in a text, by what somebody types of it.
 * @param {string[]} tokens
 * @param {string} words
 */
export function foundIn(tokens, words) {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  // A token's own number, as an axis has it.
  if (/^#\d+$/.test(wanted)) return [Number(wanted.slice(1)) - 1].filter((place) => place >= 0 && place < tokens.length);
  return tokens.flatMap((token, place) => (token.toLowerCase().includes(wanted) ? [place] : []));
}
