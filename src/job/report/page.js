/* page.js - draws the report from the data inside the page.
 *
 * Texts become text nodes, never HTML. Long lists are drawn in pieces as they come into sight, so
 * that thousands of jobs and figures open at once. With `live` the page asks for new data.
 */
'use strict';
(() => {
  const at = (id) => document.getElementById(id);
  const parse = (id) => JSON.parse(at(id).textContent);
  const page = parse('page');
  let view = parse('data');
  let jobs = [];
  let shown = []; // jobs that match the filter, in order
  const open = new Set(); // keys of open jobs
  const JOBS = 100, GROUPS = 12, FAILURES = 20, BARS = 30;

  /* ---- small things ---- */

  function el(tag, attrs, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attrs || {})) {
      if (k === 'on') e.addEventListener('click', v);
      else if (v !== undefined && v !== null && v !== false) e.setAttribute(k, v);
    }
    e.append(...children.filter((c) => c !== null && c !== undefined && c !== ''));
    return e;
  }
  function svg(tag, attrs, ...children) {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  }
  const plural = (n, one, many) => `${n} ${n === 1 ? one : many || one + 's'}`;
  function size(bytes) {
    if (!bytes) return '';
    let v = bytes, u = 0;
    while (v >= 999.5 && u < 6) { v /= 1024; u++; }
    return `${u && v < 9.95 ? v.toFixed(1) : Math.round(v)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][u]}`;
  }
  /* Two sizes in the unit of the larger: "2.7 / 3.0 GiB". */
  function pair(a, b, between) {
    const top = size(Math.max(a, b)).split(' '), unit = Math.max(a, b) / parseFloat(top[0]);
    const one = (v) => (!v ? '-' : v / unit < 9.95 && top[1] !== 'B' ? (v / unit).toFixed(1) : String(Math.round(v / unit)));
    return a || b ? `${one(a)} ${between} ${one(b)} ${top[1]}` : '';
  }
  function span(s) {
    if (!(s > 0)) return '';
    if (s < 9.95) return s.toFixed(1) + ' s';
    const t = Math.round(s), two = (n) => String(n).padStart(2, '0');
    if (t < 60) return t + ' s';
    if (t < 3600) return `${Math.floor(t / 60)}:${two(t % 60)} min`;
    if (t < 360000) return `${Math.floor(t / 3600)}:${two(Math.floor(t / 60) % 60)} h`;
    return `${(t / 86400).toFixed(1)} days`;
  }
  function when(s) {
    if (!s) return '';
    const d = new Date(s * 1000), two = (n) => String(n).padStart(2, '0');
    return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
  }
  const number = (v) => (v === null ? '' : String(+v.toPrecision(5)));
  const base = (path) => path.slice(path.lastIndexOf('/') + 1);
  const under = (path) => (path.startsWith(view.root + '/') ? path.slice(view.root.length + 1) : path);
  /* Colours of terminals and lines that were written over are not for reading. */
  const clean = (log) => log.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '')
    .split('\n').map((l) => l.slice(l.replace(/\r+$/, '').lastIndexOf('\r') + 1)).join('\n').trimEnd();
  const link = (file) => {
    if (!page.live) return page.links[file];
    return view.files[file].kind === 'figure' ? 'file?path=' + encodeURIComponent(view.files[file].path) : '';
  };
  const logLink = (task) => (page.live ? 'log?path=' + encodeURIComponent(view.tasks[task].log_path) : page.logs[task]);

  /* ---- jobs of tasks ---- */

  const PLACE = ['failed', 'interrupted', 'running', 'pending', 'blocked', 'skipped', 'stale', 'completed', 'cached'];
  const stateOf = (t) => (t.cached && t.state === 'completed' ? 'cached' : t.state);

  function collect() {
    const byKey = new Map(), shared = new Map(); // shared: stages of all jobs of a folder
    view.tasks.forEach((t, i) => {
      if (!t.model) shared.set(t.output_dir, [...(shared.get(t.output_dir) || []), i]);
    });
    const own = new Set(view.tasks.filter((t) => t.model).map((t) => t.output_dir));
    view.tasks.forEach((t, i) => {
      if (!t.model && own.has(t.output_dir)) return;
      const key = t.output_dir + '\n' + t.job;
      if (!byKey.has(key)) byKey.set(key, { key, name: t.job, dir: t.output_dir, tasks: [], figures: [], outputs: [] });
      byKey.get(key).tasks.push(i);
    });
    const owner = [];
    jobs = [...byKey.values()];
    for (const j of jobs) {
      if (own.has(j.dir)) j.tasks = [...(shared.get(j.dir) || []), ...j.tasks];
      for (const t of j.tasks) owner[t] = owner[t] || j; // files of a shared stage are shown once
    }
    view.files.forEach((f, i) => {
      const j = owner[f.task];
      if (j && f.kind === 'figure') j.figures.push(i);
      else if (j && f.kind === 'output') j.outputs.push(i);
    });
    for (const j of jobs) finish(j);
  }
  function finish(j) {
    const ts = j.tasks.map((i) => view.tasks[i]);
    const max = (f) => ts.reduce((m, t) => Math.max(m, f(t) || 0), 0);
    /* As in run_status.json: what was cut off has failed. */
    const cutOff = (t) => t.state === 'interrupted' || (view.ended > 0 && (t.state === 'pending' || t.state === 'running'));
    j.state = PLACE[Math.min(...ts.map((t) => PLACE.indexOf(cutOff(t) ? 'interrupted' : stateOf(t))))] || ts[0].state;
    const bad = ts.find((t) => t.reason && (t.state === j.state || (j.state === 'interrupted' && cutOff(t))));
    if (j.state === 'interrupted') j.state = 'failed';
    if (j.state === 'cached' && ts.some((t) => !t.cached)) j.state = 'completed';
    j.place = PLACE.indexOf(j.state);
    j.seconds = ts.reduce((s, t) => s + (t.cached ? 0 : t.seconds || 0), 0);
    j.planned = max((t) => t.planned_bytes);
    j.peak = max((t) => t.peak_bytes || t.now_bytes);
    j.devices = [...new Set(ts.map((t) => t.device).filter(Boolean))].join(', ');
    const key = ts.filter((t) => t.value !== null && t.figure).pop();
    j.figure = key ? `${key.figure} ${number(key.value)}` : '';
    j.run = ts.find((t) => t.state === 'running');
    j.reason = j.state === 'completed' || j.state === 'cached' || !bad ? '' : bad.reason;
    j.text = [j.name, j.dir, j.state, j.devices, j.reason, ...ts.flatMap((t) => [t.stage, t.state, t.model, t.instrument])]
      .join(' ').toLowerCase();
  }

  /* ---- the head ---- */

  function drawHead() {
    const count = {};
    for (const j of jobs) count[j.state] = (count[j.state] || 0) + 1;
    if (count.cached) count.completed = (count.completed || 0) + count.cached; // of which some were cached
    const active = at('filter').value.trim();
    at('tiles').replaceChildren(...PLACE.filter((s) => count[s]).map((s) => el('button', {
      class: s, 'aria-pressed': String(active === s), title: `Show only ${s} jobs`,
      on: () => { at('filter').value = at('filter').value.trim() === s ? '' : s; refilter(); drawHead(); },
    }, el('b', {}, String(count[s])), s)));
    const ts = view.tasks, end = view.ended || view.now;
    const peak = ts.reduce((m, t) => Math.max(m, t.peak_bytes || 0, t.now_bytes || 0), 0);
    const devices = [...new Set(ts.map((t) => t.device).filter(Boolean))].sort().join(', ');
    const work = ts.reduce((s, t) => s + (t.cached ? 0 : t.seconds || 0), 0);
    const facts = [
      ['Jobs', jobs.length ? `${jobs.length}, ${plural(ts.length, 'stage')}` : ''],
      ['Run time', view.started && end > view.started ? span(end - view.started) : ''],
      ['Time in stages', span(work)],
      ['Largest peak', size(peak)], ['Memory allowed', size(view.budget_bytes)],
      ['Devices', devices], ['Started', when(view.started)],
      ['Host', view.host], ['Version', view.version && 'Fathom ' + view.version.replace(/^fathom /i, '')],
    ];
    at('facts').replaceChildren(...facts.filter((f) => f[1]).map(([k, v]) => el('div', {}, el('dt', {}, k), el('dd', {}, v))));
    if (view.command) at('facts').append(el('div', { class: 'whole' }, el('dt', {}, 'Command'), el('dd', {}, el('code', {}, view.command))));
    at('where').textContent = view.root + (view.runner_pid ? `, a runner is at work (process ${view.runner_pid})` : '');
    banner('');
    at('kind').textContent = page.live ? 'live' : 'report';
    at('foot').textContent = page.live ? 'Refreshes every two seconds.'
      : `Written ${when(page.made)} by Fathom ${page.fathom}. Links lead to files beside this page: keep them together.`;
  }
  function drawNav() {
    const parts = [['failures', 'Failures'], ['jobs', 'Jobs'], ['memory', 'Memory'], ['timeline', 'Timeline'], ['bounds', 'Bounds'], ['figures', 'Figures']];
    at('nav').replaceChildren(...parts.filter(([id]) => !at(id).hidden)
      .map(([id, text]) => el('a', { href: '#' + id, class: id === 'failures' && 'bad' }, text)));
  }

  /* ---- lists that are drawn in pieces ---- */

  let keeping = false; // new data for the same page: what was opened stays open
  const watch = 'IntersectionObserver' in window ? new IntersectionObserver((seen) => {
    for (const s of seen) if (s.isIntersecting) s.target.click();
  }, { rootMargin: '600px' }) : null;
  /* A button that draws more; in the last list of the page, coming near it presses it. */
  function pieces(holder, button, list, step, make, auto) {
    let done = 0, now = keeping ? Math.max(step, holder.count || 0) : step;
    holder.replaceChildren();
    const more = () => {
      const part = list.slice(done, done + now);
      done += part.length;
      holder.count = done;
      now = step;
      holder.append(...part.flatMap(make));
      if (watch && auto && button.firstChild) watch.unobserve(button.firstChild);
      button.replaceChildren();
      if (done >= list.length) return;
      const b = el('button', { class: 'more', on: more }, `Show ${Math.min(step, list.length - done)} more of ${list.length - done}`);
      button.append(b);
      if (watch && auto) watch.observe(b);
    };
    more();
  }

  /* ---- jobs ---- */

  const COLUMNS = [
    ['name', 'Job', (j) => j.name.toLowerCase()], ['stages', 'Stages', (j) => j.tasks.length],
    ['state', 'State', (j) => j.place], ['device', 'Device', (j) => j.devices],
    ['figure', 'Key figure', (j) => j.figure], ['time', 'Time', (j) => j.seconds, true],
    ['memory', 'Peak / plan', (j) => j.peak, true],
  ];
  let sort = { column: 'state', down: false };

  function drawTitles() {
    at('titles').replaceChildren(...COLUMNS.map(([id, title, , right]) => el('th', {
      scope: 'col', class: `c-${id}${right ? ' number' : ''}`, 'data-column': id,
      'aria-sort': sort.column === id ? (sort.down ? 'descending' : 'ascending') : undefined,
    }, el('button', { type: 'button', on: () => sortBy(id) }, title))));
    at('order').replaceChildren(...COLUMNS.map(([id, title]) => el('option', { value: id, selected: sort.column === id && 'selected' }, title)));
  }
  function sortBy(id) {
    const right = COLUMNS.find((c) => c[0] === id)[3];
    sort = { column: id, down: sort.column === id ? !sort.down : !!right };
    drawTitles();
    refilter();
    const b = at('titles').querySelector(`[data-column=${id}] button`);
    if (b.offsetParent) b.focus();
  }
  function refilter() {
    const words = at('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
    const exact = words.length === 1 && PLACE.includes(words[0]); // a tile means the state alone
    const value = COLUMNS.find((c) => c[0] === sort.column)[2];
    const turn = sort.down ? -1 : 1;
    const isIn = (j, state) => j.state === state || (state === 'completed' && j.state === 'cached')
      || (state === 'interrupted' && j.tasks.some((i) => view.tasks[i].state === state));
    shown = jobs.filter((j) => (exact ? isIn(j, words[0]) : words.every((w) => j.text.includes(w))));
    const keyed = shown.map((j) => [value(j), j]);
    keyed.sort(([a, x], [b, y]) => (a < b ? -turn : a > b ? turn : x.name < y.name ? -1 : x.name > y.name ? 1 : 0));
    shown = keyed.map((k) => k[1]);
    at('found').textContent = words.length ? `${shown.length} of ${plural(jobs.length, 'job')}` : '';
    pieces(at('rows'), at('more-jobs'), shown, JOBS, rowsOf);
    if (!shown.length) at('rows').append(el('tr', {}, el('td', { colspan: COLUMNS.length }, el('p', { class: 'note' },
      jobs.length ? 'No job matches the filter.' : 'No jobs yet. They appear here once a run has started.'))));
    drawFigures();
  }
  function stateText(j) {
    if (!j.run) return j.state;
    return j.run.total > 0 ? `${j.run.doing || j.run.stage} ${Math.floor(100 * j.run.done / j.run.total)} %` : j.run.doing || 'running';
  }
  function meter(used, planned) {
    const whole = Math.max(used, planned), s = svg('svg', { class: 'meter', viewBox: '0 0 100 4', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    s.append(svg('rect', { class: 'k-plan', width: 100 * planned / whole, height: 4 }),
      svg('rect', { class: used > planned ? 'k-over' : 'k-used', width: 100 * used / whole, height: 4 }));
    return s;
  }
  function rowOf(j) {
    const button = el('button', { type: 'button', 'aria-expanded': String(open.has(j.key)), on: (e) => toggle(j, e.currentTarget) }, j.name);
    const memory = j.peak || j.planned ? [pair(j.peak, j.planned, '/'), j.peak && j.planned ? meter(j.peak, j.planned) : ''] : [];
    return el('tr', { class: 'job', 'data-state': j.state },
      el('th', { class: 'name', scope: 'row' }, button, j.reason ? el('small', {}, j.reason) : ''),
      el('td', { 'data-label': 'Stages' }, el('div', { class: 'chips' }, ...j.tasks.map((i) => el('span', {
        class: 'chip ' + view.tasks[i].state, title: `${view.tasks[i].stage}: ${stateOf(view.tasks[i])}`,
      }, view.tasks[i].stage, el('span', { class: 'hidden' }, ' ' + stateOf(view.tasks[i])))))),
      el('td', { 'data-label': 'State' }, el('span', {}, el('span', { class: 'state ' + j.state }, stateText(j)))),
      el('td', { 'data-label': 'Device' }, j.devices), el('td', { 'data-label': 'Key figure' }, j.figure),
      el('td', { 'data-label': 'Time', class: 'number' }, span(j.seconds)),
      el('td', { 'data-label': 'Peak / plan', class: 'number' }, ...(memory.length ? [el('span', {}, ...memory)] : [])));
  }
  const rowsOf = (j) => (open.has(j.key) ? [rowOf(j), detailOf(j)] : [rowOf(j)]);
  function toggle(j, button) {
    const row = button.closest('tr'), on = !open.has(j.key);
    button.setAttribute('aria-expanded', String(on));
    if (on) { open.add(j.key); row.after(detailOf(j)); } else { open.delete(j.key); details.delete(j.key); row.nextElementSibling.remove(); }
  }

  /* ---- details of a job ---- */

  function copyLine(text) {
    const pre = el('pre', { tabindex: '0' }, text);
    const button = el('button', { class: 'copy', type: 'button', on: () => {
      getSelection().selectAllChildren(pre);
      const said = (t) => { button.textContent = t; setTimeout(() => { button.textContent = 'Copy'; }, 1500); };
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => said('Copied'), () => said('Selected'));
      else said('Selected');
    } }, 'Copy');
    return el('div', { class: 'line' }, pre, button);
  }
  let tails = null;
  function tailOf(i) {
    if (!at('tails')) return 'The page is still being read; open this again.';
    if (!tails) tails = parse('tails');
    return tails[i] || '';
  }
  /* The end of a log: inside the page, or asked of the server. */
  function logBox(i) {
    const pre = el('pre', { tabindex: '0', class: 'log' });
    const t = view.tasks[i];
    if (!page.live) pre.textContent = clean(tailOf(i)) || 'The log is empty or gone.';
    else {
      const to = t.log_to > t.log_from ? t.log_to - 1 : '';
      const from = to ? Math.max(t.log_from, to - 16384) : t.log_from;
      fetch(logLink(i), { headers: { Range: to || from ? `bytes=${from}-${to}` : 'bytes=-16384' } })
        .then((r) => (r.ok ? r.text() : Promise.reject(new Error(String(r.status)))))
        .then((text) => {
          pre.textContent = clean(text).split('\n').slice(-100).join('\n') || 'The log is empty.';
          pre.scrollTop = pre.scrollHeight;
        })
        .catch((e) => { pre.textContent = 'The log cannot be read: ' + e.message; });
    }
    return pre;
  }
  function logDetails(i, isOpen) {
    const t = view.tasks[i];
    if (!t.log_path) return '';
    const d = el('details', { open: isOpen && '' }, el('summary', {}, `End of the log of ${t.stage}`));
    const fill = () => {
      if (!d.open || d.querySelector('pre')) return;
      const box = logBox(i);
      d.append(box, ...(logLink(i) ? [el('a', { href: logLink(i) }, 'Whole log')] : []));
      requestAnimationFrame(() => { box.scrollTop = box.scrollHeight; });
    };
    d.addEventListener('toggle', fill);
    fill();
    return d;
  }
  function stageRow(i) {
    const t = view.tasks[i];
    return el('tr', {}, el('th', { scope: 'row' }, t.stage), el('td', {}, el('span', { class: 'state ' + stateOf(t) }, stateOf(t))),
      el('td', {}, t.device), el('td', {}, span(t.seconds)),
      el('td', {}, pair(t.peak_bytes || t.now_bytes, t.planned_bytes, 'of')),
      el('td', {}, t.bound_by), el('td', {}, t.reason));
  }
  const details = new Map(); // of open jobs: drawn again only when something of them changed
  function detailOf(j) {
    const mark = JSON.stringify([j.tasks.map((i) => view.tasks[i]), j.outputs, j.figures]);
    if (details.get(j.key)?.mark !== mark) details.set(j.key, { mark, row: drawDetail(j) });
    return details.get(j.key).row;
  }
  function drawDetail(j) {
    const first = view.tasks[j.tasks[0]], cell = el('td', { colspan: COLUMNS.length });
    const section = (title, ...more) => cell.append(el('h3', {}, title), ...more);
    section('Stages', el('table', { class: 'stages' },
      el('thead', {}, el('tr', {}, ...['Stage', 'State', 'Device', 'Time', 'Peak of plan', 'Bound by', 'Why'].map((h) => el('th', { scope: 'col' }, h)))),
      el('tbody', {}, ...j.tasks.map(stageRow))));
    const pairs = [['Output', j.dir], ['Config', first.config_path], ['Instrument', [first.instrument, first.model].filter(Boolean).join(', ')]];
    cell.append(el('h3', {}, 'Where'), el('dl', { class: 'pairs' }, ...pairs.filter((p) => p[1]).flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, el('code', {}, v))])));
    const commands = j.tasks.map((i) => view.tasks[i].command).filter(Boolean);
    if (commands.length) section('By hand', copyLine([...new Set(commands)].join('\n')));
    for (const i of j.tasks) {
      const t = view.tasks[i];
      if (t.error) section(`Error of ${t.stage}`, el('pre', { tabindex: '0' }, t.error));
    }
    const logs = j.tasks.map((i) => logDetails(i, view.tasks[i].state === 'failed')).filter(Boolean);
    if (logs.length) section('Logs', ...logs);
    if (j.outputs.length) section('Outputs', fileList(j.outputs));
    if (j.figures.length) section('Figures', el('div', { class: 'figs' }, ...j.figures.map(figureOf)));
    return el('tr', { class: 'detail' }, cell);
  }
  function fileList(files) {
    return el('ul', { class: 'files' }, ...files.map((i) => {
      const f = view.files[i], name = f.title || under(f.path), href = link(i);
      return el('li', {}, href ? el('a', { href }, name) : el('span', {}, name), el('span', {}, size(f.bytes)));
    }));
  }

  /* ---- failures ---- */

  function drawFailures() {
    const bad = view.tasks.map((t, i) => [t, i]).filter(([t]) => t.state === 'failed' || t.state === 'interrupted');
    bad.sort(([a], [b]) => (a.state === b.state ? 0 : a.state === 'failed' ? -1 : 1));
    at('failures').hidden = !bad.length;
    const mark = JSON.stringify(bad);
    if (mark === at('failure-list').mark) return;
    at('failure-list').mark = mark;
    const list = at('failure-list'), rest = el('p', {}), holder = el('div', {});
    list.replaceChildren(holder, rest);
    pieces(holder, rest, bad, FAILURES, ([t, i]) => {
      const how = t.signal ? `signal ${t.signal}` : t.exit_code ? `exit code ${t.exit_code}` : t.state;
      return el('article', { class: 'failure ' + t.state },
        el('h3', {}, `${t.job} / ${t.stage}`, el('span', { class: 'state ' + t.state }, how), el('span', { class: 'dim' }, span(t.seconds) && 'after ' + span(t.seconds))),
        t.reason && !t.error.includes(t.reason) ? el('p', {}, t.reason) : '', t.error ? el('pre', { tabindex: '0' }, t.error) : '',
        logDetails(i, false), t.command ? el('details', {}, el('summary', {}, 'Run it by hand'), copyLine(t.command)) : '');
    });
  }

  /* ---- figures ---- */

  /* Thumbnails stand behind this script; they are taken out of the page when first needed. */
  let thumbs = null, missing = new Set();
  function thumbOf(file) {
    if (!thumbs && document.readyState !== 'loading') {
      thumbs = new Map();
      if (at('missing')) missing = new Set(parse('missing'));
      for (const s of document.querySelectorAll('script.thumbs')) {
        for (const [f, w, h, data] of JSON.parse(s.textContent)) thumbs.set(f, { w, h, data });
        s.remove();
      }
    }
    return thumbs ? thumbs.get(file) : null;
  }
  const whole = (file) => {
    const inside = at('figure' + file);
    return inside ? inside.textContent : link(file);
  };
  const drawable = (path) => /\.(png|svg|jpe?g|gif|webp)$/i.test(path);
  function figureOf(file) {
    const f = view.files[file], name = f.title || base(f.path), pic = el('span', { class: 'pic' });
    const thumb = page.live ? null : thumbOf(file), gone = missing.has(file);
    if (thumb) {
      pic.append(el('img', { src: 'data:image/png;base64,' + thumb.data, width: thumb.w, height: thumb.h, alt: '', decoding: 'async' }));
    } else if (!gone && drawable(f.path) && whole(file)) {
      const img = el('img', { loading: 'lazy', alt: '', decoding: 'async' });
      img.addEventListener('error', () => { pic.className = 'pic none'; pic.textContent = 'cannot be shown'; });
      img.src = whole(file);
      pic.append(img);
    } else {
      pic.classList.add('none');
      pic.textContent = gone ? 'file is missing' : base(f.path).split('.').pop().toUpperCase() + ' file';
    }
    const cap = el('span', { class: 'cap' }, name);
    if (gone) return el('div', { class: 'fig' }, pic, cap);
    if (!drawable(f.path)) return el('a', { class: 'fig', href: whole(file), download: at('figure' + file) ? base(f.path) : undefined }, pic, cap);
    return el('button', { class: 'fig', type: 'button', 'aria-label': `Figure: ${name}`, on: () => show(file) }, pic, cap);
  }
  let near = false; // the figures are in sight, or nearly
  function drawFigures() {
    at('figures').hidden = !view.files.some((f) => f.kind === 'figure');
    if (at('figures').hidden || !near || document.readyState === 'loading') return;
    const groups = shown.filter((j) => j.figures.length);
    const mark = JSON.stringify(groups.map((j) => j.figures.map((i) => [view.files[i].path, view.files[i].mtime])));
    if (mark === at('gallery').mark) return;
    at('gallery').mark = mark;
    pieces(at('gallery'), at('more-figures'), groups, GROUPS, (j) => el('div', { class: 'group' },
      el('h3', {}, j.name), el('div', { class: 'figs' }, ...j.figures.map(figureOf))), true);
    if (!groups.length) at('gallery').append(el('p', { class: 'note' }, 'No figure belongs to these jobs.'));
  }
  let current = -1;
  function show(file) {
    const f = view.files[file], t = view.tasks[f.task];
    current = file;
    at('viewer-image').src = whole(file);
    at('viewer-image').alt = f.title || base(f.path);
    at('viewer-title').textContent = `${t.job} / ${t.stage}: ${f.title || base(f.path)}`;
    const inside = at('figure' + file);
    at('viewer-open').href = whole(file);
    at('viewer-open').textContent = inside ? 'Save the file' : 'Open the file';
    if (inside) at('viewer-open').setAttribute('download', base(f.path));
    if (!at('viewer').open) at('viewer').showModal();
  }
  function step(by) {
    const all = shown.flatMap((j) => j.figures).filter((i) => !missing.has(i) && drawable(view.files[i].path));
    if (all.length) show(all[(all.indexOf(current) + by + all.length) % all.length]);
  }

  /* ---- charts ---- */

  function chartRow(label, text, spoken, ...shapes) {
    return el('div', { class: 'chart-row' }, el('span', { class: 'label', title: label }, label),
      svg('svg', { viewBox: '0 0 1000 14', preserveAspectRatio: 'none', role: 'img', 'aria-label': spoken }, ...shapes),
      el('span', { class: 'number' }, text));
  }
  const legend = (items) => el('p', { class: 'legend' }, ...items.map(([c, text]) => el('span', {}, el('i', { class: c }), text)));

  function drawMemory() {
    const measured = view.tasks.filter((t) => t.peak_bytes || t.now_bytes);
    const known = measured.length ? measured : view.tasks.filter((t) => t.planned_bytes);
    at('memory').hidden = !known.length;
    if (!known.length) return;
    const top = known.slice().sort((a, b) => Math.max(b.peak_bytes, b.planned_bytes) - Math.max(a.peak_bytes, a.planned_bytes));
    const most = Math.max(top[0].peak_bytes, top[0].planned_bytes), x = (v) => 1000 * v / most;
    const over = known.filter((t) => t.planned_bytes && t.peak_bytes > t.planned_bytes).length;
    const rows = top.slice(0, BARS).map((t) => {
      const used = t.peak_bytes || t.now_bytes, name = `${t.job} / ${t.stage}`;
      return chartRow(name, pair(used, t.planned_bytes, 'of'),
        `${name}: measured ${size(used) || 'nothing yet'}, planned ${size(t.planned_bytes) || 'unknown'}`,
        svg('rect', { class: 'k-plan', width: x(t.planned_bytes), height: 14, rx: 2 }),
        svg('rect', { class: used > t.planned_bytes && t.planned_bytes ? 'k-over' : 'k-used', y: 3, width: x(used), height: 8, rx: 1 }));
    });
    const note = [over ? `${plural(over, 'stage')} grew beyond the plan.` : 'No stage grew beyond its plan.'];
    if (top.length > BARS) note.push(`The ${BARS} largest of ${top.length} stages are shown.`);
    at('memory-chart').replaceChildren(el('div', { class: 'card' }, legend([['k-plan', 'planned'], ['k-used', 'measured'], ...(over ? [['k-over', 'measured, beyond the plan']] : [])]), ...rows,
      el('p', { class: 'dim' }, note.join(' '))));
  }

  /* Tasks that overlap lie in different lanes of their device. */
  function drawTimeline() {
    const all = view.tasks.filter((t) => t.started > 0);
    const recent = all.filter((t) => !t.cached && t.started >= view.started - 1);
    const tasks = recent.length ? recent : all;
    at('timeline').hidden = !tasks.length;
    if (!tasks.length) return;
    const endOf = (t) => (t.ended > t.started ? t.ended : t.state === 'running' ? view.now : t.started + t.seconds);
    const from = Math.min(...tasks.map((t) => t.started)), to = Math.max(from + 0.001, ...tasks.map(endOf));
    const stages = [...new Set(view.tasks.map((t) => t.stage))], byDevice = new Map();
    for (const t of tasks.slice().sort((a, b) => a.started - b.started)) {
      const d = t.device || 'not known';
      if (!byDevice.has(d)) byDevice.set(d, []);
      const lanes = byDevice.get(d);
      let lane = lanes.find((l) => l.end <= t.started + 1e-6);
      if (!lane) lanes.push(lane = { end: 0, tasks: [] });
      lane.end = endOf(t);
      lane.tasks.push(t);
    }
    const rows = [...byDevice].sort().map(([device, lanes]) => {
      const h = lanes.length > 12 ? 7 : 14, n = lanes.reduce((s, l) => s + l.tasks.length, 0);
      const s = svg('svg', { viewBox: `0 0 1000 ${h * lanes.length}`, preserveAspectRatio: 'none', height: h * lanes.length, role: 'img', 'aria-label': `${device}: ${plural(n, 'stage')} over time, at most ${lanes.length} at once` });
      lanes.forEach((l, i) => l.tasks.forEach((t) => s.append(svg('rect', {
        class: t.state === 'failed' ? 'k-failed' : 'k-' + stages.indexOf(t.stage) % 6, y: h * i + 1, height: h - 2,
        x: 1000 * (t.started - from) / (to - from), width: Math.max(1.2, 1000 * (endOf(t) - t.started) / (to - from) - 0.6),
      }, svg('title', {}, `${t.job} / ${t.stage}, ${t.state}, ${span(endOf(t) - t.started)}`)))));
      return el('div', { class: 'lane' }, el('span', {}, device), s);
    });
    const used = stages.filter((s) => tasks.some((t) => t.stage === s));
    at('lanes').replaceChildren(el('div', { class: 'card' },
      legend([...used.map((s) => ['k-' + stages.indexOf(s) % 6, s]), ...(tasks.some((t) => t.state === 'failed') ? [['k-failed', 'failed']] : [])]),
      ...rows, el('div', { class: 'ticks' }, ...[0, 0.25, 0.5, 0.75, 1].map((p) => el('span', {}, p ? span(p * (to - from)) : '0')))));
  }

  function drawBounds() {
    const by = new Map();
    for (const t of view.tasks) {
      if (!(t.seconds > 0) || !(t.io_seconds + t.compute_seconds + t.device_seconds > 0 || t.bound_by)) continue;
      if (!by.has(t.stage)) by.set(t.stage, { n: 0, seconds: 0, part: [0, 0, 0], text: new Map() });
      const b = by.get(t.stage);
      b.n++;
      b.seconds += t.seconds;
      [t.io_seconds, t.compute_seconds, t.device_seconds].forEach((v, i) => { b.part[i] += v; });
      if (t.bound_by) b.text.set(t.bound_by, (b.text.get(t.bound_by) || 0) + 1);
    }
    at('bounds').hidden = !by.size;
    const names = ['storage', 'compute', 'device'];
    const rows = [...by].map(([stage, b]) => {
      const sum = b.part.reduce((s, v) => s + v, 0), all = Math.max(sum, b.seconds);
      const share = names.map((name, i) => [name, b.part[i] / all]).filter((s) => s[1] >= 0.005).sort((x, y) => y[1] - x[1]);
      const often = [...b.text].sort((x, y) => y[1] - x[1])[0];
      const text = share.map(([name, v]) => `${name} ${Math.round(100 * v)} %`).join(', ') || (often ? often[0] : '');
      let x = 0;
      const shapes = b.part.map((v, i) => { const r = svg('rect', { class: 'k-' + i, x, width: 1000 * v / all, height: 14 }); x += 1000 * v / all; return r; });
      const row = chartRow(`${stage} (${plural(b.n, 'job')}, ${span(b.seconds)})`, share.length ? `${share[0][0]} ${Math.round(100 * share[0][1])} %` : '', `${stage}: ${text}`, svg('rect', { class: 'k-plan', width: 1000, height: 14 }), ...shapes);
      return [row, el('p', { class: 'hidden' }, text)];
    });
    at('bound-list').replaceChildren(el('div', { class: 'card' }, legend([...names.map((n, i) => ['k-' + i, n]), ['k-plan', 'other']]), ...rows.flat()));
  }

  /* ---- all of it ---- */

  function draw() {
    collect();
    at('jobs').hidden = false;
    drawHead();
    drawFailures();
    refilter();
    drawMemory();
    drawTimeline();
    drawBounds();
    drawNav();
  }
  drawTitles();
  at('filter').addEventListener('input', () => { refilter(); drawHead(); });
  at('order').addEventListener('change', () => { sort.column = ''; sortBy(at('order').value); });
  at('viewer-close').addEventListener('click', () => at('viewer').close());
  at('viewer-back').addEventListener('click', () => step(-1));
  at('viewer-next').addEventListener('click', () => step(1));
  at('viewer').addEventListener('keydown', (e) => { if (e.key === 'ArrowLeft') step(-1); if (e.key === 'ArrowRight') step(1); });
  at('viewer').addEventListener('click', (e) => { if (e.target === at('viewer')) at('viewer').close(); });
  draw();
  document.documentElement.dataset.ready = 'yes';
  const approach = () => { near = true; drawFigures(); };
  document.addEventListener('DOMContentLoaded', drawFigures);
  addEventListener('beforeprint', approach);
  if (watch) {
    const once = new IntersectionObserver((seen) => {
      if (!seen.some((s) => s.isIntersecting)) return;
      once.disconnect();
      approach();
    }, { rootMargin: '1200px' });
    once.observe(at('figures-title'));
  } else approach();

  /* ---- new data ---- */

  const timeless = (text) => text.replace(/"now": *[0-9.]+/, ''); // the clock alone is no news
  let last = timeless(at('data').textContent), tag = '';
  /* Trouble of the moment, and what the view could not read. */
  function banner(trouble) {
    const text = [trouble, view.note].filter(Boolean).join('\n');
    at('banner').hidden = !text;
    at('banner').textContent = text;
  }
  async function refresh() {
    try {
      const r = await fetch('data.json', { cache: 'no-store', headers: tag ? { 'If-None-Match': tag } : {} });
      if (r.status === 304) { // what is shown is still right
        banner('');
        setTimeout(refresh, 2000);
        return;
      }
      if (!r.ok) throw new Error(r.status === 401 ? 'the token is no longer accepted' : 'the server answers ' + r.status);
      const text = await r.text();
      banner('');
      const still = timeless(text);
      const reading = document.activeElement && document.activeElement.closest('.detail');
      if (still !== last && !document.hidden && !reading && !at('viewer').open) {
        last = still;
        const y = scrollY;
        view = JSON.parse(text);
        keeping = true;
        draw();
        keeping = false;
        scrollTo({ top: y, behavior: 'instant' });
      }
      tag = still === last ? r.headers.get('ETag') || '' : ''; // what was not drawn is asked for again
    } catch (e) {
      banner(`No new data: ${e.message}. Trying again.`);
    }
    setTimeout(refresh, 2000);
  }
  if (page.live) setTimeout(refresh, 2000);
})();
