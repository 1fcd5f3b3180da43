/* Keeps a live page up to date: fetches it again as soon as it has another version, until the run has ended. */
(() => {
'use strict';

const parts = ['head', 'contents', 'top', 'bottom'];
const status = document.getElementById('live');
const focusable = 'a,button,summary,[tabindex]';
const nameOf = e => e.getAttribute('aria-label') || e.textContent;

/* replace puts in the words of a newer page; what was opened stays open, scrolled and focused. */
function replace(newer) {
  for (const id of parts) {
    const old = document.getElementById(id), fresh = newer.getElementById(id);
    if (!old || !fresh) continue;
    const open = new Map([...old.querySelectorAll('details')].map(d => [nameOf(d.querySelector('summary')), d.open]));
    const at = new Map([...old.querySelectorAll('.scroll')].map(s => [nameOf(s), s.scrollLeft]));
    const focused = old.contains(document.activeElement) && nameOf(document.activeElement);
    for (const d of fresh.querySelectorAll('details')) {
      const was = open.get(nameOf(d.querySelector('summary')));
      if (was !== undefined) d.open = was;
    }
    old.replaceWith(document.adoptNode(fresh));
    for (const s of fresh.querySelectorAll('.scroll')) s.scrollLeft = at.get(nameOf(s)) || 0;
    if (focused) [...fresh.querySelectorAll(focusable)].find(e => nameOf(e) === focused)?.focus({ preventScroll: true });
  }
}

/* ---- the state of the run, above its figures ---- */

const state = document.createElement('section');
state.id = 'now';
state.setAttribute('aria-label', 'Progress');
status.after(state);

const clock = us => {
  const s = Math.max(0, Math.round(us / 1e6)), two = n => String(n).padStart(2, '0');
  return s < 3600 ? Math.floor(s / 60) + ':' + two(s % 60) : Math.floor(s / 3600) + ':' + two(Math.floor(s / 60) % 60) + ':' + two(s % 60);
};

/* lengthOf returns a duration of a plan, such as 1m30s, in microseconds; NaN if there is none. */
const lengthOf = text => {
  const units = { h: 3.6e9, m: 6e7, s: 1e6, ms: 1e3 };
  const parts = [...(text || '').matchAll(/([\d.]+)(ms|h|m|s)/g)];
  return parts.length ? parts.reduce((sum, p) => sum + p[1] * units[p[2]], 0) : NaN;
};

const add = (tag, text, className) => {
  const e = document.createElement(tag);
  e.textContent = text || '';
  if (className) e.className = className;
  state.append(e);
  return e;
};

function show(now) {
  state.replaceChildren();
  state.hidden = !now;
  if (!now) return;
  const steps = now.plan?.steps || [], at = steps.findIndex(s => s.name === now.step);
  const rest = at < 0 ? NaN : steps.slice(at).reduce((sum, s) => sum + lengthOf(s.duration), -now.inStep); // NaN: a step has no duration
  const parts = [clock(now.elapsed)];
  const planned = rest >= 0 && now.phase !== 'drain' ? now.elapsed + rest : 0;
  if (planned) parts[0] += ' of ' + clock(planned) + ', ' + clock(rest) + ' left';
  if (steps.length > 1) parts.push('step ' + (at + 1) + ' of ' + steps.length + ': ' + now.step);
  if (now.phase === 'warmup') parts.push('warm-up');
  if (now.phase === 'drain') parts.push('drain: no more sends, the last messages are awaited');
  add('p', parts.join(' · '), 'progress');
  if (planned) Object.assign(add('progress'), { max: planned, value: now.elapsed, ariaLabel: 'Elapsed part of the planned time' });
  if (now.outage) {
    const p = add('p', '', 'verdict bad');
    p.append(Object.assign(document.createElement('strong'), { textContent: 'Outage for ' + (now.outage / 1e6).toFixed(1) + ' s' }),
      Object.assign(document.createElement('span'), { textContent: now.down ? now.down + (now.down === 1 ? ' worker' : ' workers') + ' not connected' : 'all workers are connected again, no message has come yet' }));
  }
  if (now.pending?.length) add('p', 'Thresholds without a value yet: ' + now.pending.join(', '), 'note');
}

async function follow(version) {
  let failures = 0;
  while (version !== 'ended' && failures <= 30) {
    try {
      const answer = await fetch('?after=' + encodeURIComponent(version), { cache: 'no-store' });
      const text = await answer.text();
      if (!answer.ok) throw new Error(text);
      failures = 0;
      if (!text) continue; // nothing newer
      const newer = new DOMParser().parseFromString(text, 'text/html');
      version = newer.querySelector('meta[name=live]').content;
      document.title = newer.title;
      status.textContent = newer.getElementById('live').textContent;
      replace(newer);
      const data = JSON.parse(newer.getElementById('data').textContent);
      show(data.now);
      document.dispatchEvent(new CustomEvent('newer', { detail: data }));
    } catch (error) {
      status.textContent = ++failures > 30 ? 'The run has ended, or cannot be reached: these are its last known figures' : 'Connecting again ...';
      await new Promise(done => setTimeout(done, 1000));
    }
  }
}
show(JSON.parse(document.getElementById('data').textContent).now);
follow(document.querySelector('meta[name=live]').content);
})();
