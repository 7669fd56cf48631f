"use strict";
// page.js - maps of factors, genes and groups; page.h says what the arrays hold.
const about = JSON.parse(document.getElementById("description").textContent);
const $ = (id) => document.getElementById(id);

function bytes(id) {
  const text = atob($("array-" + id).textContent);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < out.length; i++) out[i] = text.charCodeAt(i);
  return out;
}
function words(id) {
  const b = bytes(id), out = new Uint16Array(b.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = b[2 * i] | b[2 * i + 1] << 8;
  return out;
}

const cells = about.cells, places = words("positions"), groupOf = words("groups");
const many = about.groups.length > 1;

// ---- numbers: factors and genes are decoded when they are first shown ----

const decoded = new Map();
function values(kind, i) {
  const key = kind + i;
  if (!decoded.has(key)) {
    const codes = kind === "factor" ? words(key) : bytes(key), out = new Float32Array(cells);
    const one = kind === "factor" ? about.factors[i] : about.genes[i];
    for (let c = 0; c < cells; c++)
      out[c] = kind === "factor" ? codes[c] / 65535 * one.most
        : one.code === "count" ? codes[c] : Math.expm1(codes[c] / 255 * Math.log1p(one.most));
    decoded.set(key, out);
    if (decoded.size > 60) decoded.delete(decoded.keys().next().value);
  }
  return decoded.get(key);
}
// What the colours of a map stand for: log1p of counts, factors as they are, up to the 99th percentile.
function shown(kind, i) {
  const from = values(kind, i);
  const v = kind === "gene" ? from.map(Math.log1p) : from;
  const sorted = Float32Array.from(v).sort();
  const high = sorted[Math.floor(0.99 * (cells - 1))] || sorted[cells - 1] || 1;
  return {v, high, beyond: sorted[cells - 1] > high};
}
function format(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "\u2013";
  const a = Math.abs(x);
  return a === 0 ? "0" : a >= 1000 ? Math.round(x).toLocaleString("en") : a >= 0.001 ? String(+x.toPrecision(3)) : x.toExponential(1);
}
const factorName = (i) => "Factor " + (i + 1);
const factorMeans = about.factors.map((_, l) => {
  const codes = words("factor" + l), sum = new Float64Array(about.groups.length), n = new Float64Array(about.groups.length);
  for (let c = 0; c < cells; c++) { sum[groupOf[c]] += codes[c]; n[groupOf[c]]++; }
  return Array.from(sum, (s, g) => n[g] ? s / n[g] / 65535 * about.factors[l].most : 0);
});
const groupSizes = new Float64Array(about.groups.length);
for (let c = 0; c < cells; c++) groupSizes[groupOf[c]]++;
const geneIndex = new Map(about.genes.map((g, i) => [g.name, i]));

// ---- colours ----

const ramps = {
  light: ["#e8e7ee", "#c9cfe8", "#93abdd", "#5c82cd", "#3f57b1", "#3a2d83", "#21104a"],
  dark: ["#2a2e37", "#34457a", "#3d6bb0", "#3d97b6", "#55bfa3", "#a4e088", "#f7f8a6"],
};
const LEVELS = 64;
function ramp() {
  const stops = ramps[document.documentElement.classList.contains("dark") ? "dark" : "light"]
    .map((s) => rgb(s));
  return Array.from({length: LEVELS}, (_, i) => {
    const at = i / (LEVELS - 1) * (stops.length - 1), k = Math.min(Math.floor(at), stops.length - 2), t = at - k;
    return "rgb(" + stops[k].map((a, j) => Math.round(a + t * (stops[k + 1][j] - a))).join(",") + ")";
  });
}
const rgb = (text) => text[0] === "#" ? [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16)) : text.slice(4, -1).split(",").map(Number);

// ---- the map ----

