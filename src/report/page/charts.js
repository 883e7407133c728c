// What all plots share: colours and shapes, logarithmic axes, and what is drawn beside the points.

const kColours = 7;
const kShapes = [
  {pointStyle: 'circle'},
  {pointStyle: 'rect'},
  {pointStyle: 'triangle'},
  {pointStyle: 'rectRot'},
  {pointStyle: 'triangle', rotation: 180},
  {pointStyle: 'cross'},
  {pointStyle: 'star'},
  {pointStyle: 'crossRot'},
];
const kDashes = [[], [7, 4], [2, 3], [10, 3, 2, 3]];

const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Every contender keeps its colour and shape through the whole page. */
const styles = new Map();
function styleOf(name) {
  if (!styles.has(name)) {
    styles.set(
        name, {colour: styles.size % kColours + 1, ...kShapes[styles.size % kShapes.length]});
  }
  return styles.get(name);
}

function seriesLook(series) {
  const {colour: index, pointStyle, rotation = 0} = styleOf(series.style);
  const paint = colour(`series-${index}`);
  return {
    borderColor: paint,
    backgroundColor: paint,
    pointStyle,
    pointRotation: rotation,
    borderWidth: 2,
    pointBorderWidth: 2,
    pointRadius: 4.5,
    pointHoverRadius: 7,
    pointHitRadius: 10,
    borderDash: kDashes[(series.dash ?? 0) % kDashes.length],
  };
}

/** A range with some air around the values, for a logarithmic axis. */
function logRange(values, air = 1.35) {
  const positive = values.filter((value) => value > 0);
  return {min: Math.min(...positive) / air, max: Math.max(...positive) * air};
}

const kTickSteps = [
  [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9],
  [1, 1.5, 2, 3, 5, 7],
  [1, 2, 5],
  [1, 3],
  [1],
];

/** Round values in a range: the finest steps of which there are no more than `room`. */
function logTicks(min, max, room) {
  const powers = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); ++power)
    powers.push(power);
  const ticks = (steps) =>
      powers.flatMap((power) => steps.map((step) => Number(`${step}e${power}`)))
          .filter((tick) => tick >= min && tick <= max);
  const decades = ticks([1]);
  const every = Math.max(1, Math.ceil(decades.length / room));
  return kTickSteps.map(ticks).find((some) => some.length <= room) ??
      decades.filter((_, i) => i % every === 0);
}

/** Of sizes that were measured, those that can be labelled without touching. */
function sizeTicks(sizes, width) {
  const sorted = [...sizes].sort((a, b) => a - b);
  const span = Math.log(sorted.at(-1) / sorted[0]) || 1;
  const kept = [];
  for (const size of sorted) {
    const gap = kept.length === 0 ? Infinity : Math.log(size / kept.at(-1)) / span * width;
    if (gap > 7 * String(size).length + 10) kept.push(size);
  }
  return kept;
}

function tickText(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  const rounded = Number(value.toPrecision(3));
  return size >= 1e6 || size < 1e-4 ? rounded.toExponential().replace('e+', 'e') : String(rounded);
}

/** A logarithmic axis. `sizes`, where given, are the values that get a tick. */
function logAxis(title, {min, max}, sizes = null) {
  return {
    type: 'logarithmic',
    min,
    max,
    title: {display: true, text: title, color: colour('muted')},
    grid: {color: colour('grid'), borderColor: colour('line'), tickLength: 0},
    ticks: {
      color: colour('muted'),
      callback: sizes ? String : tickText,
      autoSkip: false,
      maxRotation: 0,
      padding: 6
    },
    afterBuildTicks: (axis) => {
      const {width, height} = axis.chart;
      const room = axis.isHorizontal() ? (width - 90) / 50 : (height - 60) / 32;
      const values = sizes ? sizeTicks(sizes, width - 90) : logTicks(min, max, room);
      axis.ticks = values.map((value) => ({value}));
    },
  };
}

function eachPoint(chart, draw) {
  chart.data.datasets.forEach((dataset, i) => {
    if (!chart.isDatasetVisible(i)) return;
    chart.getDatasetMeta(i).data.forEach((point, j) => draw(point, dataset.data[j], dataset));
  });
}

/** Confidence intervals as thin bars, and a ring around results that failed their check. */
const pointMarks = {
  id: 'pointMarks',
  beforeDatasetsDraw(chart) {
    const {ctx, scales: {y}} = chart;
    ctx.save();
    eachPoint(chart, (point, {lo, hi}, dataset) => {
      if (!lo || !hi) return;
      ctx.strokeStyle = dataset.borderColor;
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      const ends = [lo, hi].map((value) => y.getPixelForValue(value));
      ctx.moveTo(point.x, ends[0]);
      ctx.lineTo(point.x, ends[1]);
      for (const end of ends) {
        ctx.moveTo(point.x - 4, end);
        ctx.lineTo(point.x + 4, end);
      }
      ctx.stroke();
    });
    ctx.restore();
  },
  afterDatasetsDraw(chart) {
    const {ctx} = chart;
    ctx.save();
    ctx.strokeStyle = colour('bad');
    ctx.lineWidth = 2.5;
    eachPoint(chart, (point, {row}) => {
      if (!row?.failed) return;
      ctx.beginPath();
      ctx.arc(point.x, point.y, 10, 0, 2 * Math.PI);
      ctx.stroke();
    });
    ctx.restore();
  },
};

/** Texts at places in the plot: `options.texts(chart)` gives {text, x, y, align, baseline}. */
const annotations = {
  id: 'annotations',
  afterDatasetsDraw(chart, _, options) {
    if (!options.texts) return;
    const {ctx} = chart;
    ctx.save();
    ctx.font = `600 12px ${Chart.defaults.font.family}`;
    ctx.fillStyle = colour('muted');
    ctx.strokeStyle = colour('ground');  // around the letters, where a line runs through them
    ctx.lineWidth = 5;
    ctx.lineJoin = 'round';
    for (const {text, x, y, align = 'left', baseline = 'bottom'} of options.texts(chart)) {
      ctx.textAlign = align;
      ctx.textBaseline = baseline;
      ctx.strokeText(text, x, y);
      ctx.fillText(text, x, y);
    }
    ctx.restore();
  },
};

/** Draws into a canvas. `datasets` carry a `key` that the legend switches. */
function drawChart(canvas, {datasets, x, y, texts = null}) {
  return new Chart(canvas, {
    type: 'scatter',
    data: {datasets},
    plugins: [pointMarks, annotations],
    options: {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      layout: {padding: {right: 12, top: 8}},
      interaction: {mode: 'nearest', intersect: true},
      scales: {x, y},
      plugins: {
        legend: {display: false},
        tooltip: {enabled: false, external: showTooltip},
        annotations: {texts}
      },
    },
  });
}

function prepareCharts() {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 12;
  document.getElementById('chart-version').textContent = ` ${Chart.version}`;
}
