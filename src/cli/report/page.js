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
  // "2026-11-21 07:30:00 UTC+1", as all of remote writes times.
  const stamp = (ms, fraction) => {
    const day = new Date(ms), pad = (n, width) => String(n).padStart(width || 2, "0");
    const zone = -day.getTimezoneOffset(), far = Math.abs(zone);
    return `${day.getFullYear()}-${pad(day.getMonth() + 1)}-${pad(day.getDate())} ${pad(day.getHours())}:${pad(day.getMinutes())}:${pad(day.getSeconds())}` +
      (fraction ? "." + pad(day.getMilliseconds(), 3) : "") +
      " UTC" + (zone === 0 ? "" : (zone < 0 ? "-" : "+") + Math.floor(far / 60) + (far % 60 ? ":" + pad(far % 60) : ""));
  };
  const clock = seconds => stamp(seconds * 1000, false);
  const exactClock = ms => stamp(ms, true);
  const duration = s => s < 90 ? Math.round(s) + " s" : s < 5400 ? Math.round(s / 60) + " min" : (s / 3600).toFixed(1) + " h";
  const figure = v => v === null || v === undefined ? "" : Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(3).replace(/\.?0+e/, "e") : String(+v.toPrecision(5));
  const who = one => one.label ? one.label : one.rank === null || one.rank === undefined ? "job " + one.key : one.ranks > 1 ? `ranks ${one.rank}–${one.rank + one.ranks - 1}` : "rank " + one.rank;
  const look = state => ({succeeded: "good", failed: "bad", lost: "bad", killed: "odd", running: "busy", starting: "busy", queued: "soft"}[state] || "soft");
  const hues = [210, 130, 30, 280, 0, 175, 330, 60];
  const color = n => `hsl(${(hues[n % 8] + 17 * Math.floor(n / 8)) % 360} 65% ${matchMedia("(prefers-color-scheme: dark)").matches ? 65 : 42}%)`;
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Instants come as "2026-11-21T07:30:00Z"; here they are reckoned with, in seconds.
  const prepared = text => {
    const all = {jobs: [], gpus: [], tails: [], look: "", ...JSON.parse(text)};  // of several launches there is less
    const seconds = instant => instant ? Date.parse(instant) / 1000 : null;
    all.made_at = seconds(all.made_at);
    for (const job of all.jobs) for (const name of ["created_at", "started_at", "ended_at", "checked_at", "last_output_at"]) job[name] = seconds(job[name]);
    return all;
  };
  let text = at("data").textContent;
  let data = prepared(text);
  let charts = [];
  let gpuCharts = [];
  let hidden = new Set();  // names of ranks that are not drawn

  const showHead = () => {
    document.title = data.title + " – " + data.state;
    at("project").textContent = data.project;
    at("title").textContent = data.title;
    at("state").textContent = data.state;
    at("state").className = "badge " + data.look;
    at("headline").textContent = data.headline;
    const attempts = data.attempts || []; // several launches on one page have none
    at("attempts").hidden = attempts.length === 0;
    at("attempts").replaceChildren(...attempts.map(text => element("li", text)));
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
    at("made").textContent = "Made by remote " + data.version + ", " + clock(data.made_at) + ".";
  };

  const happened = {first_output: "wrote its first output", restarted: "began anew", requeued: "was begun anew by Slurm",
                    failed: "failed", killed: "was ended", lost: "was lost"};
  const ofAll = new Set(["restarted", "requeued", "killed", "lost"]);  // happens to all ranks of a job
  const signOf = {restarted: "anew", requeued: "anew", first_output: "first"};
  const stepWords = {connect: "connecting to", look: "looking at", container: "making the container ready on", start: "starting on"};

  // The steps of the beginning, each once for all servers, and what happened to jobs.
  const story = () => {
    const {steps, moments} = data.timeline;
    const lines = [];
    for (const name of new Set(steps.map(step => step.name))) {
      const all = steps.filter(step => step.name === name);
      const from = Math.min(...all.map(step => step.from_ms)), to = Math.max(...all.map(step => step.to_ms));
      const slowest = all.reduce((one, other) => other.to_ms - other.from_ms > one.to_ms - one.from_ms ? other : one);
      const where = all.length === 1 ? slowest.server || "the servers" : all.length + " servers";
      const slow = all.length > 1 ? `; ${slowest.server} took longest` : "";
      lines.push({at: from, text: `${stepWords[name] || name} ${where}: ${((to - from) / 1000).toFixed(2)} s${slow}`, exact: true});
    }
    const restarts = new Map();  // of all jobs of a launch: one line
    for (const one of moments) {
      const restart = one.kind === "restarted" ? restarts.get(one.text) : null;
      if (restart && one.at_ms - restart.at < 1000) {
        restart.keys.add(one.key);
        restart.text = `${restart.keys.size === data.jobs.length ? "all ranks" : restart.keys.size + " jobs"} began anew: ${one.text}`;
        continue;
      }
      const job = data.jobs.find(job => job.key === one.key);
      lines.push({at: one.at_ms, exact: one.exact, text: `${who(job && (job.label || ofAll.has(one.kind)) ? job : one)} on ${one.server} ${happened[one.kind]}${one.text ? ": " + one.text : ""}`});
      if (one.kind === "restarted") {
        restarts.set(one.text, Object.assign(lines[lines.length - 1], {keys: new Set([one.key])}));
      }
    }
    return lines.sort((one, other) => one.at - other.at);
  };

  const showMoments = () => {
    const most = 300, lines = story();
    const items = lines.slice(0, most).map(line => {
      const item = element("li");
      item.append(element("time", line.exact ? exactClock(line.at) : clock(line.at / 1000)), line.text);
      return item;
    });
    if (lines.length > most) items.push(element("li", `and ${lines.length - most} more`, "soft"));
    at("moments").hidden = items.length === 0;
    const list = at("moments").querySelector("ol");
    list.tabIndex = 0;
    list.replaceChildren(...items);
  };

  const showTimeline = () => {
    const jobs = data.jobs, {steps, moments} = data.timeline;
    const begin = Math.min(...jobs.map(job => job.created_at), ...steps.map(step => step.from_ms / 1000));
    const end = Math.max(begin + 1, ...jobs.map(job => job.ended_at || (job.ended ? job.checked_at || begin : data.made_at)));
    const share = seconds => Math.max(0, Math.min(100, 100 * (seconds - begin) / (end - begin)));
    const rows = jobs.map(job => {
      const row = element("div", null, "row");
      row.append(element("span", who(job) + " · " + job.server, "name"));
      const bar = element("div", null, "bar");
      const last = job.ended_at || (job.ended ? job.checked_at || begin : data.made_at);
      const started = job.started_at || last;
      const part = (from, to, kind) => {
        const piece = element("span", null, kind);
        piece.style.left = share(from) + "%";
        piece.style.width = Math.max(0, share(to) - share(from)) + "%";
        bar.append(piece);
      };
      const first = Math.min(job.created_at, ...steps.filter(step => !step.server || step.server === job.server).map(step => step.from_ms / 1000));
      if (started > first) part(first, started, "starting");
      if (job.started_at) part(started, last, look(job.state));
      const own = moments.filter(one => one.key === job.key);
      for (const one of own) {
        const mark = element("span", null, "mark " + (signOf[one.kind] || ""));
        // The ends are whole seconds: the mark stands within the bar.
        mark.style.left = `calc(${share(Math.min(one.at_ms / 1000, last))}% - 3px)`;
        bar.append(mark);
      }
      const words = `${who(job)} on ${job.server}: ${job.state_text}` +
        (job.started_at ? `; began ${clock(job.started_at)}, ${job.ended ? "ran" : "has run"} ${duration(last - started)}` : "") +
        own.filter(one => signOf[one.kind]).map(one => `; ${clock(one.at_ms / 1000)} ${happened[one.kind]}`).join("");
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
    showMoments();
  };

  const showJobs = () => {
    const head = element("tr");
    const commands = data.jobs.some(job => job.command !== data.jobs[0].command);  // else the title has it
    for (const name of ["", "Server", "State", "Began", "Ran", "Last line", "PID", ...(commands ? ["Command"] : [])]) head.append(element("th", name));
    const rows = data.jobs.map(job => {
      const row = element("tr");
      const ran = job.started_at && (job.ended_at || !job.ended) ? duration((job.ended_at || data.made_at) - job.started_at) : "";
      for (const text of [who(job), job.server, job.state_text,
                          job.started_at ? clock(job.started_at) : "", ran,
                          job.last_output_at ? duration(data.made_at - job.last_output_at) + " ago" : "", job.pid || ""]) row.append(element("td", text));
      if (commands) row.append(element("td", job.command, "command"));
      return row;
    });
    at("jobs").replaceChildren(head, ...rows);
  };

  // Each fact with its value; where the servers differ, each value with those that have it.
  const factRows = facts => facts.map(fact => {
    const row = element("tr", null, fact.differs ? "differs" : "");
    row.append(element("th", fact.name));
    const cell = element("td");
    for (const one of fact.values) {
      const line = element("div");
      const text = one.value === null ? (fact.name === "changed here" ? "nothing" : "not known") : one.value;
      const value = element("span", fact.name === "code" ? text.slice(0, 12) : text);
      if (fact.name === "code") value.title = text;
      line.append(value);
      if (fact.differs) line.append(element("span", " on " + one.servers.join(", "), "soft"));
      cell.append(line);
    }
    if (fact.differs) cell.append(element("span", "differs", "mark-differs"));
    row.append(cell);
    return row;
  });

  const showEnvironment = () => {
    const all = data.environment;
    at("environment").hidden = !all;
    if (!all) return;
    const odd = [...all.facts, ...all.variables].filter(one => one.differs).map(one => one.name);
    at("differences").textContent = data.jobs.every(job => job.server === data.jobs[0].server) ? "" :
      odd.length ? "The servers differ in: " + odd.join(", ") + "." : "All servers are the same in this.";
    at("facts").replaceChildren(...factRows(all.facts));
    at("variables").hidden = all.variables.length === 0;
    at("variables").querySelector("summary").textContent = all.variables.length + " environment variables (secrets are masked)";
    at("variables").querySelector("table").replaceChildren(...factRows(all.variables));
  };

  // Several launches beside each other, and no parts that are about one.
  const showLaunches = () => {
    const all = data.launches;
    at("launches").hidden = !all;
    for (const part of ["timeline", "jobs", "output"]) at(part).closest("section").hidden = !!all;
    if (!all) return;
    const head = element("tr");
    head.append(element("th", ""), ...all.map((one, n) => {
      const cell = element("th", one.label);
      cell.style.color = color(n);
      return cell;
    }));
    const row = (name, values) => {
      const made = element("tr");
      made.append(element("th", name), ...values.map(value => element("td", value === null ? "–" : value, "command")));
      return made;
    };
    const notes = all.some(one => one.note) ? [row("note", all.map(one => one.note || null))] : [];
    at("launches").querySelector("table").replaceChildren(head, row("began", all.map(one => clock(Date.parse(one.began_at) / 1000))), ...notes,
                                                          ...data.differences.map(one => row(one.name, one.values)));
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
      for (const v of curve.values) if (v !== null) { least = Math.min(least, v); most = Math.max(most, v); }
      const name = element("td", who(curve));
      name.style.color = color(curve.color);
      row.append(name);
      for (const v of [curve.values[curve.values.length - 1], least, most]) row.append(element("td", figure(v)));
      table.append(row);
    }
    return table;
  };

  const drawChart = (name, curves, note) => {
    const box = element("div", null, "chart");
    const over = curves.every(one => one.over === curves[0].over) ? curves[0].over : "";
    box.append(element("h3", name));
    if (note) box.append(element("p", note, "soft"));
    const shown = curves.filter(one => !hidden.has(who(one)));
    const place = element("div", null, "plot");
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", `${name} over ${over || "the values in their order"}; the table below has its figures`);
    box.append(place);
    if (curves.length > 8) {
      const more = element("details");
      more.append(element("summary", curves.length + (curves[0].over === "time" ? " GPUs" : data.launches ? " launches" : curves[0].label ? " points" : " ranks") + ": last, least and most"), legendTable(curves));
      box.append(more);
    } else {
      box.append(legendTable(curves));
    }
    if (curves.some(one => one.thinned)) box.append(element("p", "Not every value is drawn.", "soft"));
    return {box, place, shown, over};
  };

  // A chart of each server's GPUs: what they were used, and their memory.
  const showGpus = () => {
    for (const chart of gpuCharts) if (chart.made) chart.made.destroy();
    at("gpus").hidden = data.gpus.length === 0;
    gpuCharts = [];
    for (const server of new Set(data.gpus.map(gpu => gpu.server))) {
      const own = data.gpus.filter(gpu => gpu.server === server);
      const curves = (part, unit) => own.map(gpu => ({label: "GPU " + gpu.index, color: gpu.index, at: gpu.at, over: "time", values: gpu[part].map(v => v === null ? null : v / unit)}));
      const total = Math.max(...own.map(gpu => gpu.memory_total || 0)) / 2 ** 30;
      const names = [...new Set(own.map(gpu => gpu.name))].join(", ");
      gpuCharts.push({...drawChart(`${server}: use, %`, curves("use", 1), names), time: true, most: 100});
      gpuCharts.push({...drawChart(`${server}: memory, GiB`, curves("memory", 2 ** 30), total ? `of ${figure(total)} GiB` : ""), time: true, most: total});
    }
    at("gpu-charts").replaceChildren(...gpuCharts.map(chart => chart.box));
    gpuCharts.forEach(plot);
  };

  const showBandwidth = () => {
    const all = data.bandwidth;
    at("bandwidth").hidden = !all;
    if (!all) return;
    const flows = all.servers.flatMap(one => one.to);
    const slow = flows.filter(flow => flow.outlier).length, median = all.servers[0].median_gbit_s;
    at("measured").textContent = `Measured ${clock(Date.parse(all.measured_at) / 1000)} by “remote check --bandwidth”: median ${figure(median)} Gbit/s` +
      (slow ? `; ${slow} of ${flows.length} under 70 % of it` : "") + ".";
    const head = element("tr");
    for (const name of ["From", "To", "Gbit/s", "µs", ""]) head.append(element("th", name));
    const rows = all.servers.flatMap(one => one.to.map(flow => {
      const row = element("tr", null, flow.outlier ? "differs" : "");
      for (const text of [one.server, flow.to, flow.gbit_s === null ? "–" : figure(flow.gbit_s), flow.latency_us === null ? "–" : Math.round(flow.latency_us),
                          flow.error || (flow.outlier ? "slow" : "")]) row.append(element("td", text));
      return row;
    }));
    at("flows").replaceChildren(head, ...rows);
  };

  const plot = chart => {
    if (chart.made) { chart.made.destroy(); chart.made = null; }
    if (!chart.shown.length) return;
    const grid = {stroke: css("--soft"), grid: {stroke: css("--line"), width: 1}, ticks: {stroke: css("--line"), width: 1}};
    chart.made = new uPlot({
      width: Math.max(200, chart.place.clientWidth), height: 220, cursor: {drag: {x: true, y: false}}, legend: {show: false},
      scales: {x: {time: !!chart.time}, ...(chart.most ? {y: {range: [0, chart.most]}} : {})},
      axes: [{...grid, label: chart.time ? "" : chart.over, labelSize: chart.over && !chart.time ? 20 : 0, size: chart.time ? 50 : 36}, {...grid, size: 60, values: (_, ticks) => ticks.map(figure)}],
      series: [{}, ...chart.shown.map(one => ({label: who(one), stroke: color(one.color), width: 1.5, spanGaps: true, points: {show: one.values.length < 30}}))],
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
    at("ranks").replaceChildren(element("legend", data.launches ? "Launches" : data.jobs.some(job => job.label) ? "Points" : "Ranks"), ...ranks.map(name => {
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

  const show = () => { showHead(); showLaunches(); if (!data.launches) showTimeline(); showJobs(); showEnvironment(); showBandwidth(); showOutput(); showCurves(); showGpus(); };
  show();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; [...charts, ...gpuCharts].forEach(plot); } });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { showCurves(); showGpus(); });
  if (data.watch) setTimeout(() => location.reload(), 3000);
  document.documentElement.dataset.ready = "yes";
})();
