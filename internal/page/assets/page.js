/* Draws the charts of a report from the numbers in #data. */
(() => {
'use strict';

const kinds = ['delay', 'ack', 'response', 'transfer', 'b2c', 's2c', 'commit', 'lateness'];
const colorOf = { delay: '--c8', ack: '--c1', response: '--c2', transfer: '--c3', b2c: '--c4', s2c: '--c5', commit: '--c6', lateness: '--c7', p50: '--c1', p99: '--c2', max: '--c5' };
const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
let data = JSON.parse(document.getElementById('data').textContent);

/* ---- text and elements ---- */

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) e.setAttribute(name, value === true ? '' : value);
  }
  e.append(...children);
  return e;
}

function number(v) {
  if (v == null) return '-';
  const a = Math.abs(v);
  return a >= 99.95 || Number.isInteger(v) ? Math.round(v).toLocaleString('en-US') : a >= 9.995 ? v.toFixed(1) : v.toFixed(2);
}

function time(us) {
  if (us == null) return '-';
  if (us < 1000) return Math.round(us) + ' us';
  const short = (v, unit) => (v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2)) + unit;
  return us < 999500 ? short(us / 1000, ' ms') : short(us / 1e6, ' s');
}

/* tick texts have no digits that say nothing */
function timeTick(us) { return us == null ? '' : us < 1000 ? +us.toPrecision(3) + ' us' : us < 1e6 ? +(us / 1000).toPrecision(3) + ' ms' : +(us / 1e6).toPrecision(3) + ' s'; }
function numberTick(v) { return v == null ? '' : Math.abs(v) >= 1e6 ? +(v / 1e6).toPrecision(3) + 'M' : Math.abs(v) >= 1e4 ? +(v / 1e3).toPrecision(3) + 'k' : String(+v.toPrecision(4)); }

function clock(seconds) {
  const s = Math.abs(seconds);
  const two = n => String(n).padStart(2, '0');
  if (s < 120) return +seconds.toFixed(s < 10 ? 1 : 0) + ' s';
  if (s < 3600) return Math.floor(s / 60) + ':' + two(Math.floor(s % 60)) + ' min';
  return Math.floor(s / 3600) + ':' + two(Math.floor(s / 60) % 60) + ' h';
}

function share(rank) {
  if (rank <= 1) return '0%';
  const p = 100 - 100 / rank;
  return p.toFixed(Math.min(7, Math.max(rank < 10 ? 0 : 1, Math.ceil(Math.log10(rank) - 2)))).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '') + '%';
}

/* alone returns the points of a curve with no neighbour to draw a line to; null if it has none. An undefined value is a point of another curve. */
function alone(u, curve) {
  const values = u.data[curve], at = [];
  for (let i = 0; i < values.length; i++) if (values[i] !== undefined) at.push(i);
  const list = at.filter((i, k) => values[i] != null && values[at[k - 1]] == null && values[at[k + 1]] == null);
  return list.length ? list : null;
}

/* ---- a chart ---- */

const charts = [];

class Chart {
  /* define(chart) returns {series, x, xText, yText, xTick, yTick, xLog, yLog, marks, lines}, or null if there is nothing to draw. */
  constructor(parent, { id, title, note, wide, height, sync, controls, define }) {
    Object.assign(this, { define, sync, narrow: !wide, height: height || 280, hidden: new Set(), state: {} });
    this.plot = el('div', { class: 'plot', role: 'slider', tabindex: '0', 'aria-label': title, 'aria-valuemin': 0, 'aria-valuemax': 0, 'aria-valuenow': 0, 'aria-valuetext': 'move with the arrow keys' });
    this.legend = el('ul', { class: 'legend', 'aria-label': 'Curves of ' + title });
    this.controls = el('div', { class: 'controls' });
    this.note = el('p', { class: 'note' });
    this.figure = el('figure', { id, class: wide ? 'wide' : undefined }, el('figcaption', {}, el('h2', {}, title), this.note), this.controls, this.plot, this.legend);
    this.noteText = note;
    this.makeControls = controls || (() => []);
    parent.append(this.figure);
    this.plot.addEventListener('keydown', e => this.key(e));
    new ResizeObserver(() => this.resize()).observe(this.figure);
    charts.push(this);
    this.render();
  }

  /* choice and toggle are controls that keep their state over new data. */
  choice(name, label, options) {
    if (!options.some(o => o[0] === this.state[name])) this.state[name] = options[0][0];
    const select = el('select', { onchange: () => { this.state[name] = select.value; this.render(); } },
      ...options.map(([value, text]) => el('option', { value, selected: this.state[name] === value }, text)));
    return el('label', {}, label, select);
  }

