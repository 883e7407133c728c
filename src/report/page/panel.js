// A plot with its choosers and its legend.

const kLinesAtFirst = 10;

/** What problems differ in, beside their implementation. Choosers and lines are made of these. */
const kFacets = {
  machine: {title: 'Machine', of: (row) => row.machineLabel},
  pass: {title: 'Pass', of: (row) => row.pass || 'not given'},
  causal: {title: 'Mask', of: (row) => (row.fields.causal ? 'causal' : 'full')},
  dtype: {title: 'Dtype', of: (row) => textOf(row.fields.dtype)},
  dim: {
    title: 'Head dim',
    of: ({fields: {dim, dim_v: value}}) =>
        (value === undefined || value === dim ? textOf(dim) :
                                                `${textOf(dim)}, values ${textOf(value)}`),
    show: (value) => `d ${value}`
  },
  valueDim: {
    title: 'Value dim',
    of: ({fields: {dim, dim_v: value}}) =>
        (value === undefined || value === dim ? 'as head dim' : textOf(value))
  },
  length: {
    title: 'Length',
    of: ({fields: {seqlen_q: q, seqlen_k: k}}) =>
        (k === undefined || q === k ? textOf(q) : `${textOf(q)} × ${textOf(k)}`),
    show: (value) => `s ${value}`
  },
  queries: {
    title: 'Queries',
    of: ({fields: {seqlen_q: q, seqlen_k: k}}) =>
        (k === undefined || q === k ? 'as keys' : textOf(q))
  },
  features: {title: 'Features', of: (row) => row.features},
  batch: {title: 'Batch', of: (row) => textOf(row.fields.batch), show: (value) => `b ${value}`},
  heads: {
    title: 'Heads',
    of: ({fields: {heads, heads_k: kv}}) =>
        (kv === undefined || kv === heads ? textOf(heads) :
                                            `${textOf(heads)}, ${textOf(kv)} of keys`),
    show: (value) => `h ${value}`
  },
  contest: {title: 'Problem', of: (row) => row.contest},
};

const facetValues = (rows, facet) => distinct(rows, kFacets[facet].of).sort(collator.compare);
const comboOf = (row, facets) => JSON.stringify(facets.map((facet) => kFacets[facet].of(row)));

function chosenRows(rows, choices) {
  return rows.filter(
      (row) => Object.entries(choices).every(
          ([facet, value]) => value === '' || kFacets[facet].of(row) === value));
}

function mostFrequent(rows, facet) {
  const groups = [...groupBy(rows, kFacets[facet].of)];
  return groups.reduce((most, group) => (group[1].length > most[1].length ? group : most))[0];
}

/** Choices that leave few enough lines to read: facets are settled in order until that is so. */
function readableChoices(rows, facets, combos) {
  const choices = Object.fromEntries(facets.map((facet) => [facet, '']));
  for (const facet of facets) {
    const left = chosenRows(rows, choices);
    const lines = distinct(left, (row) => row.variant + comboOf(row, facets)).length;
    if (lines <= kLinesAtFirst && distinct(left, (row) => comboOf(row, facets)).length <= combos)
      break;
    if (facetValues(left, facet).length > 1) choices[facet] = mostFrequent(left, facet);
  }
  return choices;
}

/**
 * A small picture of a series for the legend, drawn by Chart.js so that it is the same as there.
 */
function legendMark(series) {
  const canvas = el('canvas', {width: 68, height: 32, 'aria-hidden': 'true'});
  const look = seriesLook(series);
  const ctx = canvas.getContext('2d');
  ctx.scale(2, 2);
  ctx.strokeStyle = ctx.fillStyle = look.borderColor;
  ctx.lineWidth = 2;
  if (series.line) {
    ctx.setLineDash(look.borderDash);
    ctx.beginPath();
    ctx.moveTo(1, 8);
    ctx.lineTo(33, 8);
    ctx.stroke();
    ctx.setLineDash([]);
  }
  Chart.helpers.drawPoint(
      ctx, {pointStyle: look.pointStyle, rotation: look.pointRotation, radius: 4.5, borderWidth: 2},
      17, 8);
  return canvas;
}

/**
 * `plot` says what is drawn: {id, title, intro, rows, facets, combos, draw(rows)}, where
 * draw gives {series: [{key, label, style}], charts: [{label, ...for drawChart}], notes} or null.
 */
class Panel {
  constructor(plot) {
    this.plot = plot;
    this.facets = plot.facets.filter((facet) => facetValues(plot.rows, facet).length > 1);
    this.choices = plot.choices ?? readableChoices(plot.rows, this.facets, plot.combos);
    this.hidden = null;
    this.charts = [];
    this.bar =
        el('div', {class: 'bar controls'}, this.facets.map((facet) => this.facetChooser(facet)));
    this.legend = el('div', {class: 'legend', role: 'group', 'aria-label': 'Series of this plot'});
    this.plots = el('div', {class: 'plots'});
    this.notes = el('div', {class: 'notes'});
    this.node =
        el('article', {class: 'panel', id: plot.id}, el('h3', {}, plot.title),
           el('p', {class: 'muted'}, plot.intro), this.bar, this.legend, this.plots, this.notes);
  }

  facetChooser(facet) {
    const values = facetValues(this.plot.rows, facet);
    const options = [['', 'all'], ...values.map((value) => [value, value])];
    return chooser(
        kFacets[facet].title, this.plot.noAll ? options.slice(1) : options, this.choices[facet],
        (value) => {
          this.choices[facet] = value;
          this.hidden = null;
          this.draw();
        });
  }

  /** Draws anew, for other choices or other colours. The canvases must be in the document. */
  draw() {
    this.clear();
    const drawn = this.plot.draw(chosenRows(this.plot.rows, this.choices));
    const series = drawn?.series ?? [];
    this.hidden ??= new Set(series.slice(kLinesAtFirst).map(({key}) => key));
    this.legend.replaceChildren(...series.map((one) => this.legendButton(one)));
    const canvases =
        (drawn?.charts ?? []).map(({label}) => el('canvas', {role: 'img', 'aria-label': label}));
    this.plots.replaceChildren(...canvases.map(
        (canvas, i) =>
            el('figure', {}, el('figcaption', {}, drawn.charts[i].label),
               el('div', {class: 'plot'}, canvas))));
    this.charts = canvases.map((canvas, i) => drawChart(canvas, drawn.charts[i]));
    const crowd = this.hidden.size > 0 && series.length > kLinesAtFirst ?
        [`${series.length} series; the legend switches on those that are not drawn.`] :
        [];
    const notes = drawn ? [...crowd, ...drawn.notes] :
                          ['No record has all of these at once; choose differently.'];
    this.notes.replaceChildren(...notes.map((note) => el('p', {}, note)));
    this.showVisible();
  }

  clear() {
    for (const chart of this.charts) chart.destroy();
    this.charts = [];
  }

  legendButton(series) {
    const button =
        el('button', {
          type: 'button',
          'aria-pressed': String(!this.hidden.has(series.key)),
          onclick: () => {
            if (!this.hidden.delete(series.key)) this.hidden.add(series.key);
            button.setAttribute('aria-pressed', String(!this.hidden.has(series.key)));
            this.showVisible();
          }
        },
           legendMark(series), series.label);
    return button;
  }

  showVisible() {
    for (const chart of this.charts) {
      chart.data.datasets.forEach(
          (dataset, i) => chart.setDatasetVisibility(i, !this.hidden.has(dataset.key)));
      chart.update('none');
    }
  }
}
