/* Draws the charts of a report from the numbers in #data. */
(() => {
'use strict';

const kinds = ['delay', 'ack', 'response', 'transfer', 'b2c', 's2c', 'commit', 'lateness', 'round-trip', 'service'];
const colorOf = { delay: '--c8', ack: '--c1', response: '--c2', transfer: '--c3', b2c: '--c4', s2c: '--c5', commit: '--c6', lateness: '--c7', 'round-trip': '--c2', service: '--c4', p50: '--c1', p99: '--c2', max: '--c5' };
const dashes = [[], [8, 6], [2, 3], [10, 3, 2, 3]];
const fonts = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
let data = JSON.parse(document.getElementById('data').textContent);
let printing = false; // onto paper

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
  if (us < 1000) return Math.round(us) + ' µs';
  const short = (v, unit) => (v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2)) + unit;
  return us < 999500 ? short(us / 1000, ' ms') : short(us / 1e6, ' s');
}

/* tick texts have no digits that say nothing */
function timeTick(us) { return us == null ? '' : us === 0 ? '0' : us < 1000 ? +us.toPrecision(3) + ' µs' : us < 1e6 ? +(us / 1000).toPrecision(3) + ' ms' : +(us / 1e6).toPrecision(3) + ' s'; }
function numberTick(v) { return v == null ? '' : Math.abs(v) >= 1e6 ? +(v / 1e6).toPrecision(3) + 'M' : Math.abs(v) >= 1e3 ? +(v / 1e3).toPrecision(3) + 'k' : String(+v.toPrecision(4)); }

/* larger are units for values that are large or small in another one. */
const larger = { MB: [['kB', 1e-3], ['MB', 1], ['GB', 1e3]], 'MB/s': [['kB/s', 1e-3], ['MB/s', 1], ['GB/s', 1e3]] };
const scaled = (v, unit) => (larger[unit] || []).findLast(([, factor]) => Math.abs(v) >= factor) || larger[unit]?.[v ? 0 : 1] || [unit, 1];

/* amount is a value with its unit. */
function amount(v, unit) {
  const [name, factor] = scaled(v, unit);
  return number(v / factor) + (name === '%' || name === '/s' ? name : name && ' ' + name);
}

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

