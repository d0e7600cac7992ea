// A page of one run.
import { Page, start } from "../../viewer/page.js";

start(new Page(JSON.parse(document.getElementById("data").textContent)));
