// Draws the one figure of the page.

import { drawChart } from "../../viewer/charts.js";
import { say, speak } from "../../viewer/language.js";

const page = JSON.parse(document.getElementById("data").textContent);
speak(page.words);
document.title = document.getElementById("title").textContent = page.title;
document.body.style.background = page.figure.layout.paper_bgcolor;
document.body.style.color = page.figure.layout.font?.color;

async function show() {
  await window.plotlyReady;
  if (!window.Plotly) {
    const missing = document.getElementById("missing");
    missing.hidden = false;
    missing.textContent = say("plotly.js is not where this page looks for it, so the figure cannot be drawn.");
    return;
  }
  await drawChart(document.getElementById("figure"), page.figure);
}

show();