const map = $("map"), view = {x: 0, y: 0, zoom: 1};
let boxW = 1, boxH = 1, chosen = {kind: "factor", i: 0}, layers = null, scheduled = false, spacing = 1;
{
  let mx = 0, my = 0;
  for (let c = 0; c < cells; c++) { mx = Math.max(mx, places[2 * c]); my = Math.max(my, places[2 * c + 1]); }
  boxW = Math.max(mx, 1); boxH = Math.max(my, 1);
  spacing = Math.sqrt(boxW * boxH / cells);
}
function fit(width, height) { return Math.min((width - 48) / boxW, (height - 96) / boxH); }
function transform() {
  const w = map.clientWidth, h = map.clientHeight, s = Math.max(fit(w, h), 1e-6) * view.zoom;
  return {w, h, s, x0: w / 2 - (boxW / 2 + view.x) * s, y0: h / 2 - (boxH / 2 + view.y) * s};
}
// Images have a canvas of their own under that of the cells: one, or one of each section that has one.
const tissue = {images: [], shown: false, cells: 1};
function drawGround(t, ratio) {
  const ground = $("ground");
  ground.hidden = !tissue.shown;
  map.style.opacity = tissue.shown ? tissue.cells : 1;
  if (!tissue.shown) return;
  ground.width = map.width; ground.height = map.height;
  const g = ground.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  about.images.forEach((at, k) => g.drawImage(tissue.images[k], t.x0 + at.left * t.s, t.y0 + at.top * t.s, (at.right - at.left) * t.s, (at.bottom - at.top) * t.s));
}
function showTissue(shown) {
  tissue.shown = shown && tissue.images.length > 0;
  $("tissue-shown").checked = tissue.shown;
  redraw();
}
function loadTissue() {
  let waiting = about.images.length;
  const images = about.images.map((_, k) => {
    const image = new Image();
    image.onload = () => {
      if (--waiting > 0) return;
      tissue.images = images;
      $("tissue").hidden = $("image-key").hidden = false;
      showTissue(true);
      document.documentElement.dataset.image = "yes";
    };
    image.src = "data:image/jpeg;base64," + $("array-image" + k).textContent;
    return image;
  });
  tissue.cells = about.over_images.dots;
  $("tissue-cells").value = Math.round(100 * tissue.cells);
}
// Cells by colour, low ones first so that high ones lie on top.
function sortIntoLayers(kind, i) {
  if (kind === "group") {
    const mine = [], others = [];
    for (let c = 0; c < cells; c++) (i < 0 || groupOf[c] === i ? mine : others).push(c);
    if (i >= 0) return [{colour: null, cells: others}, {colour: about.groups[i].colour, cells: mine}];
    const by = about.groups.map((g) => ({colour: g.colour, cells: []}));
    for (let c = 0; c < cells; c++) by[groupOf[c]].cells.push(c);
    return by;
  }
  const {v, high} = shown(kind, i), by = Array.from({length: LEVELS}, (_, k) => ({level: k, cells: []}));
  for (let c = 0; c < cells; c++) by[Math.min(LEVELS - 1, Math.max(0, Math.floor(v[c] / high * LEVELS)))].cells.push(c);
  return by;
}
const colourOf = (layer, colours) => layer.level !== undefined ? colours[layer.level] : layer.colour || colours[0];
function paint(canvas, what, t, ratio) {
  const spot = canvas === map && tissue.shown ? about.over_images.spot : 0; // as large as in the tissue
  const size = spot ? Math.max(spot * t.s, 1 / ratio) : Math.min(Math.max(0.82 * spacing * t.s, 1 / ratio), 24);
  (size > 4 ? paintDiscs : paintSquares)(canvas, what, t, ratio, size);
}
function paintDiscs(canvas, what, t, ratio, size) {
  const g = canvas.getContext("2d"), colours = ramp(), half = size / 2;
  g.setTransform(1, 0, 0, 1, 0, 0);
  g.clearRect(0, 0, canvas.width, canvas.height);
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  for (const layer of what) {
    g.fillStyle = colourOf(layer, colours);
    g.beginPath();
    for (const c of layer.cells) {
      const x = t.x0 + places[2 * c] * t.s, y = t.y0 + places[2 * c + 1] * t.s;
      if (x < -half || y < -half || x > t.w + half || y > t.h + half) continue;
      g.moveTo(x + half, y);
      g.arc(x, y, half, 0, 7);
    }
    g.fill();
  }
}
// Small dots are written as pixels: a hundred thousand in a few milliseconds.
function paintSquares(canvas, what, t, ratio, size) {
  const g = canvas.getContext("2d"), colours = ramp(), w = canvas.width, h = canvas.height;
  if (w === 0 || h === 0) return;
  const image = g.createImageData(w, h), pixels = new Uint32Array(image.data.buffer);
  const n = Math.max(1, Math.round(size * ratio)), back = Math.floor(n / 2);
  for (const layer of what) {
    const [r, green, b] = rgb(colourOf(layer, colours)), code = (255 << 24 | b << 16 | green << 8 | r) >>> 0;
    for (const c of layer.cells) {
      const x = Math.round((t.x0 + places[2 * c] * t.s) * ratio) - back, y = Math.round((t.y0 + places[2 * c + 1] * t.s) * ratio) - back;
      const right = Math.min(x + n, w), bottom = Math.min(y + n, h);
      for (let j = Math.max(y, 0); j < bottom; j++)
        for (let i = Math.max(x, 0); i < right; i++) pixels[j * w + i] = code;
    }
  }
  g.putImageData(image, 0, 0);
}
function draw() {
  scheduled = false;
  const ratio = window.devicePixelRatio || 1, t = transform();
  if (map.width !== Math.round(t.w * ratio) || map.height !== Math.round(t.h * ratio)) {
    map.width = Math.round(t.w * ratio); map.height = Math.round(t.h * ratio);
  }
  drawGround(t, ratio);
  paint(map, layers, t, ratio);
  drawScale(t);
  document.documentElement.dataset.ready = "yes";
}
function redraw() { if (!scheduled) { scheduled = true; requestAnimationFrame(draw); } }
function drawScale(t) {
  const unit = about.positions.step * about.positions.each, want = 130 / t.s * unit;
  let length = 10 ** Math.floor(Math.log10(want));
  if (5 * length <= want) length *= 5; else if (2 * length <= want) length *= 2;
  $("scale").style.width = length / unit * t.s + "px";
  const large = about.positions.unit === "\u00b5m" && length >= 1000;
  $("scale").textContent = large ? length / 1000 + " mm" : +length.toPrecision(6) + " " + about.positions.unit;
}
function drawBar() {
  const bar = $("bar"), g = bar.querySelector("canvas").getContext("2d");
  bar.hidden = chosen.kind === "group";
  bar.style.display = bar.hidden ? "none" : "";
  if (bar.hidden) return;
  ramp().forEach((colour, k) => { g.fillStyle = colour; g.fillRect(k / LEVELS * 190, 0, 190 / LEVELS + 1, 10); });
  const {high, beyond} = shown(chosen.kind, chosen.i);
  $("high").textContent = (beyond ? "\u2265 " : "") + format(chosen.kind === "gene" ? Math.expm1(high) : high) +
    (chosen.kind === "gene" ? " counts (log)" : "");
}
function zoomBy(factor, px, py) {
  const t = transform(), x = (px - t.x0) / t.s, y = (py - t.y0) / t.s;
  view.zoom = Math.min(Math.max(view.zoom * factor, 0.5), 200);
  const u = transform();
  view.x += x - (px - u.x0) / u.s;
  view.y += y - (py - u.y0) / u.s;
  redraw();
}
function showAll() { view.x = view.y = 0; view.zoom = 1; redraw(); }

