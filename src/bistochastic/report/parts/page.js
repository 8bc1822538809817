"use strict";
(() => {
  const held = JSON.parse(document.getElementById("held").textContent);
  const byId = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const config = { responsive: true, displaylogo: false,
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d"],
      ["zoomIn2d", "zoomOut2d", "resetScale2d"]] };
  let printing = false;

  // ---- colors of the theme

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    if (printing) return { fg: "#1d2025", line: "#d9dde3", bg: "#ffffff" };
    return { fg: read("--fg"), line: read("--line"), bg: read("--bg") };
  }

  function themed(layout) {
    const { fg, line } = theme();
    const narrow = innerWidth < 640;
    const made = Object.assign({}, layout, {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: fg, family: "system-ui, sans-serif", size: narrow ? 11 : 13 },
      margin: { l: narrow ? 48 : 64, r: narrow ? 12 : 24, t: 24, b: 48 },
      modebar: { color: fg, bgcolor: "rgba(0,0,0,0)" },
    });
    for (const name of Object.keys(made).filter((key) => /^[xy]axis/.test(key))) {
      made[name] = Object.assign(
        { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true },
        made[name]);
    }
    if (layout.yaxis2) made.margin.r = 56;
    return made;
  }

  function shaded(data) {
    const { fg, bg } = theme();
    return data.map((trace) => trace.colorscale === "page"
      ? Object.assign({}, trace, { colorscale: [[0, bg], [1, fg]], zmin: 0, zmax: 255 })
      : trace);
  }

  function draw(id) {
    const chart = held.charts[id];
    return Plotly.react(byId(id), shaded(chart.data), themed(chart.layout), config);
  }

  // ---- the plane

  const unpack = (text, kind) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new kind(bytes.buffer);
  };
  const s = held.plane;
  const place = (text, axis) => Float64Array.from(unpack(text, Uint16Array),
    (step) => s.low[axis] + step / 65535 * (s.high[axis] - s.low[axis]));
  const x = place(s.x, 0), y = place(s.y, 1);
  const label = unpack(s.label, s.many ? Uint32Array : Uint16Array);
  const rows = s.rows && unpack(s.rows, Uint32Array);
  const sure = s.sure && unpack(s.sure, Uint8Array);
  const ends = unpack(s.edges, Uint32Array);
  const webgl = () => {
    const canvas = document.createElement("canvas");
    return Boolean(canvas.getContext("webgl") || canvas.getContext("webgl2"));
  };
  const fast = s.gl && webgl();
  const kind = fast ? "scattergl" : "scatter";
  const every = Array.from(label.keys());
  const most = 5000;
  const drawn = fast || s.n <= most ? every
    : every.filter((at) => Math.floor(at * most / s.n) !== Math.floor((at - 1) * most / s.n));
  if (drawn.length < s.n) {
    byId("less").textContent = `Without WebGL, ${drawn.length} rows are drawn.`;
  }
  const size = Math.max(3, Math.min(9, 260 / Math.sqrt(s.n)));
  let alone = null;
  let traceRows = [];

  function lines() {
    const ex = [], ey = [];
    for (let at = 0; at < ends.length; at += 2) {
      if (alone !== null && label[ends[at]] !== alone) continue;
      ex.push(x[ends[at]], x[ends[at + 1]], null);
      ey.push(y[ends[at]], y[ends[at + 1]], null);
    }
    return { type: kind, mode: "lines", x: ex, y: ey, hoverinfo: "skip",
      line: { color: theme().fg, width: 1 }, opacity: 0.2 };
  }

  function points(chosen, colors, opacity, hover) {
    const marker = { size, color: colors, opacity, line: { width: 0 } };
    if (!fast && Array.isArray(colors)) {
      marker.symbol = Array.from(chosen, (at) => s.symbols[label[at] % s.symbols.length]);
    }
    return { type: kind, mode: "markers", marker, hoverinfo: hover,
      x: Float64Array.from(chosen, (at) => x[at]),
      y: Float64Array.from(chosen, (at) => y[at]) };
  }

  function drawPlane() {
    const inside = alone === null ? drawn : drawn.filter((at) => label[at] === alone);
    const traces = [], kept = [];
    const add = (trace, list) => { traces.push(trace); kept.push(list); };
    if (alone !== null) {
      const others = drawn.filter((at) => label[at] !== alone);
      add(points(others, theme().fg, 0.12, "skip"), others);
    }
    if (byId("edges").checked) add(lines(), []);
    add(points(inside, inside.map((at) => s.colors[label[at]]), 0.85, "none"), inside);
    traceRows = kept;
    const axis = (at) => ({ title: { text: s.axes[at] }, zeroline: false,
      showticklabels: s.ticks });
    return Plotly.react(byId("plane"), traces, themed({
      xaxis: axis(0), yaxis: axis(1), showlegend: false, hovermode: "closest",
      dragmode: matchMedia("(pointer: coarse)").matches ? "pan" : "zoom",
      uirevision: "plane",
    }), Object.assign({ scrollZoom: false }, config));
  }

  const named = (at) => s.names ? s.names[at] : `row ${(rows ? rows[at] : at) + 1}`;
  const pointed = (event) => {
    const point = event.points[0];
    const list = traceRows[point.curveNumber];
    return list && list.length ? list[point.pointNumber] : null;
  };

  function listen() {
    const plane = byId("plane"), tip = byId("tip");
    plane.on("plotly_hover", (event) => {
      const at = pointed(event);
      if (at === null) return;
      tip.textContent = `${named(at)} · cluster ${label[at]}`
        + (sure ? ` · confidence ${(sure[at] / 100).toFixed(2)}` : "");
      tip.style.display = "block";
      const across = Math.min(event.event.clientX + 14, innerWidth - tip.offsetWidth - 8);
      tip.style.left = `${Math.max(8, across)}px`;
      tip.style.top = `${event.event.clientY + 14}px`;
    });
    plane.on("plotly_unhover", () => { tip.style.display = "none"; });
    plane.on("plotly_click", (event) => {
      const at = pointed(event);
      if (at !== null) isolate(alone === label[at] ? null : label[at]);
    });
  }

  // ---- one cluster alone

  function isolate(cluster) {
    alone = cluster;
    byId("isolate").value = cluster === null ? "" : String(cluster);
    for (const button of document.querySelectorAll("button.only")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.cluster) === cluster));
    }
    byId("said").textContent = cluster === null
      ? "All clusters are shown." : `Cluster ${cluster} is shown alone.`;
    drawPlane();
    sift();
  }

  byId("isolate").addEventListener("change", (event) =>
    isolate(event.target.value === "" ? null : Number(event.target.value)));
  byId("edges").addEventListener("change", drawPlane);
  byId("reset").addEventListener("click", () => {
    byId("edges").checked = true;
    if (byId("filter")) byId("filter").value = "";
    isolate(null);
    Plotly.relayout(byId("plane"), { "xaxis.autorange": true, "yaxis.autorange": true });
  });
  for (const button of document.querySelectorAll("button.only")) {
    button.addEventListener("click", () => {
      const cluster = Number(button.dataset.cluster);
      isolate(alone === cluster ? null : cluster);
    });
  }

  // ---- the table of rows

  const table = byId("rows");
  const body = table && table.tBodies[0];
  let sorted = { column: null, down: false };

  function sift() {
    if (!table) return;
    const wanted = byId("filter").value.trim().toLowerCase();
    let count = 0;
    for (const row of body.rows) {
      const found = !wanted || row.cells[0].textContent.toLowerCase().includes(wanted)
        || row.dataset.cluster === wanted || `cluster ${row.dataset.cluster}` === wanted;
      row.hidden = !found || (alone !== null && Number(row.dataset.cluster) !== alone);
      count += row.hidden ? 0 : 1;
      row.classList.toggle("late", count > 40);
    }
    byId("counted").textContent = `${count} of ${body.rows.length} rows`
      + (alone === null ? "" : `, of cluster ${alone}`);
  }

  function sort(column) {
    sorted = { column, down: sorted.column === column && !sorted.down };
    const value = (row) => {
      const text = row.cells[column].textContent;
      return column ? (text === "" ? -1 : Number(text)) : text;
    };
    const list = Array.from(body.rows).sort((one, other) => {
      const a = value(one), b = value(other);
      const way = column ? a - b : a.localeCompare(b, undefined, { numeric: true });
      return sorted.down ? -way : way;
    });
    body.append(...list);
    sift();
    for (const button of table.querySelectorAll("th button")) {
      const here = Number(button.dataset.column) === column;
      button.closest("th").setAttribute("aria-sort",
        here ? (sorted.down ? "descending" : "ascending") : "none");
    }
  }

  if (table) {
    byId("filter").addEventListener("input", sift);
    for (const button of table.querySelectorAll("th button")) {
      button.addEventListener("click", () => sort(Number(button.dataset.column)));
    }
    sift();
  }

  // ---- drawing, at first and when the theme changes

  const later = window.requestIdleCallback || ((run) => setTimeout(run, 30));
  const charts = Object.keys(held.charts);

  function redraw() {
    drawPlane();
    charts.forEach(draw);
  }

  drawPlane().then(() => {
    listen();
    document.documentElement.dataset.first = String(Math.round(performance.now()));
    const next = (at) => {
      if (at === charts.length) {
        document.documentElement.dataset.drawn = String(Math.round(performance.now()));
        return;
      }
      draw(charts[at]).then(() => later(() => next(at + 1)));
    };
    next(0);
  });
  dark.addEventListener("change", redraw);
  matchMedia("(max-width: 639px)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => { printing = true; redraw(); });
  addEventListener("afterprint", () => { printing = false; redraw(); });
})();
