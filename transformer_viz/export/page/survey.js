// Draws the figures of a survey where the page has room for them: those of a fold when it is opened, those of the chosen
// number.

import { drawChart } from "../../viewer/charts.js";
import { say, speak } from "../../viewer/language.js";

const page = JSON.parse(document.getElementById("data").textContent);
speak(page.words);

async function draw(place, figure) {
  await window.plotlyReady;
  if (window.Plotly) await drawChart(place, figure);
  else place.textContent = say("plotly.js is not where this page looks for it, so the picture cannot be drawn.");
}

const box = document.getElementById("number");

function drawHeads() {
  for (const place of document.querySelectorAll("[data-kind]")) {
    const figure = page.heads[box.value][place.dataset.kind];
    place.hidden = !figure;
    if (figure) draw(place, figure);
  }
}

box?.addEventListener("change", drawHeads);
if (box) drawHeads();
for (const place of document.querySelectorAll("[data-figure]")) {
  const fold = place.closest("details"), figure = page.figures[place.dataset.figure];
  if (!fold) draw(place, figure);
  else fold.addEventListener("toggle", () => fold.open && draw(place, figure), { once: true });
}