  toggle(name, label, initially) {
    if (this.state[name] === undefined) this.state[name] = initially;
    const box = el('input', { type: 'checkbox', checked: this.state[name], onchange: () => { this.state[name] = box.checked; this.render(); } });
    return el('label', {}, box, label);
  }

  render() {
    const focused = document.activeElement && this.controls.contains(document.activeElement) ? [...this.controls.querySelectorAll('select,input')].indexOf(document.activeElement) : -1;
    this.controls.replaceChildren(...this.makeControls(this));
    if (focused >= 0) this.controls.querySelectorAll('select,input')[focused]?.focus();
    this.controls.hidden = !this.controls.children.length;
    const spec = this.define(this);
    this.figure.hidden = !spec;
    this.spec = spec;
    if (!spec) { this.clear(); return; }
    this.note.textContent = spec.note || (typeof this.noteText === 'function' ? this.noteText() : this.noteText || '');
    this.draw();
  }

  clear() {
    if (this.u) this.u.destroy();
    this.u = null;
  }

  /* draw makes the chart anew; the visible range and the curves that were switched off stay. */
  draw() {
    const zoom = this.zoomed && this.u ? { ...this.u.scales.x } : null;
    const at = this.index;
    this.clear();
    const spec = this.spec;
    const tables = [], series = [{}], bands = [];
    this.curves = [];
    for (const s of spec.series) {
      const shown = !this.hidden.has(s.label);
      const color = css(s.color);
      const columns = [s.value];
      const first = series.length;
      series.push({ stroke: color, width: s.width || 2, dash: s.dash, show: shown, spanGaps: !!s.spanGaps, points: { show: s.value.length < 2 || s.points, filter: s.points || s.spanGaps ? null : alone } });
      if (s.low) {
        const high = s.high || s.value;
        columns.push(high, s.low);
        const edge = { stroke: color + '80', width: 1, show: shown, points: { show: false } };
        series.push(edge, { ...edge });
        bands.push({ series: [first + 1, first + 2], fill: color + '30' });
      }
      this.curves.push({ ...s, first, size: columns.length });
      tables.push([s.x, ...columns]);
    }
    this.data = tables.length === 1 ? tables[0] : uPlot.join(tables);
    this.u = new uPlot(this.options(series, bands), this.data, this.plot);
    this.u.root.setAttribute('aria-hidden', 'true');
    if (zoom) this.u.setScale('x', zoom);
    this.plot.setAttribute('aria-valuemax', Math.max(0, this.data[0].length - 1));
    this.showLegend();
    this.index = at != null && at < this.data[0].length ? at : null;
    this.read(this.index);
  }

