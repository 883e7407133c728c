// Time and rate against a size of the problem: the sequence length, or the head dim.

const kLinePlots = [
  {
    id: 'against-length',
    title: 'Against sequence length',
    axis: 'Sequence length (keys)',
    unit: 'length',
    x: (row) => numberOf(row.fields.seqlen_k ?? row.fields.seqlen_q),
    facets: ['machine', 'pass', 'dim', 'dtype', 'causal', 'features', 'queries', 'batch', 'heads'],
    missing:
        'No problem was timed at two or more sequence lengths, so there is no plot against length.',
  },
  {
    id: 'against-dim',
    title: 'Against head dim',
    axis: 'Head dim',
    unit: 'head dim',
    x: (row) => numberOf(row.fields.dim),
    facets:
        ['machine', 'pass', 'length', 'dtype', 'causal', 'features', 'valueDim', 'batch', 'heads'],
    missing: 'No problem was timed at two or more head dims, so there is no plot against head dim.',
  },
];

/**
 * Sweeps often hold batch × length or heads × dim constant. Where a facet follows from the size
 * and the rest, it does not part the lines.
 */
function freeFacets(rows, facets, x) {
  let free = facets;
  for (const facet of ['batch', 'heads']) {
    const rest = free.filter((other) => other !== facet);
    const groups = groupBy(rows, (row) => `${row.variant} ${x(row)} ${comboOf(row, rest)}`);
    if ([...groups.values()].every((group) => facetValues(group, facet).length === 1)) free = rest;
  }
  return free;
}

/** Rows that are part of a sweep: the same but for the size, at two sizes at least. */
function sweptRows(rows, facets, x) {
  const groups = [...groupBy(rows, (row) => comboOf(row, facets)).values()];
  return groups.filter((group) => new Set(group.map(x)).size > 1).flat();
}

function pointsOf(rows, x, y, bounds) {
  const sizes = [...groupBy(rows, x)].sort((a, b) => a[0] - b[0]);
  return sizes
      .map(([size, same]) => {
        const row = latest(same);
        const [lo, hi] = bounds(row) ?? [null, null];
        return {x: size, y: y(row), lo, hi, row};
      })
      .filter((point) => point.y > 0);
}

const rateBounds = (row) =>
    row.interval && [...row.interval].reverse().map((ms) => row.tflops * row.ms / ms);

/** The lines for these rows: one for each contender and each combination of what still differs. */
function linesOf(rows, facets) {
  const varying = facets.filter((facet) => facetValues(rows, facet).length > 1);
  const combos = distinct(rows, (row) => comboOf(row, varying));
  const label = (row) => [row.variant, ...varying.map((facet) => {
                           const value = kFacets[facet].of(row);
                           return kFacets[facet].show?.(value) ?? value;
                         })].join(' · ');
  return [...groupBy(rows, (row) => JSON.stringify([row.variant, comboOf(row, varying)]))].map(
      ([key, members]) => ({
        key,
        members,
        line: true,
        label: label(members[0]),
        style: members[0].variant,
        dash: combos.indexOf(comboOf(members[0], varying)),
      }));
}

function lineChart(plot, title, series, measure) {
  const lines = series.map(
      (one) => ({...one, points: pointsOf(one.members, plot.x, measure.y, measure.bounds)}));
  const points = lines.flatMap((line) => line.points);
  if (points.length === 0) return null;
  const xs = points.map((point) => point.x);
  const ys = points.flatMap(({y, lo, hi}) => [y, lo ?? y, hi ?? y]);
  return {
    label: `${title} against ${plot.unit}`,
    x: logAxis(plot.axis, logRange(xs, 1.12), new Set(xs)),
    y: logAxis(measure.axis, logRange(ys)),
    datasets: lines.map((line) => ({
                          ...seriesLook(line),
                          key: line.key,
                          label: line.label,
                          data: line.points,
                          showLine: true
                        })),
  };
}

/** Where a line ends because the implementation could not go on. */
function gaps(idle, plot) {
  return [...groupBy(idle, (row) => `${row.variant} ${row.status}`).values()].map((rows) => {
    const sizes = distinct(rows, plot.x).sort((a, b) => a - b);
    return `Not drawn: ${rows[0].variant} at ${plot.unit} ${sizes.join(', ')} (${rows[0].status}).`;
  });
}

function drawLines(plot, rows, idle, facets) {
  if (rows.length === 0) return null;
  const combos = new Set(rows.map((row) => comboOf(row, facets)));
  const series = linesOf(rows, facets);
  const charts = [
    lineChart(
        plot, 'Time', series,
        {axis: 'Median time (ms)', y: (row) => row.ms, bounds: (row) => row.interval}),
    lineChart(plot, 'Rate', series, {axis: 'TFLOP/s', y: (row) => row.tflops, bounds: rateBounds}),
  ].filter(Boolean);
  const notes = gaps(idle.filter((row) => combos.has(comboOf(row, facets))), plot);
  if (rows.some((row) => row.failed))
    notes.push('A red ring marks a result that failed its check.');
  return {series, charts, notes};
}

/** The panel, or the sentence why there is none. */
function linePanel(plot, rows) {
  const sized = rows.filter((row) => !row.accuracyOnly && plot.x(row) > 0);
  const timed = sized.filter((row) => row.timed);
  const facets = freeFacets(timed, plot.facets, plot.x);
  const swept = sweptRows(timed, facets, plot.x);
  if (swept.length === 0) return plot.missing;
  const idle = sized.filter((row) => !row.timed);
  const lines = linesOf(swept, facets).map((line) => line.members);
  const along =
      plot.facets.filter((facet) => lines.some((line) => facetValues(line, facet).length > 1))
          .map((facet) => kFacets[facet].title.toLowerCase())
          .join(' and ');
  return new Panel({
    ...plot,
    rows: swept,
    facets,
    combos: 2,
    intro: [
      'Median of each measurement',
      swept.some((row) => row.interval) && '; the bars are its 95 % interval', '.',
      along && ` Along a line, ${along} may change too.`
    ].filter(Boolean)
               .join(''),
    draw: (chosen) => drawLines(plot, chosen, idle, facets),
  });
}
