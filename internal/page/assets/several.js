/* Draws what belongs to several runs: the cells of a sweep, the loads of a search, the repeats of a comparison. It draws in SVG, where points are
   links to their runs and colours follow the theme. */
(() => {
'use strict';

const place = document.getElementById('several');
if (!place) return;
const data = JSON.parse(document.getElementById('data').textContent);

/* ---- elements and text ---- */

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter(c => c !== undefined && c !== null));
  return node;
}
const el = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => make(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

const short = v => { const a = Math.abs(v); return a >= 1e6 ? +(v / 1e6).toPrecision(3) + 'M' : a >= 1e4 ? +(v / 1e3).toPrecision(3) + 'k' : a >= 100 ? Math.round(v).toLocaleString('en-US') : String(+v.toPrecision(3)); };
const inTime = us => us < 1e3 ? +us.toPrecision(3) + ' µs' : us < 1e6 ? +(us / 1e3).toPrecision(3) + ' ms' : +(us / 1e6).toPrecision(3) + ' s';

/* unitOf returns the unit of a metric: its name, and how a value is written. */
function unitOf(name) {
  if (/(^|\.)(sent|completed|received)\.(avg|min|max)$/.test(name)) return { title: 'msg/s', text: short };
  if (/(^|\.)broker\.memory$/.test(name)) return { title: 'MB', text: v => short(v / 1e6) };
  if (/(^|\.)broker\.(network|loopback)$/.test(name)) return { title: 'MB/s', text: v => short(v / 1e6) };
  if (/(^|\.)(broker\.disk|tester\.cpu|rate\.missed)$/.test(name)) return { title: '%', text: short };
  if (/(^|\.)broker\.cpu$/.test(name)) return { title: 'cores', text: short };
  if (/\.(mean|p[\d.]+|max)$/.test(name) && !/(^|\.)(stall|outage|recovery)\./.test(name)) return { title: '', text: inTime, time: true };
  return { title: '', text: short };
}

/* linkTo returns the address of the first run of a name, perhaps with a repeat or a remark behind it; undefined without one. */
const linkTo = name => [...document.querySelectorAll('details.run')].filter(d => {
  const text = d.querySelector('h3').textContent;
  return text === name || text.startsWith(name + ' / ') || text.startsWith(name + ', ');
}).map(d => '#' + d.id)[0];

const titleOf = (axes, values) => axes.map(a => a.name + '=' + values[a.name]).join(' ');

const colorOf = i => `var(--c${i % 8 + 1})`;
const dashOf = i => [undefined, '8 4', '2 3', '10 3 2 3'][Math.floor(i / 8) % 4];

/* ---- scales ---- */

/* linear returns a scale from 0 with round ticks. */
function linear(most, from, to) {
  const raw = (most || 1) / 5, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 2.5, 5, 10].find(s => s * power >= raw) * power;
  const top = Math.ceil(most / step - 1e-9) * step || step, ticks = [];
  for (let i = 0; i * step <= top * 1.0001; i++) ticks.push(i * step);
  const at = v => from + (to - from) * v / top;
  return Object.assign(at, { ticks });
}

/* logarithmic returns a scale that holds all values, with ticks at 1, 2 and 5 of each power of ten. */
function logarithmic(least, most, from, to, room) {
  const low = Math.log10(least), high = Math.max(Math.log10(most), low + 0.1), ticks = [];
  for (let p = Math.floor(low); p <= high; p++) for (const n of high - low > 2.5 ? [1] : [1, 2, 5]) ticks.push(n * 10 ** p);
  const at = v => from + (to - from) * (Math.log10(v) - low) / (high - low);
  let last = -Infinity;
  return Object.assign(at, { ticks: ticks.filter(t => {
    if (Math.log10(t) < low - 1e-9 || Math.log10(t) > high + 1e-9 || Math.abs(at(t) - last) < (room || 0)) return false;
    last = at(t);
    return true;
  }) });
}

