// A report as it is read: its charts and formulas.
import { renderMath } from "./math.js";
import { draw } from "./reportcharts.js";

draw(document);
renderMath(document.getElementById("report"));