  options(series, bands) {
    const spec = this.spec, soft = css('--soft'), grid = { stroke: css('--grid'), width: 1 };
    const font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
    const axis = { stroke: soft, grid, ticks: { ...grid, size: 4 }, font };
    return {
      width: this.width(), height: this.height, pxAlign: 1, padding: [12, 24, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false }, sync: this.sync ? { key: this.sync, setSeries: false } : undefined, points: { size: 7 } },
      scales: { x: { time: false, distr: spec.xLog ? 3 : 1, range: spec.xRange }, y: { distr: spec.yLog ? 3 : 1, range: spec.yLog ? undefined : (u, min, max) => [Math.min(0, min * 1.08 || 0), max > 0 ? max * 1.08 : 1] } },
      series, bands,
      axes: [
        { ...axis, values: (u, splits) => splits.map(spec.xTick), space: spec.xSpace || 70, incrs: spec.xIncrs, size: 34 },
        { ...axis, values: (u, splits) => splits.map(spec.yTick), space: 34, size: 62 },
      ],
      hooks: {
        drawClear: [u => this.marks(u)],
        draw: [u => this.levels(u)],
        setCursor: [u => this.point(u.cursor.idx ?? null)],
        setScale: [(u, key) => { if (key === 'x' && this.u) this.zoomed = u.scales.x.min > this.data[0][0] || u.scales.x.max < this.data[0].at(-1); }],
      },
    };
  }

  width() { return Math.max(240, printing ? 690 : this.figure.clientWidth); }

  resize() {
    if (this.u && !printing && Math.abs(this.u.width - this.width()) > 1) this.u.setSize({ width: this.width(), height: this.height });
  }

  /* marks are behind the curves: warm-up, drain, stalls, outages, steps. */
  marks(u) {
    const { left, top, height, width } = u.bbox, ctx = u.ctx;
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top, width, height); ctx.clip();
    for (const m of this.spec.marks || []) {
      const from = u.valToPos(m.from, 'x', true), to = u.valToPos(m.to, 'x', true);
      ctx.fillStyle = css('--' + m.kind);
      ctx.fillRect(from, top, Math.max(m.kind === 'stall' || m.kind === 'outage' ? 3 * devicePixelRatio : 1, to - from), height);
    }
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.fillStyle = ctx.strokeStyle = css('--soft');
    let free = left;
    for (const s of this.spec.steps || []) {
      const x = Math.round(u.valToPos(s.at, 'x', true)) + 0.5;
      if (x < left - 1 || x > left + width) continue;
      ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath(); ctx.moveTo(x, top); ctx.lineTo(x, top + height); ctx.stroke();
      const size = ctx.measureText(s.name).width;
      if (x >= free && x + size < left + width) { ctx.fillText(s.name, x + 4 * devicePixelRatio, top + 12 * devicePixelRatio); free = x + size + 12 * devicePixelRatio; }
    }
    ctx.restore();
  }

  /* levels are above the curves: thresholds, the offered rate. */
  levels(u) {
    const { left, top, width, height } = u.bbox, ctx = u.ctx;
    for (const l of this.spec.lines || []) {
      if (l.value < u.scales.y.min || l.value > u.scales.y.max) continue;
      const y = Math.round(u.valToPos(l.value, 'y', true)) + 0.5;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = css(l.soft ? '--soft' : l.kept ? '--good' : '--bad');
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
      const edge = x => Math.min(left + width, Math.max(left, u.valToPos(x, 'x', true)));
      const from = l.rank ? edge(l.rank / 3) : left, to = l.rank ? edge(l.rank * 3) : left + width;
      ctx.beginPath(); ctx.moveTo(from, y); ctx.lineTo(to, y); ctx.stroke();
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textAlign = 'right';
      ctx.fillText(l.text, to - 4 * devicePixelRatio, y < top + 20 * devicePixelRatio ? y + 13 * devicePixelRatio : y - 5 * devicePixelRatio);
      ctx.restore();
    }
  }

  showLegend() {
    this.at = el('span', { class: 'at' });
    this.legend.replaceChildren(el('li', {}, this.at), ...this.curves.map(c => {
      c.out = el('span', { class: 'value' });
      const sample = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
      for (const [k, v] of Object.entries({ width: 22, height: 8, 'aria-hidden': 'true' })) sample.setAttribute(k, v);
      const line = document.createElementNS('http://www.w3.org/2000/svg', 'line');
      for (const [k, v] of Object.entries({ x1: 0, x2: 22, y1: 4, y2: 4, stroke: css(c.color), 'stroke-width': 3, 'stroke-dasharray': (c.dash || []).join(' ') })) line.setAttribute(k, v);
      sample.append(line);
      const button = el('button', { type: 'button', 'aria-pressed': String(!this.hidden.has(c.label)), onclick: () => {
        this.hidden.has(c.label) ? this.hidden.delete(c.label) : this.hidden.add(c.label);
        const shown = !this.hidden.has(c.label);
        button.setAttribute('aria-pressed', String(shown));
        for (let i = 0; i < c.size; i++) this.u.setSeries(c.first + i, { show: shown });
      } }, sample, el('span', {}, c.label), c.out);
      return el('li', {}, button);
    }));
  }

  /* valueOf finds the index of a curve's value at an index of the common x, or the nearest one at which the curve has a point. It is -1 where
     that point has no value (null): only points of other curves (undefined) are passed over. */
  valueOf(c, index) {
    const column = this.data[c.first];
    for (let d = 0; d < 40; d++) for (const i of [index - d, index + d]) if (column[i] !== undefined) return column[i] === null ? -1 : i;
    return -1;
  }

  /* point takes where the pointer is. Where it has left, whoever uses the keys stays at the place. */
  point(index) {
    if (index == null && document.activeElement === this.plot) return;
    this.index = index;
    if (index != null) this.last = index;
    this.read(index);
  }

  /* read shows the values at an index; without one, none. */
  read(index) {
    const spec = this.spec;
    if (!this.at) return;
    if (index == null || !this.data[0].length) {
      this.at.textContent = spec.idle || 'values: point here, or use the arrow keys';
      for (const c of this.curves) c.out.textContent = '';
      return;
    }
    const x = spec.xText(this.data[0][index]), texts = [];
    this.at.textContent = x;
    for (const c of this.curves) {
      const i = this.valueOf(c, index);
      let text = i < 0 ? '-' : spec.yText(this.data[c.first][i]);
      if (i >= 0 && c.size > 1) {
        const high = this.data[c.first + 1][i], low = this.data[c.first + 2][i];
        if (low != null && low !== high) text += ` (${spec.yText(low)} to ${spec.yText(high)})`;
      }
      c.out.textContent = text;
      texts.push(`${c.label} ${text}`);
    }
    const to = this.data[0][index], from = index > 0 ? this.data[0][index - 1] : -Infinity;
    for (const m of spec.marks || []) if ((m.kind === 'stall' || m.kind === 'outage') && m.from < to && m.to > from) texts.push(m.text);
    this.plot.setAttribute('aria-valuenow', index);
    this.plot.setAttribute('aria-valuetext', x + ': ' + texts.join(', '));
  }

  key(e) {
    if (!this.u || !this.data[0].length) return;
    const xs = this.data[0], { min, max } = this.u.scales.x;
    let from = 0, to = xs.length - 1;
    while (from < to && xs[from] < min) from++;
    while (to > from && xs[to] > max) to--;
    const page = Math.max(1, Math.round((to - from) / 10));
    const now = this.last ?? from - 1;
    const next = { ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1, PageDown: now - page, PageUp: now + page, Home: from, End: to }[e.key];
    if (next === undefined) return;
    e.preventDefault();
    const i = Math.min(to, Math.max(from, next));
    const shown = this.curves.find(c => !this.hidden.has(c.label)) || this.curves[0];
    const j = this.valueOf(shown, i);
    const y = j < 0 ? this.u.scales.y.min : this.data[shown.first][j];
    this.u.setCursor({ left: this.u.valToPos(xs[i], 'x'), top: this.u.valToPos(y, 'y') });
    this.index = this.last = i;
    this.read(i);
  }
}