// ---- the nearest cell, by squares of the box ----

const SIDE = Math.max(1, Math.min(400, Math.floor(Math.sqrt(cells / 4)))), squares = Array.from({length: SIDE * SIDE}, () => []);
const square = (x, y) => Math.min(SIDE - 1, Math.max(0, Math.floor(y / (boxH + 1) * SIDE))) * SIDE +
  Math.min(SIDE - 1, Math.max(0, Math.floor(x / (boxW + 1) * SIDE)));
for (let c = 0; c < cells; c++) squares[square(places[2 * c], places[2 * c + 1])].push(c);
function nearest(x, y, reach) {
  let best = -1, least = reach * reach;
  const sx = (boxW + 1) / SIDE, sy = (boxH + 1) / SIDE;
  for (let j = Math.floor((y - reach) / sy); j <= Math.floor((y + reach) / sy); j++)
    for (let i = Math.floor((x - reach) / sx); i <= Math.floor((x + reach) / sx); i++) {
      if (i < 0 || j < 0 || i >= SIDE || j >= SIDE) continue;
      for (const c of squares[j * SIDE + i]) {
        const d = (places[2 * c] - x) ** 2 + (places[2 * c + 1] - y) ** 2;
        if (d < least) { least = d; best = c; }
      }
    }
  return best;
}
function element(name, props, ...children) {
  const e = Object.assign(document.createElement(name), props);
  e.append(...children);
  return e;
}
const dot = (g) => { const e = element("span", {className: "dot"}); e.style.background = about.groups[g].colour; return e; };
// Sections have space between them: a cell is of the one whose box it is nearest to.
function sectionOf(c) {
  const out = (s, a) => Math.max(s.box[a] - places[2 * c + a], places[2 * c + a] - s.box[2 + a], 0);
  return about.sections && about.sections.reduce((best, s) => Math.hypot(out(s, 0), out(s, 1)) < Math.hypot(out(best, 0), out(best, 1)) ? s : best);
}
function showSection(s) {
  const w = map.clientWidth, h = map.clientHeight, wide = Math.max(s.box[2] - s.box[0], 1), high = Math.max(s.box[3] - s.box[1], 1);
  view.zoom = Math.min(Math.max(Math.min((w - 48) / wide, (h - 96) / high) / Math.max(fit(w, h), 1e-6), 0.5), 200);
  view.x = (s.box[0] + s.box[2]) / 2 - boxW / 2;
  view.y = (s.box[1] + s.box[3]) / 2 - boxH / 2;
  redraw();
}
// Where a cell is, as the source has it where that is known.
function place(c) {
  const s = sectionOf(c);
  if (s) return [0, 1].map((a) => s.source[a] + (places[2 * c + a] - s.box[a]) * s.step);
  const p = about.positions, known = p.source_step !== undefined, step = known ? p.source_step : p.step;
  return [(known ? p.source_x : p.x) + places[2 * c] * step, (known ? p.source_y : p.y) + places[2 * c + 1] * step];
}
function point(px, py) {
  const t = transform(), tip = $("tip"), c = nearest((px - t.x0) / t.s, (py - t.y0) / t.s, 12 / t.s);
  tip.style.display = c < 0 ? "none" : "block";
  if (c < 0) return;
  tip.replaceChildren();
  if (about.sections) tip.append(element("div", {textContent: sectionOf(c).name}));
  if (many) tip.append(element("div", {}, dot(groupOf[c]), about.groups[groupOf[c]].name));
  if (chosen.kind !== "group") {
    const label = chosen.kind === "factor" ? factorName(chosen.i) : about.genes[chosen.i].name;
    tip.append(element("div", {}, label + ": ", element("b", {textContent: format(values(chosen.kind, chosen.i)[c])})));
  }
  const [px0, py0] = place(c);
  tip.append(element("div", {className: "soft", textContent: `x ${format(px0)}, y ${format(py0)}`}));
  const x = t.x0 + places[2 * c] * t.s, y = t.y0 + places[2 * c + 1] * t.s;
  tip.style.left = Math.min(x + 14, t.w - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(Math.max(y - 10, 8), t.h - tip.offsetHeight - 8) + "px";
}

// ---- details ----

function bars(title, rows) {
  const most = Math.max(...rows.map((r) => r.value), 1e-300), out = element("div", {className: "rows"});
  for (const r of rows) {
    const label = r.open ? element("button", {type: "button", onclick: r.open, title: r.name}) : element("span", {className: "name", title: r.name});
    if (r.group !== undefined) label.append(dot(r.group));
    label.append(r.name);
    const bar = element("i", {});
    bar.style.width = Math.max(0, 100 * r.value / most) + "%";
    if (r.colour) bar.style.background = r.colour;
    out.append(label, element("div", {}, bar), element("span", {className: "number", textContent: r.text || format(r.value)}));
  }
  return [element("h3", {textContent: title}), out];
}
function facts(pairs) {
  const out = element("dl", {className: "facts"});
  for (const [name, value] of pairs) out.append(element("dt", {textContent: name}), element("dd", {textContent: value}));
  return out;
}
const geneOpener = (name) => geneIndex.has(name) ? () => choose("gene", geneIndex.get(name)) : null;
function factorDetails(l) {
  const f = about.factors[l];
  const out = [element("h2", {textContent: factorName(l)}), element("div", {className: "soft", textContent: f.moran === null ? "" : "Moran\u2019s I " + f.moran.toFixed(3)}),
    ...bars("Genes with the largest loadings", f.top.map(([name, value]) => ({name, value, open: geneOpener(name)})))];
  if (many) {
    out.push(...bars("Mean of the groups", about.groups.map((g, k) => ({name: g.name, group: k, colour: g.colour, value: factorMeans[l][k], open: () => choose("group", k)}))
      .filter((r) => groupSizes[r.group] > 0).sort((a, b) => b.value - a.value)));
    const rows = about.groups.flatMap((g, k) => (about.enriched[k] && about.enriched[k][l] || []).slice(0, 1)
      .map(([name, value]) => ({name: name, group: k, value, text: "\u00d7" + format(2 ** value), open: geneOpener(name)})));
    if (rows.length) out.push(...bars("Most enriched gene of each group", rows.sort((a, b) => b.value - a.value)));
  }
  return out;
}
function geneDetails(i) {
  const g = about.genes[i], v = values("gene", i);
  let sum = 0, some = 0;
  for (let c = 0; c < cells; c++) { sum += v[c]; some += v[c] > 0; }
  const pairs = [["Mean count", format(sum / cells)], ["Cells with counts", (100 * some / cells).toFixed(1) + " %"], ["Largest count", format(g.most)]];
  if (g.moran !== null) pairs.push(["Moran\u2019s I", g.moran.toFixed(3)]);
  if (g.q !== null) pairs.push(["q of Moran\u2019s I", format(g.q)]);
  if (g.share !== null) pairs.push(["Deviance explained", (100 * g.share).toFixed(1) + " %"]);
  const out = [element("h2", {textContent: g.name}), facts(pairs),
    ...bars("Loadings", g.loadings.map((value, l) => ({name: factorName(l), value, open: () => choose("factor", l)})).sort((a, b) => b.value - a.value))];
  if (many) {
    const total = new Float64Array(about.groups.length);
    for (let c = 0; c < cells; c++) total[groupOf[c]] += v[c];
    out.push(...bars("Mean count of the groups", about.groups.map((q, k) => ({name: q.name, group: k, colour: q.colour, value: groupSizes[k] ? total[k] / groupSizes[k] : 0, open: () => choose("group", k)}))
      .filter((r) => groupSizes[r.group] > 0).sort((a, b) => b.value - a.value)));
  }
  return out;
}
function groupDetails(k) {
  if (k < 0)
    return [element("h2", {textContent: "All groups"}), ...bars("Cells", about.groups.map((g, j) => ({name: g.name, group: j, colour: g.colour, value: groupSizes[j], open: () => choose("group", j)})).sort((a, b) => b.value - a.value))];
  const out = [element("h2", {}, dot(k), about.groups[k].name),
    element("div", {className: "soft", textContent: `${format(groupSizes[k])} cells, ${(100 * groupSizes[k] / cells).toFixed(1)} %`}),
    ...bars("Mean factors", about.factors.map((_, l) => ({name: factorName(l), value: factorMeans[l][k], open: () => choose("factor", l)})))];
  for (const [l, list] of (about.enriched[k] || []).entries())
    if (list.length) out.push(...bars("Enriched in " + factorName(l), list.map(([name, value]) => ({name, value, text: "\u00d7" + format(2 ** value), open: geneOpener(name)}))));
  return out;
}

// ---- choosing ----

const buttons = new Map();
function choose(kind, i, quiet) {
  chosen = {kind, i};
  layers = sortIntoLayers(kind, i);
  for (const [key, b] of buttons) b.setAttribute("aria-pressed", String(key === kind + i));
  $("details").replaceChildren(...(kind === "factor" ? factorDetails(i) : kind === "gene" ? geneDetails(i) : groupDetails(i)));
  $("details").scrollTop = 0;
  const label = kind === "factor" ? factorName(i) : kind === "gene" ? about.genes[i].name : i < 0 ? "Groups" : about.groups[i].name;
  $("caption").textContent = label;
  map.setAttribute("aria-label", "Map of " + label);
  $("tip").style.display = "none";
  drawBar();
  redraw();
  if (!quiet) try { history.replaceState(null, "", "#" + kind + "=" + (kind === "gene" ? encodeURIComponent(about.genes[i].name) : i + 1)); } catch (_) { /* of a frame */ }
}
function fromAddress() {
  const [kind, text] = location.hash.slice(1).split("=");
  let i = Number(text) - 1;
  if (kind === "gene") try { i = geneIndex.get(decodeURIComponent(text || "")); } catch (_) { i = undefined; }
  const size = {factor: about.factors.length, gene: about.genes.length, group: about.groups.length}[kind];
  if (size !== undefined && Number.isInteger(i) && i < size && i >= (kind === "group" ? -1 : 0)) choose(kind, i, true);
  else choose("factor", 0, true);
}
function addButton(parent, kind, i, ...content) {
  const b = element("button", {type: "button", onclick: () => choose(kind, i)}, ...content);
  b.setAttribute("aria-pressed", "false");
  buttons.set(kind + i, b);
  parent.append(b);
  return b;
}
function paintThumbnail(canvas, l) {
  const side = 160, s = (side - 6) / Math.max(boxW, boxH), ratio = 1;
  canvas.width = canvas.height = side;
  paint(canvas, sortIntoLayers("factor", l), {w: side, h: side, s, x0: (side - boxW * s) / 2, y0: (side - boxH * s) / 2}, ratio);
}
const thumbnails = [];
function paintThumbnails() {
  let next = 0; // one at a time, so that the page answers meanwhile
  const step = () => { if (next < thumbnails.length) { paintThumbnail(thumbnails[next], next); next++; setTimeout(step); } else document.documentElement.dataset.thumbnails = "yes"; };
  step();
}
function search() {
  const text = $("search").value.trim().toLowerCase();
  let found = 0;
  for (const [key, b] of buttons) {
    if (key.startsWith("factor")) continue;
    b.hidden = text !== "" && !b.textContent.toLowerCase().includes(text);
    b.style.display = b.hidden ? "none" : "";
    found += !b.hidden;
  }
  $("none").hidden = found > 0;
  $("none").textContent = found > 0 ? "" : `No map of \u201c${$("search").value.trim()}\u201d here: the page has ${about.genes.length} of ${about.all_genes} genes. fathom spatial page --genes NAME adds some.`;
}

// ---- the page ----

function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  $("theme").textContent = dark ? "Light" : "Dark";
  if (layers) { drawBar(); redraw(); paintThumbnails(); }
}
document.title = about.title + " \u2013 " + about.model;
$("title").textContent = about.title;
$("what").textContent = `${about.model} \u00b7 ${about.of.toLocaleString("en")} cells \u00b7 ${about.factors.length} factors \u00b7 ${about.all_genes.toLocaleString("en")} genes`;
if (about.cells < about.of) $("thinned").textContent = `${about.cells.toLocaleString("en")} of ${about.of.toLocaleString("en")} cells are shown, drawn at random`;
for (let l = 0; l < about.factors.length; l++) {
  const canvas = element("canvas", {}), moran = about.factors[l].moran;
  canvas.setAttribute("aria-hidden", "true");
  thumbnails.push(canvas);
  addButton($("factors"), "factor", l, canvas, element("span", {textContent: String(l + 1)}), element("small", {textContent: moran === null ? "" : "I " + moran.toFixed(2)}))
    .setAttribute("aria-label", factorName(l));
}
if (about.sections) {
  $("sections").append(element("button", {type: "button", textContent: "all", onclick: showAll}),
    ...about.sections.map((s) => element("button", {type: "button", textContent: s.name, onclick: () => showSection(s)})));
} else $("section-part").remove();
if (many) {
  addButton($("groups"), "group", -1, "all");
  about.groups.forEach((g, k) => addButton($("groups"), "group", k, dot(k), g.name));
} else $("group-part").remove();
about.genes.map((g, i) => [g.name, i]).sort((a, b) => a[0].localeCompare(b[0], "en", {numeric: true})).forEach(([name, i]) => addButton($("genes"), "gene", i, name));

