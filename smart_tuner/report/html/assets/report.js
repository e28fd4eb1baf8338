"use strict";
(() => {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const plots = [...document.querySelectorAll(".plot")];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const NARROW = 560;

  // Colours of text and frames are the page's; those of the data hold on light and on dark.
  // Notes beside a line stand on paper, so that no line strikes them through.
  const themed = (layout) => ({
    ...Object.fromEntries(
      (layout.annotations ?? []).map((_, place) => [`annotations[${place}].bgcolor`, colour("--paper")]),
    ),
    "font.color": colour("--ink"),
    "hoverlabel.bgcolor": colour("--card"),
    "hoverlabel.bordercolor": colour("--line"),
    "hoverlabel.font.color": colour("--ink"),
  });

  const set = (object, path, value) => {
    const keys = path.split(/[.[\]]+/);
    const last = keys.pop();
    keys.reduce((place, key) => (place[key] ??= {}), object)[last] = value;
  };

  // A phone has no room for whole names: their ends tell them apart.
  const fitted = (layout, width) => {
    if (width >= NARROW) return layout;
    layout.margin = { ...layout.margin, l: 44, r: 6 };
    layout.font = { ...layout.font, size: 10 };
    for (const [key, axis] of Object.entries(layout)) {
      if (/^yaxis/.test(key) && axis.ticktext) {
        axis.ticktext = axis.ticktext.map((text) => (text.length > 19 ? "…" + text.slice(-18) : text));
      }
    }
    return layout;
  };

  const draw = (plot) => {
    if (plot.dataset.drawn) return;
    plot.dataset.drawn = "yes";
    const figure = JSON.parse(document.getElementById(plot.dataset.figure).textContent);
    for (const [path, value] of Object.entries(themed(figure.layout))) set(figure.layout, path, value);
    for (const trace of figure.data) if (trace.type === "heatmap") trace.textfont = { color: colour("--ink") };
    const layout = fitted(figure.layout, plot.clientWidth);
    const config = { responsive: true, displayModeBar: false };
    Plotly.newPlot(plot, figure.data, layout, config);
  };

  // Drawing waits until a figure is about to be seen, so that the text is there at once.
  const watch = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "800px" },
  );
  plots.forEach((plot) => watch.observe(plot));
  addEventListener("beforeprint", () => plots.forEach(draw));
  scheme.addEventListener("change", () => {
    for (const plot of plots.filter((plot) => plot.dataset.drawn)) {
      const cells = plot.data.flatMap((trace, place) => (trace.type === "heatmap" ? [place] : []));
      if (cells.length) Plotly.restyle(plot, { "textfont.color": colour("--ink") }, cells);
      Plotly.relayout(plot, themed(plot.layout));
    }
  });
})();