/* around returns the least and the most, with some room around them. */
function around(values, share) {
  const low = Math.min(...values), high = Math.max(...values);
  return [low / (1 + share), high * (1 + share)];
}

/* ---- a figure: a title, controls, a drawing for the width there is, a legend ---- */

class Figure {
  constructor(id, title, note, define, plain) {
    Object.assign(this, { define, state: { plain }, hidden: new Set() });
    this.controls = el('div', { class: 'controls' });
    this.drawing = el('div', {});
    this.legend = el('ul', { class: 'legend', 'aria-label': 'Legend of ' + title });
    this.note = el('p', { class: 'note' }, note);
    this.figure = el('figure', { id, class: 'wide' }, el('figcaption', {}, el('h2', {}, title), this.note), this.controls, this.drawing, this.legend);
    place.append(this.figure);
    new ResizeObserver(() => { if (Math.abs(this.width - this.figure.clientWidth) > 1) this.draw(); }).observe(this.figure);
    this.draw();
  }

  draw() {
    this.width = this.figure.clientWidth;
    const focused = [...this.controls.querySelectorAll('select,input')].indexOf(document.activeElement);
    this.controls.replaceChildren();
    this.legend.replaceChildren();
    const drawn = this.define(this, Math.max(260, this.width));
    this.drawing.replaceChildren(drawn);
    if (this.state.plain === undefined) {
      this.controls.append(el('button', { type: 'button', class: 'png', 'aria-label': 'PNG of ' + drawn.getAttribute('aria-label'), onclick: () => {
        picture(drawn, drawn.getAttribute('aria-label')).toBlob(blob => {
          const link = el('a', { download: this.figure.id + '.png', href: URL.createObjectURL(blob) });
          link.click();
          setTimeout(() => URL.revokeObjectURL(link.href), 1000);
        });
      } }, 'PNG'));
    }
    this.controls.hidden = !this.controls.children.length;
    if (focused >= 0) this.controls.querySelectorAll('select,input')[focused]?.focus();
  }

  choice(name, label, options) {
    if (!options.includes(this.state[name])) this.state[name] = options[0];
    const select = el('select', { onchange: () => { this.state[name] = select.value; this.state.log = undefined; this.draw(); } },
      ...options.map(o => el('option', { value: o, selected: this.state[name] === o }, o)));
    if (options.length > 1) this.controls.append(el('label', {}, label, select));
    return this.state[name];
  }

  toggle(name, label, initially) {
    const box = el('input', { type: 'checkbox', checked: this.state[name] ?? initially, onchange: () => { this.state[name] = box.checked; this.draw(); } });
    this.controls.append(el('label', {}, box, label));
    return this.state[name] ?? initially;
  }

  /* sample adds an entry with a drawn sample to the legend. */
  sample(text, ...shapes) {
    this.legend.append(el('li', { class: 'sample' }, svg('svg', { width: 22, height: 14, 'aria-hidden': 'true' }, ...shapes), text));
  }

  /* curve adds an entry that hides its curve; it returns the place of a value. */
  curve(name, color, dash) {
    const value = el('span', { class: 'value' });
    const button = el('button', { type: 'button', 'aria-pressed': String(!this.hidden.has(name)), onclick: () => {
      this.hidden.has(name) ? this.hidden.delete(name) : this.hidden.add(name);
      this.draw();
      [...this.legend.querySelectorAll('button')].find(b => b.dataset.name === name)?.focus();
    } }, svg('svg', { width: 22, height: 8, 'aria-hidden': 'true' }, svg('line', { x1: 0, x2: 22, y1: 4, y2: 4, stroke: color, 'stroke-width': 3, 'stroke-dasharray': dash })), el('span', {}, name), value);
    button.dataset.name = name;
    this.legend.append(el('li', {}, button));
    return value;
  }
}