map.addEventListener("wheel", (e) => { e.preventDefault(); zoomBy(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0015)), e.offsetX, e.offsetY); }, {passive: false});
const touching = new Map();
map.addEventListener("pointerdown", (e) => { map.setPointerCapture(e.pointerId); touching.set(e.pointerId, [e.offsetX, e.offsetY]); });
for (const name of ["pointerup", "pointercancel"]) map.addEventListener(name, (e) => touching.delete(e.pointerId));
map.addEventListener("pointermove", (e) => {
  const last = touching.get(e.pointerId);
  if (!last) { point(e.offsetX, e.offsetY); return; }
  const t = transform(), other = [...touching].find(([id]) => id !== e.pointerId);
  if (other) {
    const before = Math.hypot(last[0] - other[1][0], last[1] - other[1][1]), now = Math.hypot(e.offsetX - other[1][0], e.offsetY - other[1][1]);
    if (before > 0 && now > 0) zoomBy(now / before, other[1][0], other[1][1]);
  } else { view.x -= (e.offsetX - last[0]) / t.s; view.y -= (e.offsetY - last[1]) / t.s; redraw(); }
  touching.set(e.pointerId, [e.offsetX, e.offsetY]);
  $("tip").style.display = "none";
});
map.addEventListener("pointerleave", () => { $("tip").style.display = "none"; });
map.addEventListener("keydown", (e) => {
  const t = transform(), step = 60 / t.s, move = {ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step]}[e.key];
  if (move) { view.x += move[0]; view.y += move[1]; redraw(); }
  else if (e.key === "+" || e.key === "=") zoomBy(1.3, t.w / 2, t.h / 2);
  else if (e.key === "-") zoomBy(1 / 1.3, t.w / 2, t.h / 2);
  else if (e.key === "0") showAll();
  else return;
  e.preventDefault();
});
for (const list of ["factors", "groups", "genes"])
  if ($(list)) $(list).addEventListener("keydown", (e) => {
    const way = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key], all = [...$(list).children].filter((b) => !b.hidden);
    const at = all.indexOf(document.activeElement);
    if (!way || at < 0) return;
    e.preventDefault();
    const next = all[(at + way + all.length) % all.length];
    next.focus();
    next.click();
  });
