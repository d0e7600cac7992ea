// A run as a picture that moves, for a program that opens this page: what the viewer's Share makes by a press.
import { speak } from "../../viewer/language.js";
import { unpackedRun } from "../../viewer/packed.js";
import { movingPicture } from "../../viewer/share.js";
import { Viewer } from "../../viewer/viewer.js";

// The bytes in base64, or null where the viewer has no card of this run.
window.film = async ({ width, height, msOfStep, dark }) => {
  const run = await unpackedRun(JSON.parse(document.getElementById("data").textContent));
  speak(run.words);
  const viewer = new Viewer(document.querySelector(".viewer")), { kind, layer, head } = run.focus;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  viewer.restyle({ dark });
  viewer.show({ ...run, run: "this" }, { kind, layer: run.kinds[kind].numbers[layer], head, step: 0 });
  return viewer.card && base64Of(await movingPicture(viewer.card, width, height, msOfStep ?? undefined));
};

function base64Of(bytes) {
  const reader = new FileReader();
  reader.readAsDataURL(new Blob([bytes]));
  return new Promise((done) => { reader.onload = () => done(String(reader.result).split(",")[1]); });
}