/* picture draws an SVG into a canvas, shape by shape: the page's policy loads no images. */
function picture(drawn, title) {
  const { width, height } = drawn.viewBox.baseVal, canvas = el('canvas', { width: 2 * width + 48, height: 2 * height + 100 }), ctx = canvas.getContext('2d');
  const root = getComputedStyle(document.documentElement), color = text => text.startsWith('url') ? getComputedStyle(document.querySelector(text.match(/#[\w-]+/)[0] + ' rect:last-child')).fill : text;
  ctx.fillStyle = root.getPropertyValue('--bg');
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.scale(2, 2);
  ctx.fillStyle = root.getPropertyValue('--text');
  ctx.font = '600 16px system-ui, sans-serif';
  ctx.fillText(title, 12, 26);
  ctx.translate(12, 40);
  for (const node of drawn.querySelectorAll('line,path,rect,circle,text')) {
    const style = getComputedStyle(node), at = name => +node.getAttribute(name);
    if (node.closest('defs') || style.visibility === 'hidden') continue;
    ctx.globalAlpha = +style.opacity * (style.fill.startsWith('url') ? 0.6 : 1);
    ctx.fillStyle = color(style.fill);
    if (node.tagName === 'text') {
      ctx.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      ctx.textAlign = { start: 'left', middle: 'center', end: 'right' }[style.textAnchor];
      ctx.fillText(node.lastChild.textContent, at('x'), at('y'));
      continue;
    }
    const path = new Path2D(node.getAttribute('d') || '');
    if (node.tagName === 'line') { path.moveTo(at('x1'), at('y1')); path.lineTo(at('x2'), at('y2')); }
    if (node.tagName === 'rect') path.rect(at('x'), at('y'), at('width'), at('height'));
    if (node.tagName === 'circle') path.arc(at('cx'), at('cy'), at('r'), 0, 7);
    if (style.fill !== 'none' && node.tagName !== 'line') ctx.fill(path);
    ctx.globalAlpha = +style.opacity;
    ctx.strokeStyle = style.stroke;
    ctx.lineWidth = parseFloat(style.strokeWidth);
    ctx.setLineDash(style.strokeDasharray === 'none' ? [] : style.strokeDasharray.split(/[ ,]+/).map(parseFloat));
    if (style.stroke !== 'none') ctx.stroke(path);
  }
  return canvas;
}

/* frame draws the axes: ticks of both, and their titles. */
function frame(box, x, y, unit, titles) {
  const parts = [];
  for (const t of y.ticks) {
    parts.push(svg('line', { x1: box.left, x2: box.right, y1: y(t), y2: y(t), stroke: 'var(--grid)' }),
      svg('text', { x: box.left - 8, y: y(t) + 4, 'text-anchor': 'end' }, unit.text(t)));
  }
  for (const [at, text] of x) parts.push(svg('text', { x: at, y: box.bottom + 17, 'text-anchor': 'middle' }, text));
  parts.push(svg('line', { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, stroke: 'var(--soft)' }),
    svg('text', { x: 0, y: 11, class: 'strong' }, titles[1]),
    svg('text', { x: (box.left + box.right) / 2, y: box.bottom + 36, 'text-anchor': 'middle', class: 'strong' }, titles[0]));
  return parts;
}

/* level draws a threshold: a dashed line with its text on a background. */
function level(path, x, y, text, color, anchor) {
  return [svg('path', { d: path, fill: 'none', stroke: color, 'stroke-width': 1.5, 'stroke-dasharray': '6 4' }),
    svg('text', { x, y: y - 5, 'text-anchor': anchor || 'end', class: 'halo' }, text)];
}

const boxOf = (width, height, left) => ({ left, right: width - 14, top: 26, bottom: height - 44 });

/* hatch is a pattern of a colour, for what perfmq limited. */
const hatch = (id, color) => svg('pattern', { id, width: 4, height: 4, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
  svg('rect', { width: 4, height: 4, fill: 'var(--bg)' }), svg('rect', { width: 1.8, height: 4, fill: color }));

const linked = (run, label, ...shapes) => run ? svg('a', { href: run, 'aria-label': label }, svg('title', {}, label), ...shapes) : svg('g', {}, svg('title', {}, label), ...shapes);

/* ---- a sweep: a metric of its cells over the longest axis, a curve for each combination of the others ---- */

/* gridOf returns a metric over the longest axis, with a line for each combination of the other axes. */
function gridOf(sweep, name) {
  const [axis, ...others] = [...sweep.axes].sort((a, b) => b.values.length - a.values.length), lines = new Map();
  for (const c of sweep.cells) {
    const title = titleOf(others, c.values) || 'all cells', k = axis.values.indexOf(c.values[axis.name]), f = c.figures[name];
    if (!lines.has(title)) lines.set(title, axis.values.map(() => null));
    if (f && k >= 0) lines.get(title)[k] = { value: f.Median, low: f.Minimum, high: f.Maximum, text: f.text, bounded: f.bounded, broken: f.judged === 'broken', run: linkTo(titleOf(sweep.axes, c.values)) };
  }
  return { axis: axis.name, values: axis.values, lines: [...lines].map(([name, cells]) => ({ name, cells })) };
}

function matrix(fig, width) {
  const name = fig.choice('metric', 'Metric', data.sweep.metrics), g = gridOf(data.sweep, name), unit = unitOf(name);
  const shown = g.lines.map((l, i) => ({ ...l, i })).filter(l => !fig.hidden.has(l.name));
  const cells = shown.flatMap(l => l.cells.filter(Boolean)), values = cells.flatMap(c => [c.low, c.value, c.high]);
  const positive = values.filter(v => v > 0), most = Math.max(0, ...values), least = Math.min(...positive);
  const levels = data.lines.filter(l => l.metric === name), near = levels.filter(l => l.value <= 2 * most);
  const height = Math.round(Math.min(360, Math.max(250, width * 0.42))), box = boxOf(width, height, 58);
  const log = unit.time && positive.length === values.length && values.length ? fig.toggle('log', 'logarithmic', most > 20 * least) : false;
  const y = log ? logarithmic(...around([...positive, ...near.map(l => l.value)], 0.15), box.bottom, box.top, 24) : linear(Math.max(most, ...near.map(l => l.value)) * 1.05, box.bottom, box.top);
  const x = k => box.left + (k + 0.5) * (box.right - box.left) / g.values.length;
  const dodge = Math.min(6, (box.right - box.left) / g.values.length / (shown.length + 1)), parts = [svg('defs', {}, ...g.lines.map((l, i) => hatch('hatch-' + i, colorOf(i))))];
  const every = Math.ceil(g.values.length / Math.max(1, Math.floor((box.right - box.left) / (12 + 7 * Math.max(...g.values.map(v => v.length))))));
  parts.push(...frame(box, g.values.map((v, k) => [x(k), v]).filter((_, k) => k % every === 0), y, unit, [g.axis, name + (unit.title && ', ' + unit.title)]));
  const guide = svg('line', { y1: box.top, y2: box.bottom, stroke: 'var(--soft)', visibility: 'hidden' });
  parts.push(guide);
  const points = [];
  shown.forEach((l, k) => {
    const at = i => x(i) + (k - (shown.length - 1) / 2) * dodge;
    let path = '';
    l.cells.forEach((c, i) => { if (c) path += (path ? 'L' : 'M') + at(i) + ' ' + y(c.value); });
    parts.push(svg('path', { d: path, fill: 'none', stroke: colorOf(l.i), 'stroke-width': 2, 'stroke-dasharray': dashOf(l.i) }));
    l.cells.forEach((c, i) => {
      if (!c) return;
      const label = `${g.axis}=${g.values[i]} ${l.name}: ${c.text}` + (c.broken ? ', a threshold failed' : '');
      if (c.high > c.low) points.push(svg('path', { d: `M${at(i) - 4} ${y(c.low)}h8M${at(i)} ${y(c.low)}V${y(c.high)}M${at(i) - 4} ${y(c.high)}h8`, fill: 'none', stroke: colorOf(l.i), 'stroke-width': 1.5 }));
      points.push(linked(c.run, label, svg('circle', { cx: at(i), cy: y(c.value), r: c.bounded ? 6.5 : 5, fill: c.bounded ? `url(#hatch-${l.i})` : colorOf(l.i),
        stroke: c.bounded ? colorOf(l.i) : 'var(--bg)', 'stroke-width': 1.5 }), ...(c.broken ? [svg('circle', { class: 'broken', cx: at(i), cy: y(c.value), r: 10, fill: 'none', stroke: 'var(--bad)', 'stroke-width': 2 })] : [])));
    });
  });
  for (const l of near) parts.push(...level(`M${box.left} ${y(l.value)}H${box.right}`, box.right - 4, y(l.value), l.text, 'var(--soft)'));
  const at = el('span', { class: 'at' });
  fig.legend.append(el('li', {}, at));
  const out = g.lines.map((l, i) => fig.curve(l.name, colorOf(i), dashOf(i)));
  const all = g.lines.flatMap(l => l.cells.filter(Boolean));
  if (all.some(c => c.bounded)) fig.sample('perfmq was the limit: at least', svg('circle', { cx: 11, cy: 7, r: 6, fill: 'url(#hatch-0)', stroke: colorOf(0), 'stroke-width': 1.5 }));
  if (all.some(c => c.broken)) fig.sample('a threshold failed', svg('circle', { cx: 11, cy: 7, r: 6, fill: 'none', stroke: 'var(--bad)', 'stroke-width': 2 }), svg('circle', { cx: 11, cy: 7, r: 2.5, fill: 'var(--soft)' }));
  if (levels.length) fig.sample(near.length ? 'threshold' : levels[0].text + ': far above', svg('line', { x1: 0, x2: 22, y1: 7, y2: 7, stroke: 'var(--soft)', 'stroke-width': 1.5, 'stroke-dasharray': '6 4' }));
  if (cells.some(c => c.high > c.low)) fig.sample('lowest to highest repeat', svg('path', { d: 'M7 1h8M11 1V13M7 13h8', stroke: 'var(--soft)', 'stroke-width': 1.5, fill: 'none' }));
  const read = k => {
    at.textContent = k === null ? 'point at a value' : g.axis + '=' + g.values[k];
    guide.setAttribute('visibility', k === null ? 'hidden' : 'visible');
    if (k !== null) for (const n of ['x1', 'x2']) guide.setAttribute(n, x(k));
    g.lines.forEach((l, i) => { out[i].textContent = k === null ? '' : l.cells[k] ? l.cells[k].text : '-'; });
  };
  read(null);
  const drawn = svg('svg', { class: 'draw', viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': name + ' by ' + g.axis,
    onpointermove: e => read(Math.min(g.values.length - 1, Math.max(0, Math.floor((e.clientX - drawn.getBoundingClientRect().left - box.left) / (box.right - box.left) * g.values.length)))), onpointerleave: () => read(null) }, ...parts, ...points);
  return drawn;
}

/* ---- a search: a metric of its loads over their rates ---- */

const signs = {
  pass: (x, y) => [svg('circle', { cx: x, cy: y, r: 6, fill: 'var(--good)', stroke: 'var(--bg)', 'stroke-width': 1.5 })],
  fail: (x, y) => [svg('circle', { cx: x, cy: y, r: 9, fill: 'transparent', stroke: 'none' }), svg('path', { d: `M${x - 5} ${y - 5}l10 10M${x + 5} ${y - 5}l-10 10`, stroke: 'var(--bad)', 'stroke-width': 3, fill: 'none' })],
  undecided: (x, y) => [svg('path', { d: `M${x} ${y - 7}l7 7l-7 7l-7 -7z`, fill: 'url(#hatch-warn)', stroke: 'var(--warn)', 'stroke-width': 1.5 })],
};

/* loadName is the name of the run of a load. */
const loadName = (p, i) => `${i + 1}: ${[...document.querySelectorAll('.scroll[aria-label="Rates tried"] tbody tr')][i]?.cells[1].textContent}`;

function search(fig, width) {
  const s = data.search, verdictOf = p => p.kept ? 'pass' : p.tester ? 'undecided' : 'fail';
  const order = m => (i => i < 0 ? Infinity : i)(s.demands.findIndex(text => text.startsWith(m + ' ')));
  const points = s.points.map((p, i) => ({ ...p, verdict: verdictOf(p), values: s.values[i], link: linkTo(loadName(p, i)) })), answer = s.held ? s.rate : 0;
  const lines = s.demands.map(text => {
    const share = text.match(/^(\S+) >= ([\d.]+) ?% +of +target$/);
    return share ? { metric: share[1], value: +share[2], text, share: true } : data.lines.find(l => l.text === text);
  }).filter(Boolean);
  const metrics = [...new Set(points.flatMap(p => Object.keys(p.values)))].sort((a, b) => order(a) - order(b));
  const name = fig.choice('metric', 'Metric', metrics), unit = unitOf(name), list = points.filter(p => p.values[name] != null);
  const height = Math.round(Math.min(360, Math.max(260, width * 0.42))), box = boxOf(width, height, 58), values = list.map(p => p.values[name]);
  const rates = points.map(p => p.rate), x = logarithmic(...around(rates, 0.12), box.left + 8, box.right - 8, 52);
  const levels = lines.filter(l => l.metric === name);
  const limits = levels.flatMap(l => l.share ? rates.map(r => r * l.value / 100) : [l.value]), all = [...values, ...limits].filter(v => v > 0);
  const log = values.every(v => v > 0) && fig.toggle('log', 'logarithmic', Math.max(...all) > 20 * Math.min(...all));
  const y = log ? logarithmic(...around(all, 0.2), box.bottom, box.top, 24) : linear(Math.max(...values, ...limits, 0) * 1.08, box.bottom, box.top);
  const parts = [svg('defs', {}, hatch('hatch-warn', 'var(--warn)')), ...frame(box, x.ticks.map(t => [x(t), short(t)]), y, unit, ['rate of the load, msg/s (logarithmic)', name + (unit.title && ', ' + unit.title)])];
  for (const t of x.ticks) parts.push(svg('line', { x1: x(t), x2: x(t), y1: box.top, y2: box.bottom, stroke: 'var(--grid)' }));
  if (answer) {
    const at = x(answer), left = at > (box.left + box.right) / 2;
    parts.push(svg('line', { x1: at, x2: at, y1: box.top, y2: box.bottom, stroke: 'var(--link)', 'stroke-width': 2 }),
      svg('text', { x: at + (left ? -8 : 8), y: box.top + 12, 'text-anchor': left ? 'end' : 'start', class: 'strong halo' }, s.text));
  }
  for (const l of levels) {
    const ends = [box.left, box.right], rateAt = px => Math.min(...rates) / 1.12 * (Math.max(...rates) * 1.12 / (Math.min(...rates) / 1.12)) ** ((px - box.left - 8) / (box.right - box.left - 16));
    let path = `M${box.left} ${y(l.value)}H${box.right}`, text = y(l.value);
    if (l.share) {
      path = Array.from({ length: 41 }, (_, i) => ends[0] + (ends[1] - ends[0]) * i / 40).map((px, i) => (i ? 'L' : 'M') + px + ' ' + y(rateAt(px) * l.value / 100)).join('');
      text = y(rateAt(box.right) * l.value / 100);
    }
    parts.push(...(l.share ? level(path, box.right - 2, Math.max(box.top + 12, text), l.text, 'var(--bad)') : level(path, box.left + 4, text, l.text, 'var(--bad)', 'start')));
  }
  for (const p of list) {
    const label = `${short(p.rate)} msg/s: ${p.verdict}${p.hold ? ', held for longer' : ''}, ${name} ${unit.text(p.values[name])} ${unit.title}`.trim();
    const ring = p.hold ? [svg('circle', { cx: x(p.rate), cy: y(p.values[name]), r: 11, fill: 'none', stroke: 'var(--link)', 'stroke-width': 2 })] : [];
    parts.push(linked(p.link, label, ...signs[p.verdict](x(p.rate), y(p.values[name])), ...ring));
  }
  for (const [verdict, text] of [['pass', 'passed'], ['fail', 'failed'], ['undecided', 'undecided: perfmq was the limit']]) if (points.some(p => p.verdict === verdict)) fig.sample(text, ...signs[verdict](11, 7));
  if (points.some(p => p.hold)) fig.sample('held for longer', svg('circle', { cx: 11, cy: 7, r: 6, fill: 'none', stroke: 'var(--link)', 'stroke-width': 2 }));
  fig.sample('threshold', svg('line', { x1: 0, x2: 22, y1: 7, y2: 7, stroke: 'var(--bad)', 'stroke-width': 1.5, 'stroke-dasharray': '6 4' }));
  if (answer) fig.sample('the answer', svg('line', { x1: 11, x2: 11, y1: 0, y2: 14, stroke: 'var(--link)', 'stroke-width': 2 }));
  return svg('svg', { class: 'draw', viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': name + ' by the rate of the load' }, ...parts);
}

/* ---- a comparison: a dot for each repeat, the median and its interval, by set ---- */

const percent = v => (v >= 0 ? '+' : '') + (100 * v).toFixed(1) + '%';
const classOf = { better: 'kept', worse: 'broken' };

function strip(row) {
  return (fig, width) => {
    const unit = unitOf(row.Metric.Name), cells = row.Cells, names = data.sets, step = 30, left = Math.min(150, width * 0.32), height = 14 + step * cells.length + 24;
    const all = cells.flatMap(c => c.Values && c.Values.length ? [...c.Values, c.Low, c.High] : []);
    let low = Math.min(...all), high = Math.max(...all);
    const room = (high - low || Math.abs(high) || 1) * 0.08;
    low -= room; high += room;
    const right = width - 14, x = v => left + (right - left) * (v - low) / (high - low), parts = [];
    const raw = (high - low) / Math.max(2, (right - left) / 90), power = 10 ** Math.floor(Math.log10(raw)), size = [1, 2, 5, 10].find(n => n * power >= raw) * power;
    const bottom = 14 + step * cells.length;
    for (let t = Math.ceil(low / size) * size; t <= high; t += size) parts.push(svg('line', { x1: x(t), x2: x(t), y1: 6, y2: bottom, stroke: 'var(--grid)' }), svg('text', { x: x(t), y: bottom + 15, 'text-anchor': 'middle' }, unit.text(t)));
    cells.forEach((c, i) => {
      const y = 10 + step * (i + 0.5), name = names[i].length * 7 > left - 10 ? names[i].slice(0, Math.floor((left - 10) / 7) - 1) + '…' : names[i];
      parts.push(svg('text', { x: left - 10, y: y + 4, 'text-anchor': 'end' }, svg('title', {}, names[i]), name));
      if (!c.Values || !c.Values.length) return;
      if (c.Values.length > 1) parts.push(svg('rect', { x: x(c.Low), y: y - 8, width: Math.max(1, x(c.High) - x(c.Low)), height: 16, rx: 3, fill: colorOf(i), opacity: 0.25 }));
      parts.push(svg('line', { x1: x(c.Median), x2: x(c.Median), y1: y - 10, y2: y + 10, stroke: colorOf(i), 'stroke-width': 3 }));
      c.Values.forEach((v, k) => parts.push(svg('circle', { cx: x(v), cy: y + (k % 3 - 1) * 4, r: 4, fill: colorOf(i), stroke: 'var(--bg)' }, svg('title', {}, names[i] + ': ' + unit.text(v) + ' ' + unit.title))));
    });
    const said = cells.map((c, i) => c.Values && c.Values.length ? `${names[i]} ${unit.text(c.Median)} ${unit.title}`.trim() : names[i] + ' -').join(', ');
    return svg('svg', { class: 'draw', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${row.Metric.Name}, medians: ${said}` }, ...parts);
  };
}

function compared() {
  for (const row of data.compared) {
    const fig = new Figure('compared-' + row.Metric.Name.replace(/\./g, '-'), row.Metric.Name, '', strip(row), true), unit = unitOf(row.Metric.Name);
    fig.figure.classList.remove('wide');
    fig.figure.querySelector('figcaption').replaceChildren(el('h2', {}, row.Metric.Name + (unit.title && ', ' + unit.title), ...row.Cells.slice(1).filter(c => c.Verdict).map((c, i) =>
      el('span', { class: classOf[c.Verdict] }, (row.Cells.length > 2 ? data.sets[i + 1] + ' ' : '') + `${percent(c.Change)} (${percent(c.ChangeLow)} to ${percent(c.ChangeHigh)}), p=${c.P.toFixed(3)}: ${c.Verdict}`))));
    fig.legend.hidden = true;
  }
  place.append(el('p', { class: 'note wide' }, 'A dot is a repeat, the line the median, the bar its interval; in brackets the 95% interval of the change, of few repeats the range of all pairs.'));
}

/* ---- all of it ---- */

if (data.sweep && data.sweep.metrics.length && data.sweep.axes.some(a => a.values.length > 1)) {
  new Figure('matrix', 'The cells', 'The median of the repeats of each cell. A point is a link to its run.', matrix);
}
if (data.search && data.search.values.some(v => Object.keys(v).length)) new Figure('search', 'The loads tried', 'A point is a load, and a link to its run.', search);
if (data.compared && data.compared.length) compared();

/* decorate colours the cells of a table, and links its rows. */
function decorate(title, rows, nameOf, classOf) {
  const table = document.querySelector(`.scroll[aria-label="${title}"] table`);
  if (!table) return;
  table.classList.add('cells');
  const heads = [...table.tHead.rows].at(-1).cells;
  [...table.tBodies[0].rows].forEach((tr, i) => {
    const first = tr.cells[0], to = nameOf && linkTo(nameOf(rows[i], i));
    if (to) first.replaceChildren(el('a', { href: to }, first.textContent));
    [...tr.cells].forEach((td, k) => { if (k) td.className = (td.className + ' ' + (classOf(rows[i], heads[k].textContent, k) || '')).trim(); });
  });
}
/* small puts the spread of the repeats below their median. */
function small(title) {
  for (const td of document.querySelectorAll(`.scroll[aria-label="${title}"] td`)) {
    const [, value, spread] = td.textContent.match(/^(.*?) (±.*|\(\d+ runs\))$/) || [];
    if (spread) td.replaceChildren(value + ' ', el('small', {}, spread));
  }
}
if (data.sweep) {
  for (const [title, prefix] of [['Cells', ''], ['The broker in each cell', 'broker.']]) {
    decorate(title, data.sweep.cells, c => titleOf(data.sweep.axes, c.values), (c, head) => {
      const f = c.figures[head] || prefix && c.figures[data.sweep.metrics.find(m => m.includes(prefix) && m.replace(prefix, '') === head)];
      return f ? [f.bounded && 'bounded', f.judged].filter(Boolean).join(' ') : '';
    });
    small(title);
  }
}
if (data.search) {
  decorate('Rates tried', data.search.points, loadName, (r, head) => head === 'verdict' && (r.kept ? 'kept' : r.tester ? 'bounded' : 'broken'));
}
if (data.compared) decorate('Side by side', data.compared, null, (r, _, k) => k > 1 && (k - 2) % 3 ? classOf[r.Cells[1 + Math.floor((k - 2) / 3)].Verdict] : '');

/* reveal opens what a link points to. */
function reveal() {
  const target = location.hash.startsWith('#run-') && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let e = target; e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true;
  target.scrollIntoView();
  target.querySelector('summary').focus({ preventScroll: true });
}
addEventListener('hashchange', reveal);
document.addEventListener('click', e => { if (e.target.closest('a[href^="#run-"]')) setTimeout(reveal); });
reveal();
})();
