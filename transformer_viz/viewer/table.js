// @ts-check
// The numbers of a chart as a table, for the keyboard and for a screen reader.
import { numbersOf } from "./arrays.js";
import { say } from "./language.js";
import { plainText } from "./sentence.js";

const MOST_LINES = 200;

// One table for each map, and one for each line of a chart: what it is called, its head, and its lines.
export function tablesOf(chart) {
  const traces = chart.data.filter((trace) => trace.visible !== false && trace.hoverinfo !== "skip" && (trace.z ?? trace.x));
  const areaOf = ({ xaxis = "x", yaxis = "y" }) => xaxis + yaxis;
  const maps = Map.groupBy(traces.filter((trace) => trace.type === "heatmap"), areaOf);
  const lines = traces.filter((trace) => trace.type !== "heatmap");
  return [...[...maps.values()].map((map) => mapTable(chart, map)), ...lines.map((trace) => lineTable(chart, trace))];
}

// Heatmaps that lie upon each other, each with some of the cells: weights, and a trace for each reason of a mask.
function mapTable(chart, traces) {
  const maps = traces.map((trace) => ({ trace, cells: numbersOf(trace.z) })), [x, y] = axesOf(chart, traces[0]);
  const n = Math.max(...maps.map(({ cells }) => cells.length));
  const columns = [...Array(Math.max(...maps.map(({ cells }) => cells[0]?.length ?? 0))).keys()];
  const said = (row, column) => {
    // A cover over the rows to come has one number a row.
    const here = ({ cells }) => cells[row]?.[cells[row].length === 1 ? 0 : column];
    const map = maps.find((map) => Number.isFinite(here(map)));
    if (!map || map.trace.hoverinfo === "none") return "";
    const { hovertemplate = "", text } = map.trace, words = hovertemplate.match(/<b>([^%<]+)<\/b>/);
    return plainText(text?.[row]?.[column] ?? words?.[1] ?? digits(here(map)));
  };
  // Of a long text a part is to be seen.
  const { x0 = 0, y0 = 0 } = traces[0].dx === undefined ? traces[0] : {};
  const head = ["", ...columns.map((column) => labelOf(x, x0 + column))];
  const rows = [...Array(Math.min(n, MOST_LINES)).keys()];
  const lines = rows.map((row) => [labelOf(y, y0 + row), ...columns.map((column) => said(row, column))]);
  return { caption: cutWords(n), head, lines };
}

function lineTable(chart, trace) {
  const [x, y] = axesOf(chart, trace), [across, down] = [numbersOf(trace.x), numbersOf(trace.y)];
  const title = (axis, name) => plainText(axis.title?.text || name), words = trace.hovertext ?? trace.text;
  const lines = Array.from(across.slice(0, MOST_LINES), (value, place) => [
    labelOf(x, value), labelOf(y, down[place]),
    plainText((Array.isArray(words) && words[place]) || trace.customdata?.[place]?.[0] || ""),
  ]);
  const caption = [plainText(trace.name ?? ""), cutWords(across.length)].filter(Boolean).join(": ");
  return { caption, head: [title(x, "x"), title(y, "y"), ""], lines: lines.filter(([at]) => at !== "") };
}

// What is left out, where a table is not whole.
function cutWords(n) {
  return n > MOST_LINES ? say("the first {count} of {all} lines", { count: MOST_LINES, all: n.toLocaleString("en") }) : "";
}

function axesOf({ layout }, { xaxis = "x", yaxis = "y" }) {
  return [xaxis, yaxis].map((name) => layout[`${name[0]}axis${name.slice(1)}`] ?? {});
}

function labelOf(axis, value) {
  if ((value ?? null) === null) return "";
  return plainText(axis.ticktext?.[axis.tickvals?.indexOf(value)] ?? axis.labelalias?.[value] ?? digits(value));
}

function digits(value) {
  return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(4))) : String(value);
}

// A button behind the chart, seen when the keyboard is on it, that opens its numbers as tables below.
export class NumbersTable {
  // Stands behind `room`, which is the chart itself where there is one alone.
  constructor(room, host = room) {
    this.host = host;
    this.button = Object.assign(document.createElement("button"), { type: "button", className: "numbers-switch" });
    this.room = Object.assign(document.createElement("div"), { className: "numbers-table", tabIndex: 0, hidden: true });
    this.room.setAttribute("role", "region");
    room.after(this.button, this.room);
    this.button.addEventListener("click", () => this.open(this.room.hidden));
    this.room.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") this.open(false);
    });
    this.open(false);
  }

  open(isOpen) {
    if (!isOpen && this.room.contains(document.activeElement)) this.button.focus();
    this.room.hidden = !isOpen;
    this.button.setAttribute("aria-expanded", String(isOpen));
    this.show();
  }

  // Again for each figure and step.
  show() {
    const words = this.host.getAttribute("aria-label") ?? "";
    this.button.textContent = say("Numbers as a table");
    this.button.setAttribute("aria-label", say("Numbers as a table: {chart}", { chart: words }));
    this.room.setAttribute("aria-label", words);
    this.room.replaceChildren(...(this.room.hidden || !this.host.data ? [] : tablesOf(this.host).map(tableElement)));
  }
}

function tableElement({ caption, head, lines }) {
  const table = document.createElement("table"), line = (cells, isHead) => {
    const row = table.insertRow();
    cells.forEach((words, place) => {
      const cell = document.createElement(isHead || !place ? "th" : "td");
      if (cell.tagName === "TH") cell.scope = isHead ? "col" : "row";
      cell.textContent = words;
      row.append(cell);
    });
  };
  if (caption) table.createCaption().textContent = caption;
  line(head, true);
  for (const cells of lines) line(cells, false);
  return table;
}
