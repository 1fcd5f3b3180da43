/* Takes tables and commands out of the page: CSV, JSON, and the clipboard. Opens folded tables, and marks the part in view in the contents. */
(() => {
'use strict';

document.documentElement.classList.add('scripted');

/* value reads a cell: a number without separators of thousands, null for an unknown value, or else the text. */
function value(text) {
  if (['', '-', 'not measured'].includes(text)) return null;
  if (!/^-?(0|[1-9]\d{0,2}(,\d{3})+|[1-9]\d*)(\.\d+)?$/.test(text)) return text;
  const number = Number(text.replaceAll(',', ''));
  return Math.abs(number) <= Number.MAX_SAFE_INTEGER ? number : text;
}

/* read returns the names of the columns of a table, each once, and its rows. */
function read(table) {
  const head = [...table.tHead.rows], over = [];
  if (head.length > 1) for (const cell of head[0].cells) over.push(...Array(cell.colSpan).fill(cell.textContent && cell.textContent.toLowerCase() + ': '));
  const names = [];
  [...head.at(-1).cells].forEach((cell, i) => {
    const name = (over[i] || '') + (cell.textContent || (i ? 'value' : 'name'));
    let unique = name;
    for (let n = 2; names.includes(unique); n++) unique = name + ' ' + n;
    names.push(unique);
  });
  return { names, rows: [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => value(cell.textContent.trim()))) };
}

/* field writes a value for CSV; a spreadsheet must take no text for a formula. */
function field(v) {
  if (v === null) return '';
  const text = typeof v === 'string' && /^[=+\-@\t\r]/.test(v) ? "'" + v : String(v);
  return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

const csv = ({ names, rows }) => [names, ...rows].map(row => row.map(field).join(',') + '\r\n').join('');
const json = ({ names, rows }) => JSON.stringify(rows.map(row => Object.fromEntries(row.map((v, i) => [names[i], v]))), null, 1) + '\n';
const forms = { csv: [csv, 'text/csv'], json: [json, 'application/json'] };

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  Object.assign(link, { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

const fileName = (...texts) => texts.join(' ').toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '').slice(0, 80);

/* copy puts a command into the clipboard; where that is not allowed, it selects the command. */
async function copy(button) {
  const code = button.parentElement.querySelector('code');
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(code);
    button.textContent = 'Selected';
  }
  setTimeout(() => { button.textContent = 'Copy'; }, 2000);
}

/* reveal opens the folded table that an address names. */
function reveal(hash) {
  let id;
  try { id = decodeURIComponent(hash.slice(1)); } catch { return; }
  const target = document.getElementById(id);
  if (target instanceof HTMLDetailsElement) target.open = true;
}

document.addEventListener('click', e => {
  const button = e.target.closest('button[data-as],button[data-copy]'), link = e.target.closest('#contents a');
  if (link) reveal(link.hash);
  if (!button) return;
  if ('copy' in button.dataset) { copy(button); return; }
  const region = button.closest('.take').nextElementSibling, [write, type] = forms[button.dataset.as];
  download(fileName(document.querySelector('h1').textContent, region.getAttribute('aria-label')) + '.' + button.dataset.as, type, write(read(region.querySelector('table'))));
});
addEventListener('hashchange', () => reveal(location.hash));
if (location.hash) reveal(location.hash);

/* follow marks the entry of the contents whose part is at the top of the window. */
let waits = false;
function follow() {
  waits = false;
  const links = [...document.querySelectorAll('#contents a')];
  const begun = links.filter(a => { const part = document.getElementById(decodeURIComponent(a.hash.slice(1))); return part && part.getBoundingClientRect().top < innerHeight / 4; });
  const current = scrollY + innerHeight >= document.documentElement.scrollHeight - 2 && scrollY > 0 ? links.at(-1) : begun.at(-1) || links[0];
  for (const a of links) {
    if (a !== current) { a.removeAttribute('aria-current'); continue; }
    if (a.hasAttribute('aria-current')) continue;
    a.setAttribute('aria-current', 'true');
    const nav = a.parentElement;
    nav.scrollLeft = a.offsetLeft - nav.offsetLeft - (nav.clientWidth - a.offsetWidth) / 2;
  }
}
addEventListener('scroll', () => { if (!waits) { waits = true; requestAnimationFrame(follow); } }, { passive: true });
document.addEventListener('newer', follow); // of a live page
follow();
})();
