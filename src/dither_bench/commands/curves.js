"use strict";
// The plots of a report. A panel is drawn when it comes into view, and again when a button, a key or the window says so.

(() => {
  const MARGIN = { l: 8, r: 10, t: 30, b: 8 }; // the buttons of Plotly stand in the upper one
  const STEP = { ArrowLeft: ["xaxis", -0.15], ArrowRight: ["xaxis", 0.15], ArrowDown: ["yaxis", -0.15], ArrowUp: ["yaxis", 0.15] };
  const ZOOM = { "+": 0.7, "=": 0.7, "-": 1 / 0.7 };
  const CONFIG = {
    displaylogo: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
  };

  const touch = matchMedia("(pointer: coarse)").matches; // there, a finger scrolls the page over a plot
  const plots = new Map(); // element -> what draws it
  const drawn = new Set();

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "300px" });
  const resized = new ResizeObserver((entries) => entries.forEach((entry) => drawn.has(entry.target) && draw(entry.target)));

  function draw(plot) {
    drawn.add(plot);
    plots.get(plot)();
  }

  function start(root) {
    const data = JSON.parse(root.querySelector("script").textContent);
    const state = { log: root.dataset.log === "true", hidden: new Set() }; // hidden: numbers of curves, and kinds
    const elements = [...root.querySelectorAll(".plot")];

    elements.forEach((plot, i) => {
      plots.set(plot, () => Plotly.react(plot, traces(data, i, state), layout(data, state, plot), CONFIG));
      plot.addEventListener("keydown", (event) => move(plot, event));
      seen.observe(plot);
      resized.observe(plot);
    });

    const buttons = [...root.querySelectorAll("button[data-scale], button[data-hide]")];
    function show() {
      for (const button of buttons) {
        const { scale, hide } = button.dataset;
        button.setAttribute("aria-pressed", scale ? (scale === "log") === state.log : !state.hidden.has(hide));
      }
      elements.filter((plot) => drawn.has(plot)).forEach(draw);
    }
    for (const button of buttons) {
      const { scale, hide } = button.dataset;
      button.addEventListener("click", () => {
        if (scale) [state.log, state.pressed] = [scale === "log", true];
        else if (!state.hidden.delete(hide)) state.hidden.add(hide);
        show();
      });
    }
    root.querySelector("button[data-all]").addEventListener("click", () => {
      state.hidden.clear();
      show();
    });
    show();
  }

  // Up to three traces of each curve: the band, the mean, and the published curve.
  function traces(data, i, state) {
    const { x, curves } = data.panels[i];
    return curves.flatMap((numbers) => {
      const curve = data.curves[numbers.curve];
      const color = dark() ? curve.dark : curve.light;
      const shown = (kind) => !state.hidden.has(String(numbers.curve)) && !state.hidden.has(kind);
      const line = (kind, name, x, { mean, se }, symbol, width, dash) => ({
        x, y: mean, customdata: se.map((error) => (error === null ? "" : " ± " + short(error))), connectgaps: true,
        mode: "lines+markers", line: { color, width, dash }, marker: { color, symbol, size: 6.5, maxdisplayed: 9 },
        visible: shown(kind),
        hovertemplate: `<b>${escaped(name)}</b><br>${data.x} %{x:,}: %{y:,.4~r}%{customdata}<extra></extra>`,
      });
      const found = [
        { ...band(x, numbers, scale(data, state, "y") === "log"), mode: "lines", fill: "toself", fillcolor: color + "30", line: { color, width: 0 },
          hoverinfo: "skip", visible: shown("band") },
        line("mean", curve.name, x, numbers, curve.symbol, 2, curve.dash),
      ];
      const theirs = numbers.published;
      if (theirs) {
        const name = `${curve.name}, published`;
        found.push(line("published", name, theirs.x, theirs, curve.symbol + "-open", 1.5, "dash"));
      }
      return found;
    });
  }

  // The outline of the band. A logarithm has no 0: there, a band that reaches it ends at half of the smallest mean.
  function band(x, { mean, se, low, high }, log) {
    const floor = log ? Math.min(...mean.filter((y) => y > 0)) / 2 : -Infinity;
    const places = [...x.keys()].filter((k) => mean[k] !== null && (mean[k] > 0 || !log));
    const upper = places.map((k) => (high ? high[k] : mean[k] + se[k]));
    const lower = places.map((k) => Math.max(low ? low[k] : mean[k] - se[k], floor));
    const at = places.map((k) => x[k]);
    return { x: [...at, ...at.toReversed()], y: [...upper, ...lower.toReversed()] };
  }

  function short(number) {
    return number.toLocaleString("en", { maximumSignificantDigits: 3 });
  }

  function escaped(text) {
    return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  }

  // The scale that was asked for holds until a button is pressed.
  function scale(data, state, name) {
    return (!state.pressed && data.scales[name]) || (state.log ? "log" : "linear");
  }

  // The limits that were asked for. The ends of a logarithmic axis are exponents; an end of 0 has none.
  function range(data, state, name) {
    const ends = data.ends[name];
    if (!ends) return {};
    const log = scale(data, state, name) === "log";
    const end = (number) => (number === null || (log && number <= 0) ? null : log ? Math.log10(number) : number);
    return { range: ends.map(end) };
  }

  function layout(data, state, plot) {
    const { color, fontFamily } = getComputedStyle(plot);
    const { borderTopColor: line } = getComputedStyle(plot.parentElement);
    const axis = (title, name) => ({
      title: { text: title, standoff: 6 },
      type: scale(data, state, name),
      ...range(data, state, name),
      rangemode: "tozero",
      gridcolor: line,
      linecolor: line,
      zeroline: false,
      automargin: true,
      nticks: 6,
      exponentformat: "power",
      tickformat: scale(data, state, name) === "log" ? "" : ",~r",
      dtick: scale(data, state, name) === "log" ? 1 : undefined,
    });
    return {
      width: plot.clientWidth,
      height: plot.clientHeight,
      margin: MARGIN,
      showlegend: false,
      hovermode: "closest",
      dragmode: touch ? false : "zoom",
      uirevision: String(state.log) + String(state.pressed), // a zoom stays, but not into the other scale
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: fontFamily, size: 12, color },
      modebar: { bgcolor: "rgba(0,0,0,0)", color, activecolor: color },
      xaxis: axis(data.x, "x"),
      yaxis: axis(data.y, "y"),
    };
  }

  function move(plot, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const shift = STEP[event.key];
    const factor = ZOOM[event.key];
    if (!shift && !factor && event.key !== "0") return;
    event.preventDefault();
    const change = {};
    for (const name of ["xaxis", "yaxis"]) {
      if (event.key === "0") change[`${name}.autorange`] = true;
      else if (factor || shift[0] === name) {
        const [low, high] = plot.layout[name].range;
        const by = shift ? shift[1] * (high - low) : 0;
        const rest = factor ? ((1 - factor) * (high - low)) / 2 : 0;
        change[`${name}.range`] = [low + by + rest, high + by - rest];
      }
    }
    Plotly.relayout(plot, change);
  }

  // On paper everything is drawn, light, and as wide as the sheet.
  function print(printing) {
    document.documentElement.classList.toggle("printing", printing);
    const theme = document.documentElement.dataset;
    if (printing) [theme.before, theme.theme] = [theme.theme ?? "", "light"];
    else if (theme.before) theme.theme = theme.before;
    else delete theme.theme;
    for (const details of document.querySelectorAll("details")) details.open = printing;
    (printing ? [...plots.keys()] : [...drawn]).forEach(draw);
  }

  document.querySelectorAll(".curves").forEach(start);
  addEventListener("theme", () => drawn.forEach(draw));
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
})();
