// Colours of themes, schemes, and what is written on them.
const THEMES = {
  light: { canvas: "#f6f7f9", paper: "#ffffff", line: "#c9ced6", edge: "#8b94a1", chip: "#b9c0ca", text: "#1c2026",
           muted: "#5b6470", accent: "#1a66c9", hit: "#c56a00", container: "rgba(30,45,70,.035)", border: "#d2d7de" },
  dark: { canvas: "#16181c", paper: "#23262c", line: "#464c56", edge: "#79828f", chip: "#525963", text: "#eceef1",
          muted: "#a3abb6", accent: "#5aa2ff", hit: "#ffb454", container: "rgba(255,255,255,.035)", border: "#3a4049" },
};
// Of schemes, as the workbench has them: told apart under protan, deutan and tritan vision; badges say it, too.
const SCHEME_COLOURS = ["#DDCC77", "#88CCEE", "#CC6677", "#332288", "#332288", "#999933"];
SCHEME_COLOURS[3] = "#44AA99";
const LIBRARY_COLOUR = "#BBBBBB";
const inkOn = (colour) => {
  const c = d3.rgb(colour), light = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * light(c.r) + 0.7152 * light(c.g) + 0.0722 * light(c.b) > 0.3 ? "#111111" : "#ffffff";
};
const borders = new Map();
const borderColour = (scheme, dark) => {
  const key = scheme + " " + dark;
  if (!borders.has(key)) borders.set(key, d3.interpolateRgb(schemeColour(scheme), dark ? "#fff" : "#000")(dark ? 0.3 : 0.25));
  return borders.get(key);
};
const schemeColour = (scheme) => (scheme === undefined ? LIBRARY_COLOUR : SCHEME_COLOURS[scheme]);
