// Rates under the roof that the machine's memory and arithmetic set.

const kSameRoof = 1.1;
const kRoofsDrawn = 4;

/**
 * The roofs of these rows, of those within a tenth the highest: peaks are measured beside each run
 * and differ a little. They differ more between dtypes, and where operands come from a cache.
 */
function roofsOf(rows) {
  const roofs = [];
  const near = (a, b) => a / b < kSameRoof && b / a < kSameRoof;
  const known = rows.filter((row) => row.peak > 0 && row.bandwidth > 0);
  for (const {peak, bandwidth} of [...known].sort((a, b) => b.peak - a.peak)) {
    const drawn = (roof) => near(roof.peak, peak) && near(roof.bandwidth, bandwidth);
    if (!roofs.some(drawn)) roofs.push({peak, bandwidth});
  }
  return roofs;
}

/** Too many to read are cut down to the outermost: by the flat and by the slope. */
function outermost(roofs) {
  if (roofs.length <= kRoofsDrawn) return roofs;
  const most = (of) => roofs.reduce((best, roof) => (of(roof) > of(best) ? roof : best));
  return [...new Set([
    most((roof) => roof.peak), most((roof) => -roof.peak), most((roof) => roof.bandwidth),
    most((roof) => -roof.bandwidth)
  ])];
}

/** The slope up to the ridge in TFLOP/s, then flat. 1 GB/s × 1 FLOP/byte is 0.001 TFLOP/s. */
function roofDataset(roof, {min, max}) {
  const slope = roof.bandwidth / 1000;
  const at = (x) => ({x, y: Math.min(roof.peak, slope * x)});
  const ridge = roof.peak / slope;
  const data = [at(min), ...(ridge > min && ridge < max ? [at(ridge)] : []), at(max)];
  return {
    key: 'roof',
    label: 'roof',
    data,
    showLine: true,
    borderColor: colour('muted'),
    borderWidth: 2,
    pointRadius: 0,
    pointHitRadius: 0
  };
}

/** Texts that lie in the plot and do not touch those before them. */
function readable(texts, {top, bottom}) {
  const kept = [];
  for (const text of texts) {
    const near = (other) => other.align === text.align && Math.abs(other.y - text.y) < 14;
    if (text.y > top + 8 && text.y < bottom && !kept.some(near)) kept.push(text);
  }
  return kept;
}

/** Each roof's figures: the peak above its right end, the bandwidth on its slope. */
function roofTexts(roofs, range) {
  return ({chartArea, scales: {x, y}}) => {
    const {left, right} = chartArea;
    const middle = x.getValueForPixel(left + 44);  // of the left text
    const texts = roofs.flatMap(({peak, bandwidth}) => {
      const slope = bandwidth / 1000;
      const flat = right - x.getPixelForValue(Math.max(range.min, peak / slope));
      const top = y.getPixelForValue(peak) - 5, foot = y.getPixelForValue(slope * middle);
      return [
        flat > 130 && {text: `${rate(peak)} TFLOP/s`, x: right - 6, y: top, align: 'right'},
        slope * middle < peak && {
          text: `${rate(bandwidth)} GB/s`,
          x: left + 8,
          y: foot,
          align: 'left',
          baseline: 'middle'
        },
      ];
    });
    return readable(texts.filter(Boolean), chartArea);
  };
}

function roofNote(roofs) {
  if (roofs.length === 0) return ['The records hold no peaks, so no roof is drawn.'];
  if (roofs.length === 1) return [];
  const cut = roofs.length > kRoofsDrawn ? ' Only the outermost are drawn.' : '';
  return [
    `Roofs differ with the dtype and with where the operands lie: there are ${roofs.length}.${
        cut} ` +
    'Each point is measured against its own, which its tooltip tells.'
  ];
}

function drawRoofline(rows) {
  if (rows.length === 0) return null;
  const roofs = roofsOf(rows);
  const drawn = outermost(roofs);
  const byVariant = [...groupBy(rows, (row) => row.variant)];
  const series = byVariant.map(([name]) => ({key: name, label: name, style: name}));
  const ridges = drawn.map((roof) => roof.peak * 1000 / roof.bandwidth);
  const range = logRange([...rows.map((row) => row.intensity), ...ridges], 2.5);
  const heights = [...rows.map((row) => row.tflops), ...drawn.map((roof) => roof.peak)];
  const points =
      byVariant.map(([name, members], i) => ({
                      ...seriesLook(series[i]),
                      key: name,
                      label: name,
                      data: members.map((row) => ({x: row.intensity, y: row.tflops, row})),
                    }));
  return {
    series,
    notes: roofNote(roofs),
    charts: [{
      label: 'Rate against arithmetic intensity',
      texts: roofTexts(drawn, range),
      x: logAxis('Arithmetic intensity (FLOP/byte)', range),
      y: logAxis('TFLOP/s', logRange(heights, 1.8)),
      datasets: [...points, ...drawn.map((roof) => roofDataset(roof, range))],
    }],
  };
}

function rooflinePanel(rows) {
  const placed = rows.filter((row) => row.timed && row.intensity > 0 && row.tflops > 0);
  if (placed.length === 0) {
    return 'The records do not tell the arithmetic intensity of what ran, so there is no roofline.';
  }
  const facets = ['machine', 'pass', 'dtype', 'causal', 'dim'];
  // A machine and a dtype have a roof of their own, so one of each to begin with.
  const choices = Object.fromEntries(facets.map((facet) => [facet, '']));
  for (const facet of ['machine', 'dtype']) {
    choices[facet] = mostFrequent(chosenRows(placed, choices), facet);
  }
  return new Panel({
    id: 'roofline',
    title: 'Roofline',
    rows: placed,
    facets,
    combos: Infinity,
    intro:
        'What memory bandwidth (the slope) and arithmetic (the flat) allow, and what was reached.',
    choices,
    draw: drawRoofline,
  });
}
