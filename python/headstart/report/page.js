// Draws every figure of the page in the colours of the page's theme, and again when the theme changes.
"use strict";
(() => {
  const sources = [...document.querySelectorAll("script[data-for]")];
  const narrow = window.matchMedia("(max-width: 40rem)");
  const finger = window.matchMedia("(pointer: coarse)");
  const mediaToRedrawFor = ["(prefers-color-scheme: dark)", "print"].map((query) => window.matchMedia(query));

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    return { ink: colour("--ink"), quiet: colour("--quiet"), grid: colour("--grid"), line: colour("--line"), paper: colour("--paper") };
  }

  function axis(own, colours) {
    return {
      automargin: true,
      gridcolor: colours.grid,
      linecolor: colours.line,
      zerolinecolor: colours.line,
      tickcolor: colours.line,
      separatethousands: true,
      ...own,
      title: { standoff: 10, ...own.title },
    };
  }

  function layout(own, colours) {
    const font = getComputedStyle(document.body).fontFamily;
    return {
      ...own,
      autosize: true,
      font: { family: font, size: narrow.matches ? 11 : 12.5, color: colours.ink },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 8, r: 12, t: own.annotations ? 26 : 10, b: 8 },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", itemwidth: 30 },
      hoverlabel: { bgcolor: colours.paper, bordercolor: colours.line, font: { color: colours.ink } },
      dragmode: finger.matches ? false : "zoom",
      separators: ".,",
      xaxis: axis(own.xaxis, colours),
      yaxis: axis(own.yaxis, colours),
      shapes: (own.shapes || []).map((shape) => ({ ...shape, line: { ...shape.line, color: colours.quiet } })),
      annotations: (own.annotations || []).map((note) => ({ ...note, font: { color: colours.quiet, size: 11.5 } })),
    };
  }

  function draw() {
    const colours = theme();
    for (const source of sources) {
      const figure = JSON.parse(source.textContent);
      const config = { responsive: true, displaylogo: false, displayModeBar: false };
      Plotly.react(source.dataset.for, figure.data, layout(figure.layout, colours), config);
    }
  }

  for (const medium of mediaToRedrawFor) {
    medium.addEventListener("change", draw);
  }
  draw();
})();
