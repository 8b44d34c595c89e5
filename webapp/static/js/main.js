// The modules of every page. Pages add their own in the `scripts` block.
import "./htmx-config.js";
import "./theme.js";
import "./rail.js";
import "./menus.js";
import "./once.js";
import "./tabs.js";
import "./toolong.js";
import "./dialogs.js";
import "./times.js";
import "./toast.js";
import "./copy.js";
import "./clamp.js";
import "./table.js";
import "./columns.js";
import "./keys.js";
import "./palette.js";
import "./notices.js";
import { renderMath } from "./math.js";

// formulas in the server's Markdown, on the page and in fragments that htmx loads
renderMath(document.body);
document.addEventListener("htmx:load", (event) => renderMath(event.target));
