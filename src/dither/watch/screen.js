"use strict";
// The charts of a page. The numbers stand in it as JSON; the colours are those of the style, so they follow the theme.

(() => {
  const DAY = 24 * 60 * 60 * 1000; // milliseconds
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
    const layout = {
      width: plot.clientWidth,
      height: plot.clientHeight,
      margin: { l: 4, r: 8, t: 6, b: 4 },
      showlegend: false,
      dragmode: false,
      hovermode: data.kind === "intervals" ? "closest" : "x unified",
      barmode: "stack",
      bargap: 0.25,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: fontFamily, size: 12, color: of("--soft") },
      hoverlabel: { bgcolor: of("--page"), bordercolor: of("--line"), font: { family: fontFamily, size: 12.5, color } },
      xaxis: { ...axis, showgrid: false, ...(data.kind === "intervals" ? {} : { type: "date", hoverformat: data.hover, nticks: small ? 4 : 7, ...days(data.x, small ? 4 : 7) }) },
      yaxis: { ...axis, tickformat: data.format, rangemode: data.zero ? "tozero" : "normal" },
    };
    if (data.kind === "intervals") {
      layout.xaxis = { ...axis, tickformat: data.format, nticks: small ? 4 : 6 };
      layout.yaxis = { automargin: true, autorange: "reversed", showgrid: false, fixedrange: true, color };
    }
    if (data.ceiling) layout.yaxis.range = [0, data.ceiling];
    Plotly.react(plot, data.series.flatMap((series) => traces(data, series, of(`--${series.color}`))), layout, { displayModeBar: false });
    document.getElementById("js-plotly-tester")?.setAttribute("aria-hidden", "true"); // in which Plotly measures text
  }

  // Ticks of an axis of days: at days, never within one. Plotly's own are such where the days are more than its ticks.
  function days(x, most) {
    const [first, last] = [x[0], x.at(-1)].map((day) => Date.parse(day));
    const count = (last - first) / DAY + 1;
    if (count === 1) return { range: [first - DAY, first + DAY], tickvals: [x[0]] };
    return count <= most ? { dtick: DAY } : {};
  }

  // A colour as the browser computes it: Plotly knows no light-dark().
  function resolved(name, style) {
    const probe = document.getElementById("probe");
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  }

  function traces(data, { name, y, low, high }, color) {
    const { x, counts } = data;
    const label = escaped(name);
    const extra = counts ? counts.map((n) => `, ${n.toLocaleString("en")} rewards`) : undefined;
    const number = `%{y:${data.format}}%{customdata}`;
    if (data.kind === "bars") return [{ type: "bar", x, y, marker: { color }, name: label, hovertemplate: `%{fullData.name} %{y:${data.format}}<extra></extra>` }];
    if (data.kind === "intervals") {
      return [{ type: "scatter", mode: "markers", x: y, y: x.map(escaped), marker: { color, size: 9 },
        error_x: { type: "data", symmetric: false, array: y.map((v, i) => high[i] - v), arrayminus: y.map((v, i) => v - low[i]), color, thickness: 2, width: 5 },
        hovertemplate: `%{y}: %{x:${data.format}}<extra></extra>` }];
    }
    const lone = y.filter((v) => v !== null).length < 3;
    const line = { type: "scatter", mode: lone ? "lines+markers" : "lines", x, y, name: label, line: { color, width: 2 }, marker: { size: 6 },
      customdata: extra ?? y.map(() => ""), hovertemplate: `%{fullData.name} ${number}<extra></extra>` };
    if (!low) return [line];
    const band = { type: "scatter", mode: "lines", x, line: { width: 0, color }, hoverinfo: "skip" };
    return [{ ...band, y: low }, { ...band, y: high, fill: "tonexty", fillcolor: color.replace("rgb(", "rgba(").replace(")", ", 0.15)") }, line];
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
