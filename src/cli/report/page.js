"use strict";
// Everything that a server or a job has said goes into the page as text, never as HTML.
(() => {
  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const at = id => document.getElementById(id);
  const clock = seconds => new Date(seconds * 1000).toLocaleTimeString();
  const duration = s => s < 90 ? Math.round(s) + " s" : s < 5400 ? Math.round(s / 60) + " min" : (s / 3600).toFixed(1) + " h";
  const figure = v => v === null || v === undefined ? "" : Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(3) : String(+v.toPrecision(5));
  const who = one => one.rank === null || one.rank === undefined ? "job " + one.key : "rank " + one.rank;
  const look = state => ({succeeded: "good", failed: "bad", lost: "bad", killed: "odd", running: "busy", starting: "busy", queued: "soft"}[state] || "soft");
  const hues = [210, 130, 30, 280, 0, 175, 330, 60];
  const color = n => `hsl(${(hues[n % 8] + 17 * Math.floor(n / 8)) % 360} 65% ${matchMedia("(prefers-color-scheme: dark)").matches ? 65 : 42}%)`;
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  let data = JSON.parse(at("data").textContent);
  let charts = [];
  let hidden = new Set();  // names of ranks that are not drawn

  const showHead = () => {
    document.title = data.title + " – " + data.state;
    at("project").textContent = data.project;
    at("title").textContent = data.title;
    at("state").textContent = data.state;
    at("state").className = "badge " + data.look;
    at("headline").textContent = data.headline;
    const cause = data.cause;
    at("cause").hidden = !cause;
    if (cause) {
      at("cause-title").textContent = cause.title;
      at("cause-lines").textContent = cause.lines.join("\n");
      at("cause-lines").hidden = cause.lines.length === 0;
      at("aftermath").textContent = cause.rest;
    }
    at("problems").hidden = data.problems.length === 0;
    at("problems").replaceChildren(...data.problems.map(text => element("li", text)));
    at("made").textContent = "Made by remote " + data.version + ", " + new Date(data.made_at * 1000).toLocaleString() + ".";
  };

  const showTimeline = () => {
    const jobs = data.jobs;
    const begin = Math.min(...jobs.map(job => job.created_at));
    const end = Math.max(begin + 1, ...jobs.map(job => job.ended_at || (job.ended ? job.checked_at || begin : data.made_at)));
    const share = seconds => Math.max(0, Math.min(100, 100 * (seconds - begin) / (end - begin)));
    const rows = jobs.map(job => {
      const row = element("div", null, "row");
      row.append(element("span", who(job) + (job.ranks > 1 ? "–" + (job.rank + job.ranks - 1) : "") + " · " + job.server, "name"));
      const bar = element("div", null, "bar");
      const last = job.ended_at || (job.ended ? job.checked_at || begin : data.made_at);
      const started = job.started_at || last;
      const part = (from, to, kind) => {
        const piece = element("span", null, kind);
        piece.style.left = share(from) + "%";
        piece.style.width = Math.max(0, share(to) - share(from)) + "%";
        bar.append(piece);
      };
      if (started > job.created_at) part(job.created_at, started, "starting");
      if (job.started_at) part(started, last, look(job.state));
      if (job.failed_at_ms && job.state === "failed") {
        const mark = element("span", null, "mark");
        // The ends are whole seconds: the mark stands within the bar.
        mark.style.left = `calc(${share(Math.min(job.failed_at_ms / 1000, last))}% - 3px)`;
        bar.append(mark);
      }
      const words = `${who(job)} on ${job.server}: ${job.state}${job.reason ? ", " + job.reason : ""}` +
        (job.started_at ? `; began ${clock(job.started_at)}, ${job.ended ? "ran" : "has run"} ${duration(last - started)}` : "");
      bar.setAttribute("role", "img");
      bar.setAttribute("aria-label", words);
      bar.title = words;
      row.append(bar);
      return row;
    });
    const axis = element("div", null, "row");
    const scale = element("div", null, "axis");
    scale.append(element("span", clock(begin)), element("span", duration(end - begin)), element("span", clock(end)));
    axis.append(element("span", ""), scale);
    at("timeline").replaceChildren(...rows, axis);
  };

  const showJobs = () => {
    const head = element("tr");
    for (const name of ["", "Server", "State", "Exit", "Began", "Ran", "PID", "Command"]) head.append(element("th", name));
    const rows = data.jobs.map(job => {
      const row = element("tr");
      const exit = job.exit_code !== null && job.exit_code !== undefined ? job.exit_code : job.signal || "";
      const ran = job.started_at && (job.ended_at || !job.ended) ? duration((job.ended_at || data.made_at) - job.started_at) : "";
      for (const text of [who(job), job.server, job.state + (job.reason ? " (" + job.reason + ")" : ""), exit,
                          job.started_at ? clock(job.started_at) : "", ran, job.pid || ""]) row.append(element("td", text));
      row.append(element("td", job.command, "command"));
      return row;
    });
    at("jobs").replaceChildren(head, ...rows);
  };

  const showOutput = () => {
    const first = data.cause ? data.cause.key : null;
    const open = new Set([...at("output").querySelectorAll("details[open]")].map(one => one.dataset.who));
    at("output").replaceChildren(...data.tails.map(tail => {
      const box = element("details");
      box.dataset.who = who(tail);
      box.open = tail.key === first || open.has(box.dataset.who) || data.tails.length === 1;
      box.append(element("summary", who(tail)));
      for (const [name, lines] of [["stdout", tail.out], ["stderr", tail.err]]) {
        if (lines.length) {
          box.append(element("p", name, "soft"));
          const text = element("pre", lines.join("\n"));
          text.tabIndex = 0;
          box.append(text);
        }
      }
      return box;
    }));
  };

  const legendTable = curves => {
    const table = element("table");
    const head = element("tr");
    for (const name of ["", "last", "least", "most"]) head.append(element("th", name));
    table.append(head);
    for (const curve of curves) {
      const row = element("tr");
      let least = Infinity, most = -Infinity;
      for (const v of curve.values) { least = Math.min(least, v); most = Math.max(most, v); }
      const name = element("td", who(curve));
      name.style.color = color(curve.rank || 0);
      row.append(name);
      for (const v of [curve.values[curve.values.length - 1], least, most]) row.append(element("td", figure(v)));
      table.append(row);
    }
    return table;
  };

  const drawChart = (name, curves) => {
    const box = element("div", null, "chart");
    const over = curves.every(one => one.over === curves[0].over) ? curves[0].over : "";
    box.append(element("h3", name));
    const shown = curves.filter(one => !hidden.has(who(one)));
    const place = element("div", null, "plot");
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", `${name} over ${over || "the values in their order"}; the table below has its figures`);
    box.append(place);
    if (curves.length > 8) {
      const more = element("details");
      more.append(element("summary", curves.length + " ranks: last, least and most"), legendTable(curves));
      box.append(more);
    } else {
      box.append(legendTable(curves));
    }
    if (curves.some(one => one.thinned)) box.append(element("p", "Not every value is drawn.", "soft"));
    return {box, place, shown, over};
  };

  const plot = chart => {
    if (chart.made) { chart.made.destroy(); chart.made = null; }
    if (!chart.shown.length) return;
    const grid = {stroke: css("--soft"), grid: {stroke: css("--line"), width: 1}, ticks: {stroke: css("--line"), width: 1}};
    chart.made = new uPlot({
      width: Math.max(200, chart.place.clientWidth), height: 220, cursor: {drag: {x: true, y: false}}, legend: {show: false},
      scales: {x: {time: false}}, axes: [{...grid, label: chart.over, labelSize: chart.over ? 20 : 0, size: 36}, {...grid, size: 60, values: (_, ticks) => ticks.map(figure)}],
      series: [{}, ...chart.shown.map(one => ({label: who(one), stroke: color(one.rank || 0), width: 1.5, spanGaps: true, points: {show: one.values.length < 30}}))],
    }, uPlot.join(chart.shown.map(one => [one.at, one.values])), chart.place);
  };

  const showCurves = () => {
    for (const chart of charts) if (chart.made) chart.made.destroy();
    const names = [...new Set(data.curves.map(one => one.name))];
    charts = names.map(name => drawChart(name, data.curves.filter(one => one.name === name)));
    at("charts").replaceChildren(...charts.map(chart => chart.box));
    if (!charts.length) at("charts").append(element("p", "No numbers with a name stand in the output, such as “loss 0.31”, “loss=0.31” or lines of JSON.", "soft"));
    charts.forEach(plot);
    const ranks = [...new Set(data.curves.map(who))];
    at("ranks").hidden = ranks.length < 2;
    at("ranks").replaceChildren(element("legend", "Ranks"), ...ranks.map(name => {
      const label = element("label");
      const box = element("input");
      box.type = "checkbox";
      box.checked = !hidden.has(name);
      box.addEventListener("change", () => {
        if (box.checked) hidden.delete(name); else hidden.add(name);
        for (const chart of charts) {
          const heading = chart.box.querySelector("h3").textContent;
          chart.shown = data.curves.filter(one => one.name === heading && !hidden.has(who(one)));
          plot(chart);
        }
      });
      label.append(box, " " + name);
      return label;
    }));
  };

  const show = () => { showHead(); showTimeline(); showJobs(); showOutput(); showCurves(); };
  show();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; charts.forEach(plot); } });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showCurves);
  if (data.watch) {
    const again = async () => {
      try {
        const answer = await fetch("data.json", {cache: "no-store"});
        if (answer.ok) { const news = await answer.json(); if (JSON.stringify(news) !== JSON.stringify(data)) { data = news; show(); } }
        if (!data.watch) return;
      } catch (error) {
        at("made").textContent = "remote report --watch has ended; this is what was known last.";
        return;
      }
      setTimeout(again, 2000);
    };
    setTimeout(again, 2000);
  }
  document.documentElement.dataset.ready = "yes";
})();
