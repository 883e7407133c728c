// Everything that is known of a point, beside it.

function describe(row) {
  const facts = [
    ['Problem', row.problem],
    ['Pass', row.pass],
    [
      'Median',
      `${milliseconds(row.ms)} ms${row.samples ? ` of ${count(row.samples, 'sample')}` : ''}`
    ],
    ['95 % interval', row.interval && `${interval(row.interval, milliseconds)} ms`],
    [
      'Min, mean, max',
      row.min !== null && `${[row.min, row.mean, row.max].map(milliseconds).join(', ')} ms`
    ],
    ['Rate', row.tflops !== null && `${rate(row.tflops)} TFLOP/s`],
    [
      'Of roofline',
      row.roofline !== null && `${percent(row.roofline)}${row.bound ? ` (${row.bound}-bound)` : ''}`
    ],
    ['Roof', row.attainable !== null && `${rate(row.attainable)} TFLOP/s`],
    ['Intensity', row.intensity !== null && `${rate(row.intensity)} FLOP/byte`],
    ['Memory', row.memory !== null && bytes(row.memory)],
    ['Max error', row.error !== null && errorText(row.error)],
    ['Rule', [ruleText(row), row.scope].filter(Boolean).join(', ')],
    ['Status', row.status !== 'ok' && [row.status, row.reason].filter(Boolean).join(': ')],
    ['Plan', row.plan],
    ['Machine', row.machineLabel],
    ['Threads', row.threads],
    ['Commit', row.commit],
    ['Time', timeText(row.time)],
  ];
  return facts.filter(([, value]) => value);
}

/** Beside the point, and within the window whatever its size. */
function placeTooltip(box, x, y) {
  const margin = 8;
  const {width, height} = box.getBoundingClientRect();
  const left = x + 16 + width + margin < window.innerWidth ? x + 16 : x - 16 - width;
  const top = y - height / 2;
  box.style.left = `${Math.max(margin, Math.min(left, window.innerWidth - width - margin))}px`;
  box.style.top = `${Math.max(margin, Math.min(top, window.innerHeight - height - margin))}px`;
}

/** Called by Chart.js. Draws in the document, where text wraps and nothing clips it. */
function showTooltip({chart, tooltip}) {
  const box = document.getElementById('tooltip');
  const rows = (tooltip.dataPoints ?? []).map((point) => point.raw.row).filter(Boolean);
  box.hidden = tooltip.opacity === 0 || rows.length === 0;
  if (box.hidden) return;
  const row = rows[0];
  box.replaceChildren(
      el('strong', {}, row.variant),
      el('dl', {}, describe(row).map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])),
      ...(rows.length > 1 ? [el('p', {}, `and ${rows.length - 1} more at this place`)] : []));
  const area = chart.canvas.getBoundingClientRect();
  placeTooltip(box, area.left + tooltip.caretX, area.top + tooltip.caretY);
}
