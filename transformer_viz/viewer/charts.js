// @ts-check
// Charts: Plotly draws each into its place, where it stays.

import { say } from "./language.js";

// Never "Share chart" nor the sign of Plotly's makers: what is drawn here leaves for nobody.
const BARE = { displaylogo: false, showSendToCloud: false, doubleClick: "reset", showTips: false };
const ZOOMS = ["zoom2d", "pan2d", "resetScale2d"];
const PICTURES = new WeakMap();
const AXIS = /^[xy]axis\d*$/;

// A finger scrolls the page.
const isTouch = () => window.matchMedia("(pointer: coarse)").matches;

// Always the same ones: Plotly makes a chart anew whose configuration is another.
let buttons;
function pictureButtons() {
  const { camera, disk } = window.Plotly.Icons;
  return buttons ??= [
    { name: "toImage", title: say("Download plot as a PNG"), icon: camera, click: (chart) => savePicture(chart, "png") },
    { name: "toSvg", title: say("Download plot as an SVG"), icon: disk, click: (chart) => savePicture(chart, "svg") },
  ];
}

// A chart as a file that says above it what it is of.
function savePicture(chart, format) {
  const words = chart.dataset.title || document.title, own = chart.layout.title?.text, room = 32;
  const layout = structuredClone(chart.layout), height = chart.offsetHeight + room;
  const text = words.replace(/[&<>$]/g, (sign) => `&#${sign.charCodeAt(0)};`) + (own ? ` · ${own}` : "");
  const place = { x: 0, xanchor: "left", xref: "container", y: 1, yanchor: "top", yref: "container", pad: { t: 8, l: 8 } };
  layout.title = { text, ...place, font: { size: 15 } };
  layout.margin = { ...layout.margin, t: (layout.margin?.t ?? 0) + room };
  const filename = chart.dataset.file || words.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  const file = { format, scale: format === "png" ? 2 : 1, width: chart.offsetWidth, height, filename };
  return window.Plotly.downloadImage({ data: PICTURES.get(chart)?.().data ?? chart.data, layout: { ...layout, height } }, file);
}

/** @type {WeakMap<Element, number>} */
const WIDTHS = new WeakMap();
let places;

// Draws a chart anew that has become wider or narrower: by itself Plotly would look at the window's size alone, and of a chart
// that is there already at none.
function keepWidth(host) {
  if (WIDTHS.has(host)) return;
  places ??= new ResizeObserver((entries) => entries.forEach(({ target, contentRect: { width } }) => {
    if (!width || Math.abs(width - WIDTHS.get(target)) < 1) return;
    WIDTHS.set(target, width);
    // Plotly waits for a moment, and by then it may be hidden.
    window.Plotly?.Plots.resize(target).catch(() => WIDTHS.set(target, 0));
  }));
  WIDTHS.set(host, host.clientWidth);
  places.observe(host);
}

// Draws a figure, and keeps what somebody has zoomed into where `topic` and the figure's own axes are those of before.
// What somebody saves of it is what `picture` gives then, where something is marked over the figure.
export async function drawChart(host, { data, layout }, topic = "", picture = null) {
  if (picture) PICTURES.set(host, picture);
  // Plotly writes a zoom into what it is given.
  layout = structuredClone(layout);
  const axes = Object.entries(layout).filter(([name]) => AXIS.test(name)).map(([, axis]) => axis);
  const canZoom = axes.some((axis) => !axis.fixedrange);
  const dictionary = { Zoom: say("Zoom"), Pan: say("Pan"), "Reset axes": say("Reset axes") };
  const config = { ...BARE, locales: { "en-US": { dictionary } }, modeBarButtons: [pictureButtons(), ...(canZoom ? [ZOOMS] : [])] };
  const uirevision = JSON.stringify([topic, axes.map(({ range }) => range)]);
  if (!layout.width) keepWidth(host);
  // By itself Plotly would leave a legend where the other margin had it, above words of the chart.
  if (layout.showlegend && host.layout && host.layout.margin?.t !== layout.margin?.t) window.Plotly.purge(host);
  await window.Plotly.react(host, data, { dragmode: canZoom && !isTouch() ? "zoom" : false, ...layout, uirevision }, config);
}
