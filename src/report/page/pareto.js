// Error against speed, for one problem at a time: what is it that speed costs?

/** Points that no other beats in both: from the fastest on, each more accurate than all before. */
function paretoFront(points) {
  const front = [];
  for (const point of [...points].sort((a, b) => b.x - a.x || a.y - b.y)) {
    if (front.length === 0 || point.y < front.at(-1).y) front.push(point);
  }
  return front;
}

/** A problem with its pass, if its text does not say that already, and its machine. */
function contestName(row, severalMachines) {
  const parts = [row.problem];
  if (!row.problem.endsWith('bwd')) parts.push(row.pass);
  if (severalMachines) parts.push(row.machineLabel);
  return parts.filter(Boolean).join(' · ');
}

/** Per problem, the contenders of which both the rate and the error are known. */
function paretoContests(rows, severalMachines) {
  const usable = rows.filter((row) => row.timed && row.tflops > 0 && row.error !== null);
  for (const row of usable) row.contest = contestName(row, severalMachines);
  const contests = new Map();
  for (const [name, same] of groupBy(usable, (row) => row.contest)) {
    const contenders = [...groupBy(same, (row) => row.variant).values()].map(latest);
    if (contenders.length > 1) contests.set(name, contenders);
  }
  return contests;
}

function frontDataset(points) {
  return {
    key: 'front',
    label: 'Pareto front',
    data: paretoFront(points).map(({x, y}) => ({x, y})),
    showLine: true,
    stepped: 'after',
    borderColor: colour('muted'),
    borderWidth: 1.5,
    borderDash: [4, 4],
    pointRadius: 0,
    pointHitRadius: 0,
  };
}

function pointDataset(point, series) {
  const {key, label} = series;
  return {...seriesLook(series), key, label, data: [point], pointRadius: 6};
}

function drawPareto(contenders) {
  const errors = contenders.map((row) => row.error).filter((error) => error > 0);
  // A logarithmic axis has no zero: results without any error stand at its lower end.
  const floor = errors.length > 0 ? Math.min(...errors) / 10 : 1e-9;
  const exact = contenders.some((row) => row.error === 0);
  const points = contenders.map((row) => ({x: row.tflops, y: row.error || floor, row}));
  const series =
      contenders.map((row) => ({key: row.variant, label: row.variant, style: row.variant}));
  const sound = points.filter(({row}) => !row.failed);
  const corner = (chart) => {
    const {right, bottom} = chart.chartArea;
    return [{text: 'better ↘', x: right - 8, y: bottom - 8, align: 'right'}];
  };
  const notes = [];
  if (exact) notes.push('Results without any error are drawn at the lower end.');
  if (sound.length < points.length)
    notes.push('A red ring marks a result that failed its check; it is not part of the front.');
  return {
    series,
    notes,
    charts: [{
      label: 'Max error against rate',
      texts: corner,
      x: logAxis('TFLOP/s, more is better', logRange(points.map((point) => point.x), 1.6)),
      y: logAxis('Max error, less is better', logRange(points.map((point) => point.y), 2.5)),
      datasets: [...points.map((point, i) => pointDataset(point, series[i])), frontDataset(sound)],
    }],
  };
}

function paretoPanel(rows, severalMachines) {
  const contests = paretoContests(rows, severalMachines);
  if (contests.size === 0) {
    return 'No problem has two results with a time and an error, so none is plotted against speed.';
  }
  // The first of those with the most contenders has the most to tell.
  const names = [...contests.keys()];
  const start = names.reduce(
      (best, name) => (contests.get(name).length > contests.get(best).length ? name : best));
  return new Panel({
    id: 'pareto',
    title: 'Error against speed',
    noAll: true,
    intro: 'One problem at a time. The dashed line joins what nothing else beats in both.',
    rows: [...contests.values()].flat(),
    facets: ['contest'],
    choices: {contest: start},
    combos: 1,
    draw: drawPareto,
  });
}