/* download saves a blob as a file. */
function download(blob, name) {
  const link = el('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/* alone returns the points of a curve with no neighbour to draw a line to; null if it has none. An undefined value is a point of another curve. */
function alone(u, curve) {
  const values = u.data[curve], at = [];
  for (let i = 0; i < values.length; i++) if (values[i] !== undefined) at.push(i);
  const list = at.filter((i, k) => values[i] != null && values[at[k - 1]] == null && values[at[k + 1]] == null);
  return list.length ? list : null;
}

/* equal tells whether one of two curves of the same points would hide the other. */
function equal(a, b, log) {
  if (a.x.length !== b.x.length) return false;
  const top = Math.max(...a.value, ...b.value);
  let both = 0, close = 0;
  a.value.forEach((v, i) => {
    const w = b.value[i];
    if (v == null || w == null) return;
    both++;
    if (log ? Math.max(v, w) <= 1.05 * Math.min(v, w) : Math.abs(v - w) <= 0.015 * top) close++;
  });
  return both > 0 && close >= 0.7 * both;
}

/* spread is how many times the median the highest value is. */
function spread(values) {
  const list = values.filter(v => v > 0).sort((a, b) => a - b);
  return list.length ? list.at(-1) / list[Math.floor((list.length - 1) / 2)] : 1;
}

/* ---- a chart ---- */

const charts = [];
const zooms = new Map(); // the visible range of x by the group of charts that zoom together; missing while all is visible
const wholeSteps = Array.from({ length: 15 }, (_, e) => [1, 2, 5].map(n => n * 10 ** e)).flat();

class Chart {
  /* define(chart) returns what to draw, or null if there is nothing:
     series  {label, color, dash, width, x, value, low, high, points, spanGaps, text(index)}
     x       xText, xTick, xTitle, xLog, xRange, xIncrs, xSpace
     y       yText, yTick, yTitle, yLog (true, or {threshold} for a scale that has zero), yRange, unit, whole
     marks   periods behind the curves {kind, from, to, text}
     labels  above the chart {lane, kind, from, to, text}
     lines   levels {value, text, kept, soft, rank}
     dots    {x, y, color}
     paint(u), pointed(u)
     note */
  constructor(parent, { id, title, note, size, height, sync, controls, define }) {
    Object.assign(this, { id, title, define, sync, group: sync || id, size: size || 'narrow', height: height || 176, hidden: new Set(), state: {}, auto: {} });
    this.plot = el('div', { class: 'plot', role: 'slider', tabindex: '0', 'aria-label': title, 'aria-valuemin': 0, 'aria-valuemax': 0, 'aria-valuenow': 0, 'aria-valuetext': 'move with the arrow keys' });
    this.legend = el('ul', { class: 'legend', 'aria-label': 'Curves of ' + title });
    this.controls = el('div', { class: 'controls' });
    this.note = el('p', { class: 'note' });
    this.whole = el('button', { type: 'button', class: 'whole', title: 'Show the whole', onclick: () => setZoom(this.group, null) });
    this.save = el('button', { type: 'button', class: 'png', title: 'Save this chart as a picture', 'aria-label': 'PNG of ' + title, onclick: () => this.picture() }, 'PNG');
    this.figure = el('figure', { id, class: this.size },
      el('figcaption', {}, el('div', { class: 'head' }, el('h2', {}, title), this.whole, this.save), this.note), this.controls, this.plot, this.legend);
    this.noteText = note;
    this.makeControls = controls || (() => []);
    parent.append(this.figure);
    this.plot.addEventListener('keydown', e => this.key(e));
    new ResizeObserver(() => this.resize()).observe(this.figure);
    charts.push(this);
    this.render();
  }

  /* choice and toggle are controls that keep their state over new data. A toggle follows the data until it is switched. */
  choice(name, label, options) {
    if (!options.some(o => o[0] === this.state[name])) this.state[name] = options[0][0];
    const select = el('select', { onchange: () => { this.state[name] = select.value; this.render(); } },
      ...options.map(([value, text]) => el('option', { value, selected: this.state[name] === value }, text)));
    return el('label', {}, label, select);
  }

  toggle(name, label, initially, changed) {
    this.auto[name] = initially;
    const box = el('input', { type: 'checkbox', checked: this.on(name), onchange: () => { this.state[name] = box.checked; changed ? changed(box.checked) : this.render(); } });
    return el('label', {}, box, label);
  }

  on(name) { return this.state[name] ?? this.auto[name]; }

  render() {
    const focused = document.activeElement && this.controls.contains(document.activeElement) ? [...this.controls.querySelectorAll('select,input')].indexOf(document.activeElement) : -1;
    this.controls.replaceChildren(...this.makeControls(this));
    if (focused >= 0) this.controls.querySelectorAll('select,input')[focused]?.focus();
    this.controls.hidden = !this.controls.children.length;
    const spec = this.define(this);
    this.figure.hidden = !spec || !spec.series.some(s => s.value.some(v => v != null));
    this.spec = spec;
    if (this.figure.hidden) { this.clear(); return; }
    this.note.textContent = spec.note ?? this.noteText ?? '';
    this.note.hidden = !this.note.textContent;
    this.draw();
  }

  clear() {
    if (this.u) this.u.destroy();
    this.u = null;
  }

  /* draw makes the chart anew; the curves that were switched off stay so. */
  draw() {
    const at = this.index;
    this.clear();
    const spec = this.spec;
    const tables = [], series = [{}], bands = [];
    this.curves = [];
    spec.series.forEach((s, k) => {
      const shown = !this.hidden.has(s.label), color = css(s.color);
      const twins = many() || s.dash ? 0 : spec.series.slice(0, k).filter(o => equal(o, s, spec.yLog === true)).length;
      const dash = twins ? dashes[Math.min(twins, dashes.length - 1)] : s.dash;
      const columns = [s.value];
      const first = series.length;
      series.push({ stroke: color, width: s.width || 2, dash, show: shown, spanGaps: !!s.spanGaps, ...(spec.paint && { paths: () => null }),
        points: { show: !spec.paint && (s.value.length < 2 || s.points), filter: s.points || s.spanGaps ? null : alone } });
      if (s.low) {
        const high = s.high || s.value;
        columns.push(high, s.low);
        const edge = { stroke: 'transparent', width: 1, show: shown, points: { show: false } };
        series.push(edge, { ...edge });
        bands.push({ series: [first + 1, first + 2], fill: color + '40' });
      }
      this.curves.push({ ...s, dash, first, size: columns.length });
      tables.push([s.x, ...columns]);
    });
    this.data = tables.length === 1 ? tables[0] : uPlot.join(tables);
    this.lanes = 1 + Math.max(-1, ...(spec.labels || []).map(l => l.lane));
    this.u = new uPlot(this.options(series, bands), this.data, this.plot);
    this.u.root.setAttribute('aria-hidden', 'true');
    this.u.over.addEventListener('mousemove', () => { this.byKey = false; });
    this.u.over.addEventListener('mousedown', () => { this.pressed = true; });
    this.u.over.addEventListener('dblclick', () => setZoom(this.group, null));
    this.plot.setAttribute('aria-valuemax', Math.max(0, this.data[0].length - 1));
    this.showLegend();
    this.showZoom();
    this.index = at != null && at < this.data[0].length ? at : null;
    this.read(this.index);
  }

  options(series, bands) {
    const spec = this.spec, soft = css('--soft'), grid = { show: spec.grid !== false, stroke: css('--grid'), width: 1 };
    const axis = { stroke: soft, grid, ticks: { show: true, stroke: css('--line'), width: 1, size: 4 }, font: '12px ' + fonts, labelFont: '12px ' + fonts };
    const y = { ...axis, values: (u, splits) => splits.map(this.yTick(u)), space: 32, size: (u, values) => 14 + 6.8 * Math.max(3, ...(values || []).map(v => (v || '').length)), incrs: spec.whole ? wholeSteps : undefined };
    const x = { ...axis, values: (u, splits) => splits.map(spec.xTick), space: spec.xSpace || 70, incrs: spec.xIncrs, size: 26, label: spec.xTitle, labelSize: 18, labelGap: 0 };
    const all = (u, splits) => splits;
    if (spec.yLog) Object.assign(y, { splits: u => spec.yLog.threshold ? logTicks(u, 'y', spec.yLog.threshold, [0], 26) : logTicks(u, 'y', u.scales.y.min, [], 26), filter: all });
    if (spec.xLog) Object.assign(x, { splits: u => logTicks(u, 'x', u.scales.x.min, [], x.space, spec.xSteps), filter: all });
    return {
      width: this.width(), height: this.height + 16 * this.lanes, pxAlign: 1, padding: [24 + 16 * this.lanes, 18, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false, setScale: false, dist: 5 }, sync: this.sync && !spec.paint ? { key: this.sync, setSeries: false } : undefined, points: { size: 7, ...(spec.paint && { show: false }) } },
      scales: {
        x: { time: false, distr: spec.xLog ? 3 : 1, range: (u, min, max) => zooms.get(this.group) || (spec.xRange ? spec.xRange(min, max) : [min ?? 0, max ?? 1]) },
        y: { distr: spec.yLog?.threshold ? 4 : spec.yLog ? 3 : 1, asinh: spec.yLog?.threshold, range: (u, min, max) => spec.yRange ? spec.yRange(min, max) : this.yRange(min, max) },
      },
      series, bands,
      axes: [x, y],
      hooks: {
        drawClear: [u => this.marks(u)],
        drawAxes: [u => this.paint(u)],
        draw: [u => this.above(u)],
        setCursor: [u => this.point(u.cursor.idx ?? null)],
        setSelect: [u => this.selected(u)],
      },
    };
  }

  /* yRange leaves room above, and has levels that are near. */
  yRange(min, max) {
    if (min == null) return this.spec.yLog === true ? [1, 10] : [0, 1];
    const levels = (this.spec.lines || []).map(l => l.value);
    if (this.spec.yLog === true) {
      const near = levels.filter(v => v > min / 4 && v < max * 4);
      return uPlot.rangeLog(Math.min(min, ...near), Math.max(max, ...near), 10, false);
    }
    const top = Math.max(max, ...levels.filter(v => v < max * 1.5));
    return [Math.min(0, min * 1.08), top > 0 ? top * (this.spec.yLog ? 1.3 : 1.08) : 1];
  }

  /* yTick returns the text of ticks: in the unit for the highest, which the title then has. */
  yTick(u) {
    const spec = this.spec;
    if (spec.yTick) return spec.yTick;
    const [name, factor] = scaled(u.scales.y.max ?? 0, spec.unit);
    this.unit = name;
    return v => v == null ? '' : numberTick(v / factor);
  }

  width() { return Math.max(240, printing ? 690 : this.figure.clientWidth); }

  resize() {
    if (this.u && !printing && Math.abs(this.u.width - this.width()) > 1) this.u.setSize({ width: this.width(), height: this.height + 16 * this.lanes });
  }

  /* ---- zoom ---- */

  /* selected: a range was dragged, in this chart or in one that shows the same selection. */
  selected(u) {
    const { left, width } = u.select;
    if (!width) return;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (!this.pressed) return;
    this.pressed = false;
    setZoom(this.group, [u.posToVal(left, 'x'), u.posToVal(left + width, 'x')]);
  }

  showZoom() {
    const range = zooms.get(this.group), text = v => (this.spec.xClock || this.spec.xText)(v);
    this.whole.hidden = !range;
    this.whole.textContent = range ? `${text(range[0])} to ${text(range[1])} ×` : '';
  }

  /* ---- on the canvas ---- */

  /* marks are behind the curves: warm-up, drain, stalls, outages. */
  marks(u) {
    const { left, top, height, width } = u.bbox, ctx = u.ctx, r = devicePixelRatio;
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top, width, height); ctx.clip();
    for (const m of this.spec.marks || []) {
      const from = Math.round(u.valToPos(m.from, 'x', true)), to = Math.round(u.valToPos(m.to, 'x', true));
      ctx.fillStyle = css('--' + m.kind);
      ctx.fillRect(from, top, Math.max(m.kind === 'stall' || m.kind === 'outage' ? 3 * r : 1, to - from), height);
    }
    ctx.restore();
  }

  /* paint draws cells and bars, above the grid. */
  paint(u) {
    const { left, top, height, width } = u.bbox;
    u.ctx.save();
    u.ctx.beginPath(); u.ctx.rect(left, top, width, height); u.ctx.clip();
    this.spec.paint?.(u, u.ctx);
    u.ctx.restore();
  }

  above(u) {
    const { left, top, width, height } = u.bbox, ctx = u.ctx, r = devicePixelRatio;
    ctx.save();
    ctx.font = `${12 * r}px ${fonts}`;
    ctx.fillStyle = css('--soft');
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    const title = this.spec.yTitle ?? this.unit;
    if (title) ctx.fillText(title, 2 * r, 9 * r);
    if (this.spec.heat) this.scaleOfColors(ctx, left + width, 9 * r, r);
    for (let lane = 0; lane < this.lanes; lane++) this.lane(u, ctx, this.spec.labels.filter(l => l.lane === lane), 18 * r + 16 * r * lane, r);
    ctx.beginPath(); ctx.rect(left, top, width, height); ctx.clip();
    for (const d of this.spec.dots || []) {
      ctx.beginPath();
      ctx.arc(u.valToPos(d.x, 'x', true), u.valToPos(d.y, 'y', true), 4 * r, 0, 7);
      ctx.fillStyle = css(d.color); ctx.fill();
      ctx.strokeStyle = css('--bg'); ctx.lineWidth = 1.5 * r; ctx.stroke();
    }
    ctx.restore();
    this.levels(u, ctx, r);
  }

  /* lane writes labels above the chart, each above its place; one without room is left out. */
  lane(u, ctx, labels, y, r) {
    const { left, top, width, height } = u.bbox, right = left + width, at = v => u.valToPos(v, 'x', true);
    let free = left;
    labels.forEach((l, i) => {
      const from = Math.max(left, at(l.from)), to = l.to == null ? from : Math.min(right, at(l.to));
      if (at(l.from) > right || at(l.to ?? l.from) < left) return;
      if (l.line && at(l.from) >= left) {
        ctx.save();
        ctx.strokeStyle = css('--soft'); ctx.lineWidth = r; ctx.setLineDash([3 * r, 3 * r]);
        const x = Math.round(from) + 0.5;
        ctx.beginPath(); ctx.moveTo(x, y + 14 * r); ctx.lineTo(x, top + height); ctx.stroke();
        ctx.restore();
      }
      ctx.font = `${11 * r}px ${fonts}`;
      const whole = ctx.measureText(l.text).width + 8 * r;
      let room = right - free;
      if (l.kind === 'step' && to - from >= 40 * r) room = Math.min(room, to - from - 2 * r);
      const size = Math.min(whole, room), x = Math.max(free, Math.min(l.center ? from - size / 2 : from, right - size));
      if (size < Math.min(whole, 30 * r) || !l.center && x > from + 30 * r || l.center && x > from) return;
      let text = l.text;
      while (text && ctx.measureText(text + '…').width + 8 * r > size && size < whole) text = text.slice(0, -1);
      if (size < whole) text += '…';
      ctx.fillStyle = css(l.kind === 'stall' || l.kind === 'outage' ? '--' + l.kind : '--panel');
      ctx.beginPath(); ctx.roundRect(x, y, size, 14 * r, 3 * r); ctx.fill();
      ctx.fillStyle = css('--text');
      ctx.fillText(text, x + 4 * r, y + 7.5 * r);
      free = x + size + 3 * r;
    });
  }

  /* levels are above the curves: thresholds, the offered rate. Their texts are where no curve is; the legend has them, too. */
  levels(u, ctx, r) {
    const { left, top, width, height } = u.bbox;
    for (const l of this.spec.lines || []) {
      if (l.value < u.scales.y.min || l.value > u.scales.y.max) continue;
      const y = Math.round(u.valToPos(l.value, 'y', true)) + 0.5;
      const edge = x => Math.min(left + width, Math.max(left, u.valToPos(x, 'x', true)));
      const from = l.rank ? edge(l.rank / 3) : left, to = l.rank ? edge(l.rank * 3) : left + width;
      if (to - from < 2) continue;
      ctx.save();
      ctx.strokeStyle = css(levelColor(l));
      ctx.lineWidth = 1.5 * r;
      ctx.setLineDash([6 * r, 4 * r]);
      ctx.beginPath(); ctx.moveTo(from, y); ctx.lineTo(to, y); ctx.stroke();
      ctx.font = `${11 * r}px ${fonts}`;
      ctx.textBaseline = 'middle';
      ctx.textAlign = 'left';
      const w = ctx.measureText(l.text).width + 8 * r, h = 15 * r;
      const place = this.free(u, from, Math.max(to, from + w), w, h, [y - h - 3 * r, y + 3 * r], top, top + height, Math.min(left + width, Math.max(to, from + w)));
      if (place) {
        ctx.fillStyle = css('--bg') + 'd0';
        ctx.beginPath(); ctx.roundRect(place.x, place.y, w, h, 3 * r); ctx.fill();
        ctx.fillStyle = css(levelColor(l));
        ctx.fillText(l.text, place.x + 4 * r, place.y + h / 2 + 0.5 * r);
      }
      ctx.restore();
    }
  }

  /* free finds a place for a text of a level, from right to left, that no curve crosses. */
  free(u, from, to, w, h, ys, top, bottom, right) {
    for (let x = right - w - 4; x >= from; x -= w / 3) for (const y of ys) {
      if (y >= top && y + h <= bottom && !this.curves.some(c => !this.hidden.has(c.label) && this.crosses(u, c, x, x + w, y, y + h))) return { x, y };
    }
    return null;
  }

  crosses(u, curve, x0, x1, y0, y1) {
    const xs = this.data[0], values = this.data[curve.first];
    let before = null;
    for (let i = 0; i < xs.length; i++) {
      if (values[i] === undefined) continue;
      const x = u.valToPos(xs[i], 'x', true), now = values[i] === null ? null : { x, y: u.valToPos(values[i], 'y', true) };
      const a = before || now;
      if (now && now.x >= x0 && a.x <= x1) {
        const on = x => a.x === now.x ? now.y : a.y + (now.y - a.y) * (x - a.x) / (now.x - a.x);
        const ya = on(Math.max(a.x, x0)), yb = on(Math.min(now.x, x1));
        if (Math.min(ya, yb) <= y1 + 2 && Math.max(ya, yb) >= y0 - 2) return true;
      }
      before = now;
      if (x > x1) break;
    }
    return false;
  }

  /* scaleOfColors is the legend of cells. */
  scaleOfColors(ctx, right, y, r) {
    const { most, color } = this.spec.heat, size = 90 * r;
    const high = numberTick(most);
    ctx.textAlign = 'right';
    ctx.fillText(high + ' messages', right, y);
    const end = right - ctx.measureText(high + ' messages').width - 6 * r;
    for (let i = 0; i < 30; i++) { ctx.fillStyle = color((i + 0.5) / 30); ctx.fillRect(end - size + i * size / 30, y - 5 * r, size / 30 + 0.5, 10 * r); }
    ctx.fillStyle = css('--soft');
    ctx.fillText('1', end - size - 5 * r, y);
    ctx.textAlign = 'left';
  }

  /* picture saves the chart with title and legend as a PNG file. */
  picture() {
    const r = devicePixelRatio, pad = 20 * r, from = this.u.ctx.canvas, to = el('canvas'), ctx = to.getContext('2d');
    const page = document.querySelector('h1').textContent;
    const entries = this.curves.filter(c => !this.hidden.has(c.label) && !this.spec.paint).map(c => ({ ...c, text: c.label })).concat((this.spec.lines || []).map(l => ({ text: l.text, color: levelColor(l), dash: [6, 4] })));
    let x = pad, row = 0;
    ctx.font = `${12 * r}px ${fonts}`;
    for (const e of entries) {
      const size = 34 * r + ctx.measureText(e.text).width + 18 * r;
      if (x > pad && x + size > from.width + pad) { x = pad; row++; }
      Object.assign(e, { at: x, row });
      x += size;
    }
    const head = 52 * r, foot = (entries.length ? row + 1 : 0) * 20 * r;
    Object.assign(to, { width: from.width + 2 * pad, height: pad + head + from.height + foot + pad });
    ctx.fillStyle = css('--bg');
    ctx.fillRect(0, 0, to.width, to.height);
    ctx.textBaseline = 'middle';
    ctx.fillStyle = css('--text');
    ctx.font = `600 ${17 * r}px ${fonts}`;
    ctx.fillText(this.title, pad, pad + 8 * r, from.width);
    ctx.fillStyle = css('--soft');
    ctx.font = `${12 * r}px ${fonts}`;
    const chosen = [...this.controls.querySelectorAll('select')].map(s => s.selectedOptions[0].textContent).concat(page).join(' · ');
    ctx.fillText(chosen, pad, pad + 30 * r, from.width);
    ctx.drawImage(from, pad, pad + head);
    for (const e of entries) {
      const y = pad + head + from.height + (e.row * 20 + 12) * r;
      ctx.strokeStyle = css(e.color); ctx.lineWidth = 3 * r; ctx.setLineDash((e.dash || []).map(d => d * r));
      ctx.beginPath(); ctx.moveTo(e.at, y); ctx.lineTo(e.at + 26 * r, y); ctx.stroke();
      ctx.fillStyle = css('--text');
      ctx.fillText(e.text, e.at + 34 * r, y);
    }
    to.toBlob(blob => download(blob, `${page.slice(0, 80)}-${this.id}.png`.replace(/[^\w.-]+/g, '-')), 'image/png');
  }

  /* ---- legend and values ---- */

  showLegend() {
    this.at = el('span', { class: 'at' });
    const sample = (color, dash) => {
      const make = (tag, attributes) => {
        const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
        for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
        return e;
      };
      const svg = make('svg', { width: 22, height: 8, 'aria-hidden': 'true' });
      svg.append(make('line', { x1: 0, x2: 22, y1: 4, y2: 4, stroke: css(color), 'stroke-width': 3, 'stroke-dasharray': (dash || []).join(' ') }));
      return svg;
    };
    const curve = c => {
      c.out = el('span', { class: 'value' });
      if (this.spec.paint) return el('li', {}, c.out);
      const button = el('button', { type: 'button', 'aria-pressed': String(!this.hidden.has(c.label)), onclick: () => {
        this.hidden.has(c.label) ? this.hidden.delete(c.label) : this.hidden.add(c.label);
        const shown = !this.hidden.has(c.label);
        button.setAttribute('aria-pressed', String(shown));
        for (let i = 0; i < c.size; i++) this.u.setSeries(c.first + i, { show: shown });
      } }, sample(c.color, c.dash), el('span', {}, c.label), c.out);
      return el('li', {}, button);
    };
    const level = l => el('li', { class: 'level' }, sample(levelColor(l), [6, 4]), l.text);
    this.legend.replaceChildren(el('li', { class: 'when' }, this.at), ...(this.spec.lines || []).map(level), ...this.curves.map(curve)); // shown in reverse
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
      this.at.textContent = '';
      for (const c of this.curves) c.out.textContent = '';
      return;
    }
    const x = spec.xText(this.data[0][index]), texts = [];
    this.at.textContent = x;
    for (const c of this.curves) {
      const i = this.valueOf(c, index);
      let text = i < 0 ? '-' : c.text ? c.text(i) : spec.yText(this.data[c.first][i]);
      if (i >= 0 && c.size > 1) {
        const high = this.data[c.first + 1][i], low = this.data[c.first + 2][i];
        if (low != null && low !== high) text += ` (${spec.yText(low)} to ${spec.yText(high)})`;
      }
      c.out.textContent = (spec.pointed && spec.pointed(this.u, i)) || text;
      texts.push(c.text ? text : `${c.label} ${text}`);
    }
    const to = this.data[0][index], from = index > 0 ? this.data[0][index - 1] : -Infinity;
    for (const m of spec.marks || []) if ((m.kind === 'stall' || m.kind === 'outage') && m.from < to && m.to > from) texts.push(m.text);
    this.plot.setAttribute('aria-valuenow', index);
    this.plot.setAttribute('aria-valuetext', x + ': ' + texts.join(', '));
  }

  /* key moves to a point, or zooms around it. */
  key(e) {
    if (!this.u || !this.data[0].length || e.ctrlKey || e.metaKey || e.altKey) return;
    const narrower = { '+': 0.5, '=': 0.5, '-': 2, Escape: Infinity }[e.key];
    if (narrower) { e.preventDefault(); this.zoomBy(narrower); return; }
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
    this.byKey = true;
    this.u.setCursor({ left: this.u.valToPos(xs[i], 'x'), top: this.u.valToPos(y, 'y') });
    this.index = this.last = i;
    this.read(i);
  }

  zoomBy(factor) {
    const { min, max } = this.u.scales.x, log = this.spec.xLog;
    const [to, back] = log ? [Math.log, Math.exp] : [v => v, v => v];
    const middle = this.last == null ? (to(min) + to(max)) / 2 : to(this.data[0][this.last]), half = (to(max) - to(min)) / 2 * factor;
    const [first, last] = this.spec.xRange ? this.spec.xRange(this.data[0][0], this.data[0].at(-1)) : [this.data[0][0], this.data[0].at(-1)];
    const range = [Math.max(first, back(middle - half)), Math.min(last, back(middle + half))];
    setZoom(this.group, range[0] <= first && range[1] >= last ? null : range);
  }
}