/* ---- what the charts show ---- */

const many = () => data.runs.length !== 1;
const styleOf = (run, i) => many() ? { color: '--c' + (run.group % 8 + 1), dash: dashes[Math.floor(run.group / 8) % dashes.length] } : { color: '--c' + (i % 8 + 1) };
const seconds = ms => ms.map(t => t / 1000);
const incrs = [.1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
const overTime = { xTick: clock, xText: clock, xIncrs: incrs };

/* fromStart begins the axis of time where the first second begins: points are at the ends of seconds. */
function fromStart(chart) {
  const begin = Math.min(...data.runs.map(r => {
    const keep = measured(r, chart)(r.time);
    const before = r.time[r.time.length - keep.length - 1];
    return keep.length < r.time.length && before !== undefined ? before / 1000 : ((stepsOf(r)[0] || { at: 0 }).at);
  }));
  return { xRange: (u, min, max) => [Math.min(begin, min ?? 0), max ?? 1] };
}

/* measured leaves out the points of warm-ups, if they are not wanted. */
function measured(run, chart) {
  if (chart.state.warmup !== false) return column => column;
  const out = new Set(), warmups = run.bands.filter(b => b.kind === 'warmup');
  run.time.forEach((t, i) => { if (warmups.some(b => t > b.from && t <= b.to)) out.add(i); });
  return column => column && column.filter((_, i) => !out.has(i));
}

/* stepsOf returns the starts of steps, or other moments, in seconds. */
const stepsOf = (run, kind = 'step') => run.bands.filter(b => b.kind === kind).map(b => ({ name: b.text, at: b.from / 1000 }));
const moments = ['step', 'event'];

function marksOf(chart) {
  if (many()) return {};
  const run = data.runs[0], keep = chart.state.warmup !== false;
  const marks = run.bands.filter(b => !moments.includes(b.kind) && (keep || b.kind !== 'warmup')).map(b => ({ ...b, from: b.from / 1000, to: b.to / 1000 }));
  const begins = stepsOf(run), steps = (begins.length > 1 ? begins : []).concat(stepsOf(run, 'event')).sort((a, b) => a.at - b.at);
  return { marks, steps };
}

const hasWarmup = () => data.runs.some(r => r.bands.some(b => b.kind === 'warmup'));
const warmupToggle = chart => hasWarmup() ? [chart.toggle('warmup', 'show the warm-up', true)] : [];

function thinnedNote() {
  const thinned = data.runs.filter(r => r.seconds);
  if (!thinned.length) return '';
  return ` Each point stands for up to ${clock(Math.max(...thinned.map(r => r.seconds)))}: the shade reaches from the lowest to the highest second.`;
}

function markNote() {
  if (many()) return '';
  const kinds = new Set(data.runs[0].bands.map(b => b.kind)), parts = [];
  if (kinds.has('warmup') || kinds.has('drain')) parts.push([kinds.has('warmup') && 'warm-up', kinds.has('drain') && 'drain'].filter(Boolean).join(' and ') + ' in grey');
  if (kinds.has('stall')) parts.push('stalls in red');
  if (kinds.has('outage')) parts.push('outages in violet');
  if (data.lines.length) parts.push('thresholds dashed');
  return parts.length ? ' Marked: ' + parts.join(', ') + '.' : '';
}

function levelsFor(matches) {
  return data.lines.filter(l => matches(l.metric)).map(l => ({ value: l.value, text: l.text, kept: l.kept }));
}

/* chosen tells whether a chart over time draws one of its curves alone; namesOf are the names of all. */
const chosen = name => many() || name === 'side-others';
const namesOf = name => [...new Set(data.runs.flatMap(r => r.curves.filter(c => c.chart === name).map(c => c.name)))];

/* over defines a chart over time: of one run all its curves, of several runs one curve of each. */
const over = (name, note, lines) => chart => {
  const series = [];
  let unit = '';
  for (const run of data.runs) {
    const keep = measured(run, chart);
    run.curves.filter(c => c.chart === name && (!chosen(name) || c.name === chart.state.curve)).forEach((c, i) => {
      unit = c.unit;
      series.push({ label: many() ? run.name : c.name, ...styleOf(run, i), ...(!many() && c.name === 'sent' && { dash: [2, 3], width: 1.5 }),
        x: keep(seconds(run.time)), value: keep(c.value), low: keep(c.low), high: keep(c.high) });
    });
  }
  if (!series.some(s => s.value.length)) return null;
  const after = unit === '%' || unit === '/s' ? unit : unit && ' ' + unit;
  return { ...overTime, ...fromStart(chart), ...marksOf(chart), series, lines: lines && lines(chart), yTick: v => numberTick(v) + (unit === '%' ? unit : ''), yText: v => number(v) + after,
    note: note + (name === 'throughput' ? (data.note || '') + markNote() : '') + thinnedNote() };
};

const overControls = name => chart => {
  const names = namesOf(name);
  return names.length ? [...(chosen(name) ? [chart.choice('curve', 'Curve', names.map(n => [n, n]))] : []), ...warmupToggle(chart)] : [];
};

function throughputLines(chart) {
  const offered = data.runs[0].offered, shown = many() ? [chart.state.curve] : namesOf('throughput');
  return [...(many() || stepsOf(data.runs[0]).length > 1 || !offered ? [] : [{ value: offered, text: 'offered: ' + number(offered) + '/s on average', soft: true }]),
    ...levelsFor(m => shown.some(n => m.startsWith(n + '.')))];
}

const statistics = [['p50', '50%'], ['p99', '99%'], ['max', 'max']];
const kindsOf = () => kinds.filter(k => namesOf('latency').includes(k + ' max'));

/* kindOptions has the latencies that matter most first. */
function kindOptions(list) {
  const first = ['response', 'ack', 'transfer'].filter(k => list.includes(k));
  return [...first, ...list.filter(k => !first.includes(k))].map(k => [k, k]);
}

function latency(chart) {
  const series = [], { kind, statistic } = chart.state;
  const floor = column => column && column.map(v => v == null ? v : Math.max(1, v));
  const shown = kind === 'all' ? kindsOf() : [kind], stats = statistics.filter(s => statistic === 'all' || s[0] === statistic);
  for (const run of data.runs) {
    const keep = measured(run, chart);
    for (const k of shown) for (const [name, text] of stats) {
      const c = run.curves.find(c => c.chart === 'latency' && c.name === k + ' ' + name);
      if (!c) continue;
      series.push({ ...(many() ? { label: run.name, ...styleOf(run) } : kind === 'all' ? { label: k, color: colorOf[k] } : { label: text, color: colorOf[name], dash: name === 'max' ? [2, 3] : undefined }),
        width: name === 'max' ? 1.5 : 2, x: keep(seconds(run.time)), value: floor(keep(c.value)), low: name === 'max' ? undefined : floor(keep(c.low)) });
    }
  }
  if (!series.length) return null;
  return { ...overTime, ...fromStart(chart), ...marksOf(chart), series, yLog: chart.state.log, yTick: timeTick, yText: time, lines: levelsFor(m => shown.some(k => stats.some(s => m === k + '.' + s[0]))),
    note: 'Of each second. ' + (data.note || '') + thinnedNote() };
}

function latencyControls(chart) {
  const list = kindsOf();
  if (!list.length) return [];
  const options = kindOptions(list);
  if (!many() && list.length > 1) options.push(['all', 'all, side by side']);
  const kind = chart.choice('kind', 'Latency', options);
  const [p50, p99, max] = statistics;
  const stats = many() || chart.state.kind === 'all' ? [p99, p50, max] : [['all', '50%, 99% and max'], ...statistics];
  return [kind, chart.choice('statistic', 'of', stats), chart.toggle('log', 'logarithmic', true), ...warmupToggle(chart)];
}

function percentiles(chart) {
  const series = [], shown = many() ? [chart.state.kind] : kinds;
  for (const run of data.runs) for (const k of shown) {
    const c = run.percentiles[k];
    if (c) series.push({ label: k, color: colorOf[k], ...(many() && { label: run.name, ...styleOf(run) }), spanGaps: true, x: c.rank, value: c.value.map(v => Math.max(1, v)) });
  }
  if (!series.length) return null;
  const lines = data.lines.map(l => ({ ...l, parts: l.metric.match(/^(\w+)\.p([\d.]+)$/) })).filter(l => l.parts && shown.includes(l.parts[1])).map(l => ({ ...l, rank: 100 / (100 - l.parts[2]) }));
  return { series, xLog: true, xRange: (u, min, max) => [min ?? 1, max ?? 10], yLog: chart.state.log, xTick: v => Number.isInteger(Math.log10(v)) ? share(v) : '', xText: v => share(v) + ' within', yTick: timeTick, yText: time, lines, xSpace: 40,
    note: 'The share of messages whose latency was no longer; the last point is the maximum.' };
}

function percentileControls(chart) {
  const list = kinds.filter(k => data.runs.some(r => r.percentiles[k]));
  if (!list.length) return [];
  return [...(many() ? [chart.choice('kind', 'Latency', kindOptions(list))] : []), chart.toggle('log', 'logarithmic', true)];
}

let printing = false; // onto paper
const place = document.getElementById('charts');
place.replaceChildren();
const overChart = (id, title, note, options) => new Chart(place, { id, title, sync: 'time', define: over(id, note), controls: overControls(id), ...options });
overChart('throughput', 'Throughput', '', { wide: true, height: 320, define: over('throughput', 'Messages per second, by the time since the start of the load. ', throughputLines) });
new Chart(place, { id: 'latency', title: 'Latency over time', wide: true, height: 320, sync: 'time', define: latency, controls: latencyControls });
new Chart(place, { id: 'percentiles', title: 'Latency by percentile', define: percentiles, controls: percentileControls });
for (const [id, title, note] of [
  ['waiting', 'Messages waiting', 'Messages sent and not yet confirmed, and those in the queues of the broker.'],
  ['tester', "The tester's processors", 'Cores used by perfmq and by all programs of its machine.'],
  ['side-cores', 'The broker: processors', 'Cores used by the process.'],
  ['side-shares', 'The broker: garbage collection, disk', 'In % of the time.'],
  ['side-memory', 'The broker: memory', 'In MB.'],
  ['side-bytes', 'The broker: disk and network', 'In MB/s.'],
  ['side-others', 'The broker: other figures', ''],
]) overChart(id, title, note);

/* arrange lets the last of an odd number of narrow charts have the whole width. */
function arrange() {
  const narrow = charts.filter(c => c.narrow && !c.figure.hidden);
  narrow.forEach((c, i) => c.figure.classList.toggle('wide', narrow.length % 2 === 1 && i === narrow.length - 1));
}
const redraw = () => { charts.forEach(c => c.render()); arrange(); };
arrange();

/* ---- screen, paper, dark ---- */

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
let closed = [];
addEventListener('beforeprint', () => {
  printing = true;
  closed = [...document.querySelectorAll('details:not([open])')];
  closed.forEach(d => { d.open = true; });
  document.documentElement.dataset.theme = 'light';
  redraw();
});
addEventListener('afterprint', () => {
  printing = false;
  closed.forEach(d => { d.open = false; });
  delete document.documentElement.dataset.theme;
  redraw();
});

/* a live page sends newer numbers */
document.addEventListener('newer', e => { data = e.detail; redraw(); });
})();
