"use strict";
// The charts of a page. The numbers stand in it as JSON; the colours are those of the style, so they follow the theme.

(() => {
  const STEPS = [1, 2, 3, 7, 14, 28]; // days from a tick to the next
  const numbers = { exponentformat: "e", minexponent: 7, separatethousands: true }; // in the others Plotly sets styles, which the content policy refuses
  const charts = [...document.querySelectorAll(".plot")].map((plot) => ({
    plot,
    data: JSON.parse(document.getElementById(plot.dataset.of).textContent),
  }));
  const drawn = new Set();

  function draw(chart) {
    drawn.add(chart);
    const style = getComputedStyle(document.documentElement);
    const { color, fontFamily } = getComputedStyle(document.body);
    const of = (name) => resolved(name, style);
    const axis = { gridcolor: of("--grid"), linecolor: of("--line"), zeroline: false, automargin: true, nticks: 5, fixedrange: true };
    const { plot, data } = chart;
    chart.width = plot.clientWidth;
    const small = plot.clientWidth < 420;
    const most = small ? 4 : 7;
    const layout = {
      width: plot.clientWidth,
      height: plot.clientHeight,
      margin: { l: 4, r: 8, t: 6, b: 4 },
      showlegend: false,
      dragmode: false,
      hovermode: "x unified",
      barmode: "stack",
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: fontFamily, size: 12, color: of("--soft") },
      hoverlabel: { bgcolor: of("--page"), bordercolor: of("--line"), font: { family: fontFamily, size: 12.5, color } },
      xaxis: { ...axis, showgrid: false, type: "date", hoverformat: "%a %b %-d, %Y", nticks: most, ticks: "outside", ticklen: 5, tickcolor: of("--line"), tickangle: 0, ...times(data, most) },
      yaxis: { ...axis, ...numbers, rangemode: data.zero ? "tozero" : "normal", ...counts(data) },
    };
    if (data.format) layout.yaxis.tickformat = data.format;
    if (data.kind === "intervals") {
      layout.hovermode = "closest";
      layout.xaxis = { ...axis, ...numbers, nticks: small ? 4 : 6 };
      layout.yaxis = { automargin: true, range: [data.x.length - 0.5, -0.5], showgrid: false, fixedrange: true, color };
    }
    Plotly.react(plot, data.series.flatMap((series) => traces(data, series, of(`--${series.color}`))), layout, { displayModeBar: false });
    document.getElementById("js-plotly-tester")?.setAttribute("aria-hidden", "true"); // in which Plotly measures text
  }

  // The range of an axis of days is that of their bars, so that all charts have the same one. Its ticks are at days,
  // never within one, evenly, and not so near an end that a label is cut. For half a year and more Plotly's are months.
  function times({ x, step }, most) {
    const [first, last] = [x[0], x.at(-1)].map((time) => Date.parse(time));
    const range = [first - step / 2, last + step / 2];
    const apart = STEPS.find((n) => Math.ceil(x.length / n) <= most);
    if (!apart || (last - first) / step + 1 !== x.length) return { range };
    const start = Math.floor(((x.length - 1) % apart) / 2);
    return { range, tickmode: "linear", tick0: x[start], dtick: apart * step };
  }

  // Few decisions are counted one by one, and not by halves.
  function counts({ kind, series }) {
    const most = Math.max(...series[0].y.map((_, i) => series.reduce((sum, { y }) => sum + y[i], 0)));
    return kind === "bars" && most < 5 ? { dtick: 1 } : {};
  }

  // A colour as the browser computes it: Plotly knows no light-dark().
  function resolved(name, style) {
    const probe = document.getElementById("probe");
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  }

  function traces(data, { name, y, low, high }, color) {
    const { x, hover, step } = data;
    const label = escaped(name);
    const said = { name: label, customdata: hover, hovertemplate: `%{fullData.name} ${hover ? "%{customdata}" : `%{y:${data.format}}`}<extra></extra>` };
    if (data.kind === "bars") return [{ type: "bar", x, y, width: 0.75 * step, marker: { color }, ...said }];
    if (data.kind === "intervals") {
      return [{ type: "scatter", mode: "markers", x: y, y: x.map(escaped), marker: { color, size: 9 }, customdata: hover,
        error_x: { type: "data", symmetric: false, array: y.map((v, i) => high[i] - v), arrayminus: y.map((v, i) => v - low[i]), color, thickness: 2, width: 5 },
        hovertemplate: "%{y}: %{customdata}<extra></extra>" }];
    }
    const pieces = whole(y);
    const alone = new Set(pieces.filter(([from, to]) => to - from === 1).map(([from]) => from));
    const sizes = y.map((_, i) => (alone.has(i) || y.length < 3 ? 6 : 0)); // a line through one point is not seen
    const line = { type: "scatter", mode: "lines+markers", x, y, line: { color, width: 2 }, marker: { color, size: sizes, opacity: 1, line: { width: 0 } }, ...said };
    if (!low) return [line];
    const pale = color.replace("rgb(", "rgba(").replace(")", ", 0.15)");
    const bands = pieces.filter(([from, to]) => to - from > 1).map(([from, to]) => ({
      type: "scatter", mode: "lines", line: { width: 0, color }, fill: "toself", fillcolor: pale, hoverinfo: "skip",
      x: [...x.slice(from, to), ...x.slice(from, to).reverse()], y: [...low.slice(from, to), ...high.slice(from, to).reverse()],
    }));
    const ends = (values, sign) => values.map((v, i) => (alone.has(i) ? sign * (v - y[i]) : 0));
    const error_y = { type: "data", symmetric: false, array: ends(high, 1), arrayminus: ends(low, -1), color: pale, thickness: 6, width: 0 };
    return [...bands, alone.size ? { ...line, error_y } : line];
  }

  // The pieces of a curve between its gaps: [from, to) of each.
  function whole(y) {
    const pieces = [];
    y.forEach((v, i) => {
      if (v === null) return;
      if (i && y[i - 1] !== null) pieces.at(-1)[1] = i + 1;
      else pieces.push([i, i + 1]);
    });
    return pieces;
  }

  function escaped(text) {
    return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  }

  // The chart that is next to what is seen is drawn first, and the page may show it before the next one is begun.
  function drawOn() {
    const middle = innerHeight / 2;
    const away = ({ plot }) => Math.abs(plot.getBoundingClientRect().top + plot.clientHeight / 2 - middle);
    const [next] = charts.filter((chart) => !drawn.has(chart)).sort((a, b) => away(a) - away(b));
    if (!next) return;
    draw(next);
    setTimeout(drawOn);
  }

  drawOn();
  addEventListener("theme", () => drawn.forEach(draw));
  const resized = new ResizeObserver((entries) => entries.forEach((entry) => {
    const chart = charts.find(({ plot }) => plot === entry.target);
    if (drawn.has(chart) && chart.width !== chart.plot.clientWidth) draw(chart);
  }));
  charts.forEach(({ plot }) => resized.observe(plot));
  addEventListener("beforeprint", () => charts.forEach(draw));
})();