/* setZoom shows a range of x in all charts of a group; null shows the whole. */
function setZoom(group, range) {
  range ? zooms.set(group, range) : zooms.delete(group);
  for (const c of charts) if (c.group === group && c.u) {
    c.u.setScale('x', range ? { min: range[0], max: range[1] } : { min: c.data[0][0], max: c.data[0].at(-1) });
    c.showZoom();
  }
}

const levelColor = l => l.soft ? '--soft' : l.kept ? '--good' : '--bad';

/* logTicks are the ticks of a logarithmic scale from a lowest value on: powers of ten first, then what has room. */
function logTicks(u, scale, lowest, ticks, space, steps = [1, 5, 2, 3, 7]) {
  const top = u.scales[scale].max, at = v => u.valToPos(v, scale);
  for (const n of steps) for (let e = Math.floor(Math.log10(lowest)); n * 10 ** e <= top; e++) {
    const v = n * 10 ** e;
    if (v >= lowest && ticks.every(t => Math.abs(at(t) - at(v)) >= space)) ticks.push(v);
  }
  return ticks.sort((a, b) => a - b);
}

/* ---- what the charts show ---- */

const many = () => data.runs.length !== 1;
const styleOf = (run, i) => many() ? { color: '--c' + (run.group % 8 + 1), dash: dashes[Math.floor(run.group / 8) % dashes.length] } : { color: '--c' + (i % 8 + 1) };
const seconds = ms => ms.map(t => t / 1000);
const incrs = [.1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
const overTime = { xTick: clock, xText: clock, xIncrs: incrs, xTitle: 'time since the start of the load' };
const shared = { warmup: true }; // warm-ups are shown

/* fromStart begins the axis of time where the first second begins: points are at the ends of seconds. */
function fromStart() {
  const begin = Math.min(...data.runs.map(r => {
    const keep = measured(r)(r.time);
    const before = r.time[r.time.length - keep.length - 1];
    return keep.length < r.time.length && before !== undefined ? before / 1000 : ((stepsOf(r)[0] || { at: 0 }).at);
  }));
  const end = Math.max(...data.runs.map(r => (r.time.at(-1) ?? 1000) / 1000));
  return { xRange: () => [begin, end] };
}

/* measured leaves out the points of warm-ups, if they are not wanted. */
function measured(run) {
  if (shared.warmup) return column => column;
  const out = new Set(), warmups = run.bands.filter(b => b.kind === 'warmup');
  run.time.forEach((t, i) => { if (warmups.some(b => t > b.from && t <= b.to)) out.add(i); });
  return column => column && column.filter((_, i) => !out.has(i));
}

/* ending cuts off the end of a curve after its last message: no line falls to zero because the load is over. */
function ending(run, values) {
  const drains = run.bands.filter(b => b.kind === 'drain');
  let n = values.length;
  while (n > 0 && !values[n - 1] && drains.some(b => run.time[n - 1] > b.from && run.time[n - 1] <= b.to)) n--;
  return values.map((v, i) => i < n ? v : null);
}

/* stepsOf returns the starts of steps, or other moments, in seconds. */
const stepsOf = (run, kind = 'step') => run.bands.filter(b => b.kind === kind).map(b => ({ name: b.text, at: b.from / 1000 }));
const moments = ['step', 'event'];

/* bandsOf returns the bands of a run. An outage stands for the stall that is the same silence, too. */
function bandsOf(run) {
  const outages = run.bands.filter(b => b.kind === 'outage');
  return run.bands.filter(b => b.kind !== 'stall' || !outages.some(o => Math.min(o.to, b.to) - Math.max(o.from, b.from) > 0.9 * (b.to - b.from)));
}

/* marksOf returns the marked periods of a run, and the labels of steps, events, stalls and outages. */
function marksOf() {
  if (many()) return {};
  const run = data.runs[0], begins = stepsOf(run), labels = [], moment = [];
  const marks = bandsOf(run).filter(b => !moments.includes(b.kind) && (shared.warmup || b.kind !== 'warmup')).map(b => ({ ...b, from: b.from / 1000, to: b.to / 1000 }));
  if (begins.length > 1) begins.forEach((s, i) => labels.push({ lane: 0, kind: 'step', text: s.name, from: s.at, to: begins[i + 1]?.at ?? run.time.at(-1) / 1000, line: true }));
  for (const e of stepsOf(run, 'event')) moment.push({ kind: 'event', text: e.name, from: e.at, line: true });
  for (const m of marks) if (m.kind === 'stall' || m.kind === 'outage') moment.push({ kind: m.kind, text: m.text.replace(/ at [\d.]+ s$/, ''), from: m.from, to: m.to });
  const lanes = [labels, moment.filter(l => l.kind !== 'event'), moment.filter(l => l.kind === 'event')].filter(l => l.length);
  return { marks, labels: lanes.flatMap((list, lane) => list.sort((a, b) => a.from - b.from).map(l => ({ ...l, lane }))) };
}

const hasWarmup = () => data.runs.some(r => r.bands.some(b => b.kind === 'warmup'));
const warmupToggle = chart => hasWarmup() ? [chart.toggle('warmup', 'show the warm-up', true, on => { shared.warmup = on; zooms.delete('time'); redraw(); })] : [];

function thinnedNote() {
  const thinned = data.runs.filter(r => r.seconds);
  if (!thinned.length) return '';
  return ` Each point stands for up to ${clock(Math.max(...thinned.map(r => r.seconds)))}: the shade reaches from the lowest to the highest second.`;
}

function markNote() {
  if (many()) return '';
  const kinds = new Set(bandsOf(data.runs[0]).map(b => b.kind)), parts = [];
  if (kinds.has('warmup') || kinds.has('drain')) parts.push([kinds.has('warmup') && 'warm-up', kinds.has('drain') && 'drain'].filter(Boolean).join(' and ') + ' in grey');
  if (kinds.has('stall')) parts.push('stalls in red');
  if (kinds.has('outage')) parts.push('outages in violet');
  return parts.length ? 'Marked: ' + parts.join(', ') + '.' : '';
}

function levelsFor(matches) {
  return data.lines.filter(l => matches(l.metric)).map(l => ({ value: l.value, text: l.text, kept: l.kept }));
}

/* chosen tells whether a chart over time draws one of its curves alone; namesOf are the names of all. */
const chosen = name => many() || name === 'side-others';
const namesOf = name => [...new Set(data.runs.flatMap(r => r.curves.filter(c => c.chart === name).map(c => c.name)))];
const titles = { '/s': 'per second', '%': '% of the time' };

/* over defines a chart over time: of one run all its curves, of several runs one curve of each. */
const over = (name, note, lines) => chart => {
  const series = [];
  let unit = '', whole = false;
  for (const run of data.runs) {
    const keep = measured(run);
    run.curves.filter(c => c.chart === name && (!chosen(name) || c.name === chart.state.curve)).forEach((c, i) => {
      unit = c.unit;
      whole = !unit && c.name !== 'load average' || unit === '/s' && c.value.some(v => v > 4);
      series.push({ label: many() ? run.name : c.name, ...styleOf(run, i), x: keep(seconds(run.time)), value: keep(name === 'throughput' ? ending(run, c.value) : c.value), low: keep(c.low), high: keep(c.high) });
    });
  }
  const peaks = chart.on('log') ? spread(series.flatMap(s => s.value)) : 0, middle = peaks && Math.max(...series.flatMap(s => s.value)) / peaks;
  const why = peaks && chart.state.log === undefined ? `The scale is logarithmic, since the highest second is ${number(Math.round(peaks))} times the median.` : '';
  return { ...overTime, ...fromStart(), ...marksOf(), series, lines: series.length && lines ? lines(chart) : [], unit, whole: whole && !peaks, yLog: peaks && middle > 0 ? { threshold: middle / 10 } : undefined,
    yTitle: name === 'throughput' ? 'messages/s' : name === 'waiting' ? 'messages' : titles[unit], yText: v => amount(v, unit),
    note: [note, name === 'throughput' && data.note, name === 'throughput' && markNote(), why, thinnedNote()].filter(Boolean).join(' ') };
};

const overControls = name => chart => {
  const names = namesOf(name);
  return names.length && chosen(name) ? [chart.choice('curve', 'Curve', names.map(n => [n, n]))] : [];
};

/* throughputControls: peaks after an outage must not flatten the rest. */
function throughputControls(chart) {
  if (!namesOf('throughput').length) return [];
  const controls = overControls('throughput')(chart);
  const drawn = data.runs.flatMap(r => r.curves.filter(c => c.chart === 'throughput' && (!many() || c.name === chart.state.curve)).flatMap(c => measured(r)(c.value)));
  return [...controls, chart.toggle('log', 'logarithmic', spread(drawn) > 6), ...warmupToggle(chart)];
}

function throughputLines(chart) {
  const offered = data.runs[0].offered, shown = many() ? [chart.state.curve] : namesOf('throughput');
  return [...(many() || stepsOf(data.runs[0]).length > 1 || !offered ? [] : [{ value: offered, text: 'offered: ' + number(offered) + '/s on average', soft: true }]),
    ...levelsFor(m => shown.some(n => m.startsWith(n + '.')))];
}

const statistics = [['p50', 'p50'], ['p99', 'p99'], ['max', 'max']];
const kindsOf = () => kinds.filter(k => namesOf('latency').includes(k + ' max'));
const floor = column => column && column.map(v => v == null ? v : Math.max(1, v));

/* kindOptions has the latencies that matter most first. */
function kindOptions(list) {
  const first = ['response', 'ack', 'transfer'].filter(k => list.includes(k));
  return [...first, ...list.filter(k => !first.includes(k))].map(k => [k, k]);
}

function latency(chart) {
  const series = [], { kind, statistic } = chart.state;
  const shown = kind === 'all' ? kindsOf() : [kind], stats = statistics.filter(s => statistic === 'all' || s[0] === statistic);
  for (const run of data.runs) {
    const keep = measured(run);
    for (const k of shown) for (const [name, text] of stats) {
      const c = run.curves.find(c => c.chart === 'latency' && c.name === k + ' ' + name);
      if (!c) continue;
      series.push({ ...(many() ? { label: run.name, ...styleOf(run) } : kind === 'all' ? { label: k, color: colorOf[k] } : { label: text, color: colorOf[name] }),
        width: name === 'max' ? 1.25 : 2, x: keep(seconds(run.time)), value: floor(keep(c.value)), low: name === 'max' ? undefined : floor(keep(c.low)) });
    }
  }
  return { ...overTime, ...fromStart(), ...marksOf(), series, yLog: chart.on('log'), yTick: timeTick, yTitle: 'latency', yText: time, lines: levelsFor(m => shown.some(k => stats.some(s => m === k + '.' + s[0]))),
    note: ['Of each second.', data.note, thinnedNote()].filter(Boolean).join(' ') };
}

function latencyControls(chart) {
  const list = kindsOf();
  if (!list.length) return [];
  const options = kindOptions(list);
  if (!many() && list.length > 1) options.push(['all', 'all, side by side']);
  const kind = chart.choice('kind', 'Latency', options);
  const [p50, p99, max] = statistics;
  const stats = many() || chart.state.kind === 'all' ? [p99, p50, max] : [['all', 'p50, p99 and max'], ...statistics];
  return [kind, chart.choice('statistic', 'of', stats), chart.toggle('log', 'logarithmic', true)];
}

const ranks = [[2, 'p50'], [100, 'p99'], [1000, 'p99.9']];

function percentiles(chart) {
  const series = [], dots = [], shown = many() ? [chart.state.kind] : kinds;
  for (const run of data.runs) for (const k of shown) {
    const c = run.percentiles[k];
    if (!c) continue;
    series.push({ label: k, color: colorOf[k], ...(many() && { label: run.name, ...styleOf(run) }), spanGaps: true, x: c.rank, value: floor(c.value) });
    ranks.forEach(([rank], i) => { if (rank <= c.rank.at(-1) && !chart.hidden.has(series.at(-1).label)) dots.push({ x: rank, y: Math.max(1, c.marks[i]), color: series.at(-1).color }); });
  }
  const lines = data.lines.map(l => ({ ...l, parts: l.metric.match(/^(\w+)\.p([\d.]+)$/) })).filter(l => l.parts && shown.includes(l.parts[1])).map(l => ({ ...l, rank: 100 / (100 - l.parts[2]) }));
  return { series, xLog: true, xRange: (min, max) => [min ?? 1, max ?? 10], yLog: chart.on('log'), xSteps: [1], xTick: share, xText: v => share(v) + ' within', xClock: share, xTitle: 'share of messages', yTick: timeTick, yTitle: 'latency', yText: time, lines, dots, xSpace: 40,
    labels: ranks.map(([rank, text]) => ({ lane: 0, kind: 'rank', from: rank, text, center: true, line: true })),
    note: 'The share of messages whose latency was no longer; the last point is the maximum.' };
}

function percentileControls(chart) {
  const list = kinds.filter(k => data.runs.some(r => r.percentiles[k]));
  if (!list.length) return [];
  return [...(many() ? [chart.choice('kind', 'Latency', kindOptions(list))] : []), chart.toggle('log', 'logarithmic', true)];
}

/* ---- the latencies of a run by time and by size ---- */

/* cellsOf joins columns of counts, by eighths of an octave, to a number of rows at most: row i has the latencies up to edge i + 1. */
function cellsOf(columns, most) {
  const buckets = columns.flatMap(c => Object.keys(c).map(Number)), low = Math.min(...buckets), high = Math.max(...buckets);
  const step = Math.floor((high - low) / most) + 1, rows = Math.floor((high - low) / step) + 1;
  const counts = columns.map(c => {
    const list = new Array(rows).fill(0);
    for (const [bucket, n] of Object.entries(c)) list[Math.floor((bucket - low) / step)] += n;
    return list;
  });
  return { counts, rows, low: (low - 1) / 8, step: step / 8 };
}

const edge = (cells, i) => 2 ** (cells.low + i * cells.step);
const between = (cells, i) => `${time(edge(cells, i))} to ${time(edge(cells, i + 1))}`;
const messages = n => number(n) + (n === 1 ? ' message' : ' messages');
const cellKinds = name => many() ? [] : kinds.filter(k => data.runs[0][name]?.[k]);
const cellControls = name => chart => cellKinds(name).length ? [chart.choice('kind', 'Latency', kindOptions(cellKinds(name)))] : [];

/* heatColors maps 0 to 1 to the colours --h1 to --h5. */
function heatColors() {
  const stops = [1, 2, 3, 4, 5].map(i => css('--h' + i).match(/[0-9a-f]{2}/gi).map(h => parseInt(h, 16)));
  return t => {
    const at = Math.min(0.9999, Math.max(0, t)) * 4, i = Math.floor(at);
    return `rgb(${stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * (at - i))).join(' ')})`;
  };
}

function heat(chart) {
  const map = many() ? null : data.runs[0].heat?.[chart.state.kind];
  if (!map) return null;
  const cells = cellsOf(map.columns, 24), { counts, rows } = cells, seconds = map.width / 1e6, end = data.runs[0].time.at(-1) / 1000;
  const totals = counts.map(c => c.reduce((a, b) => a + b, 0)), most = Math.max(...counts.map(c => Math.max(...c))), color = heatColors();
  const range = i => `${clock(i * seconds)} to ${clock(Math.min(end, (i + 1) * seconds))}`, column = x => Math.floor(x / seconds);
  return { ...overTime, ...fromStart(), marks: marksOf().marks, labels: marksOf().labels, xText: x => range(column(x)), xClock: clock, grid: false,
    yLog: true, yTick: timeTick, yTitle: 'latency', yText: number, yRange: () => [edge(cells, 0), edge(cells, rows)], heat: { most, color },
    series: [{ label: 'messages', color: '--c1', x: counts.map((_, i) => Math.min(end, (i + 0.5) * seconds)), value: totals.map(n => n || null),
      text: i => { if (!totals[i]) return 'no message'; const best = counts[i].indexOf(Math.max(...counts[i])); return `${messages(totals[i])}, most (${number(counts[i][best])}) with ${between(cells, best)}`; } }],
    pointed: (u, i) => {
      const row = Math.floor((Math.log2(u.posToVal(u.cursor.top, 'y')) - cells.low) / cells.step);
      return i >= 0 && u.cursor.top >= 0 && !chart.byKey && row >= 0 && row < rows ? `${between(cells, row)}: ${messages(counts[i][row] ?? 0)}` : '';
    },
    paint: (u, ctx) => {
      const shade = n => color(most > 1 ? Math.log(n) / Math.log(most) : 1);
      const y = Array.from({ length: rows + 1 }, (_, i) => Math.round(u.valToPos(edge(cells, i), 'y', true)));
      counts.forEach((c, i) => {
        const x0 = Math.round(u.valToPos(i * seconds, 'x', true)), x1 = Math.round(u.valToPos(Math.min(end, (i + 1) * seconds), 'x', true));
        c.forEach((n, k) => { if (n) { ctx.fillStyle = shade(n); ctx.fillRect(x0, y[k + 1], Math.max(1, x1 - x0), Math.max(1, y[k] - y[k + 1])); } });
      });
    },
    note: `How many messages had which latency, in ${seconds === 1 ? 'each second' : 'every ' + clock(seconds)}${hasWarmup() ? ', with the warm-up' : ''}.` };
}

function bars(chart) {
  const whole = many() ? null : data.runs[0].bars?.[chart.state.kind];
  if (!whole) return null;
  const cells = cellsOf([whole], 60), counts = cells.counts[0], all = counts.reduce((a, b) => a + b, 0), c = data.runs[0].percentiles[chart.state.kind], log = chart.on('log');
  return { xLog: true, xRange: () => [edge(cells, 0), edge(cells, counts.length)], xTick: timeTick, xTitle: 'latency', xSpace: 58, xClock: time,
    xText: x => between(cells, Math.round((Math.log2(x) - cells.low) / cells.step - 0.5)), yTitle: 'messages', yTick: v => v < 1 && v !== 0 ? '' : numberTick(v), yText: number, whole: !log, yLog: log, yRange: log ? (min, max) => [0.7, Math.max(2, max) * 1.5] : undefined,
    series: [{ label: 'messages', color: '--c1', x: counts.map((_, i) => edge(cells, i + 0.5)), value: counts, text: i => `${messages(counts[i])} (${number(100 * counts[i] / all)}%)` }],
    labels: ranks.map(([rank, text], i) => ({ rank, lane: i % 2, kind: 'rank', from: c.marks[i], text: `${text}: ${time(c.marks[i])}`, center: true, line: true })).filter(l => l.rank <= all),
    paint: (u, ctx) => {
      ctx.fillStyle = css('--c1');
      const base = u.valToPos(u.scales.y.min, 'y', true), gap = devicePixelRatio;
      counts.forEach((n, i) => {
        const x0 = Math.round(u.valToPos(edge(cells, i), 'x', true)), x1 = Math.round(u.valToPos(edge(cells, i + 1), 'x', true)), y = u.valToPos(n, 'y', true);
        if (n) ctx.fillRect(x0, Math.min(y, base - gap), Math.max(1, x1 - x0 - gap), Math.max(gap, base - y));
      });
    },
    note: 'How many messages had which latency, in the whole run without the warm-up.' };
}

const place = document.getElementById('charts');
place.replaceChildren(el('p', { class: 'note hint' }, 'Point into a chart for the values, or focus it and use the arrow keys. Drag to zoom all charts over time; double-click for the whole.'));
const overChart = (id, title, note, options) => new Chart(place, { id, title, sync: 'time', define: over(id, note), controls: overControls(id), ...options });
overChart('throughput', 'Throughput', '', { define: over('throughput', '', throughputLines), controls: throughputControls });
new Chart(place, { id: 'latency', title: 'Latency over time', sync: 'time', define: latency, controls: latencyControls });
new Chart(place, { id: 'heat', title: 'Latency heat map', sync: 'time', define: heat, controls: cellControls('heat') });
new Chart(place, { id: 'histogram', title: 'Latency histogram', define: bars, controls: chart => cellControls('bars')(chart).concat(cellKinds('bars').length ? chart.toggle('log', 'logarithmic', false) : []) });
new Chart(place, { id: 'percentiles', title: 'Latency by percentile', define: percentiles, controls: percentileControls });
for (const [id, title, note] of [
  ['connections', 'Connections', 'Open connections of groups of connections.'],
  ['openings', 'Connections: openings', 'Connections that became usable, did not open, or were lost.'],
  ['waiting', 'Messages waiting', 'Messages sent and not yet confirmed, and those in the queues of the broker.'],
  ['tester', 'Processors', 'Cores used by perfmq and by all programs of its machine.'],
  ['side-cores', 'The broker: processors', 'Cores used by the process.'],
  ['side-shares', 'The broker: garbage collection, disk', ''],
  ['side-memory', 'The broker: memory', ''],
  ['side-bytes', 'The broker: disk and network', ''],
  ['side-others', 'The broker: other figures', ''],
]) overChart(id, title, note, id === 'waiting' ? {} : { height: 140 });

/* arrange lets the last of an odd number of narrow charts have the whole width. */
function arrange() {
  const narrow = charts.filter(c => c.size === 'narrow' && !c.figure.hidden);
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
