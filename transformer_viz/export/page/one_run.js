// A page of one run.
import { unpackedRun } from "../../viewer/packed.js";
import { Page, start } from "../../viewer/page.js";

unpackedRun(JSON.parse(document.getElementById("data").textContent)).then((run) => start(new Page(run)));