document.addEventListener("keydown", (e) => {
  const typing = document.activeElement === $("search");
  if (e.key === "i" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) showTissue(!tissue.shown);
  if (e.key === "/" && !typing) { e.preventDefault(); $("search").focus(); }
  if (e.key === "Escape" && typing) { $("search").value = ""; search(); }
});
$("search").addEventListener("input", search);
$("search").addEventListener("keydown", (e) => {
  const first = e.key === "Enter" && [...$("genes").children, ...($("groups") ? $("groups").children : [])].find((b) => !b.hidden);
  if (first && $("search").value.trim()) first.click();
});
$("in").onclick = () => zoomBy(1.4, map.clientWidth / 2, map.clientHeight / 2);
$("out").onclick = () => zoomBy(1 / 1.4, map.clientWidth / 2, map.clientHeight / 2);
$("all").onclick = showAll;
$("tissue-shown").onchange = () => showTissue($("tissue-shown").checked);
$("tissue-cells").oninput = () => { tissue.cells = $("tissue-cells").value / 100; redraw(); };
$("theme").onclick = () => setTheme(!document.documentElement.classList.contains("dark"));
window.addEventListener("hashchange", fromAddress);
new ResizeObserver(redraw).observe($("stage"));
setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches);
fromAddress();
if (about.images) loadTissue();
paintThumbnails();
