// Figures and words as people read them.

const kDash = '–';
const kMissing = '—';

/** Decimals, but at least two digits that are not zero. */
function fixed(value, decimals) {
  if (value === null) return kMissing;
  if (value !== 0 && Math.abs(value) < 10 ** (1 - decimals)) return value.toPrecision(2);
  return value.toFixed(decimals);
}

const milliseconds = (value) => fixed(value, 3);

function rate(value) {
  if (value === null) return kMissing;
  return fixed(value, value >= 100 ? 1 : value >= 10 ? 2 : 3);
}

const percent = (fraction) => (fraction === null ? kMissing : `${fixed(100 * fraction, 1)} %`);

function errorText(value) {
  return value === null ? kMissing : value === 0 ? '0' : value.toExponential(2);
}

/** Decimal units, as the program prints them. */
function bytes(value) {
  if (value === null) return kMissing;
  if (value >= 1e9) return `${(value / 1e9).toFixed(2)} GB`;
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} MB`;
  if (value >= 1e3) return `${(value / 1e3).toFixed(1)} kB`;
  return `${value} B`;
}

const factor = (value) => `${value >= 100 ? value.toFixed(0) : value.toFixed(2)}×`;

function interval(bounds, show) {
  return bounds === null ? kMissing : `${show(bounds[0])} ${kDash} ${show(bounds[1])}`;
}

const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

/** "2026-11-15 04:07 UTC"; what is no such time is shown as it is. */
function timeText(iso) {
  const parts = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?Z$/.exec(iso);
  return parts ? `${parts[1]} ${parts[2]} UTC` : iso;
}

const collator = new Intl.Collator('en', {numeric: true});
