// The two long tables: what was timed, and what was only checked.

const kRules = new Map([['pass', 'pass'], ['fail', 'FAIL'], ['not-checked', 'not checked']]);

const ruleText = (row) => (row.failed ? 'FAIL' : kRules.get(row.rule) ?? row.rule);

function ruleBadge(row) {
  const kind = row.failed ? 'fail' : row.rule === 'pass' ? 'pass' : 'none';
  return el('span', {class: `badge ${kind}`}, ruleText(row));
}

/** A failed check without a number had a NaN or an infinity in the wrong place. */
function errorCell(row, value = row.error) {
  return value === null && row.failed ? 'not finite' : errorText(value);
}

function statusCell(row) {
  return row.reason && row.timed ? `${row.status}: ${row.reason}` : row.status;
}

const figure = (title, key, show) => (
    {title, numeric: true, measure: true, value: (row) => row[key], show: (row) => show(row[key])});

const words = (title, key, rest = {}) =>
    ({title, value: (row) => row[key], show: (row) => row[key], ...rest});

function leadingColumns(settings, severalMachines) {
  return [
    words('Problem', 'problem', {show: (row) => el('code', {}, row.problem)}),
    words('Pass', 'pass'),
    words(
        'Implementation', 'implementation', {show: (row) => el('strong', {}, row.implementation)}),
    ...settings.map(({key, title}) => words(title, key)),
    ...(severalMachines ? [words('Machine', 'machineLabel')] : []),
  ];
}

function resultColumns(settings, severalMachines) {
  return [
    ...leadingColumns(settings, severalMachines),
    figure('Median (ms)', 'ms', milliseconds),
    {
      title: '95 % interval',
      numeric: true,
      measure: true,
      value: (row) => row.interval?.[0] ?? null,
      show: (row) => interval(row.interval, milliseconds)
    },
    figure('Min', 'min', milliseconds),
    figure('Mean', 'mean', milliseconds),
    figure('Max', 'max', milliseconds),
    figure('TFLOP/s', 'tflops', rate),
    figure('Of roofline', 'roofline', percent),
    figure('Memory', 'memory', bytes),
    {
      title: 'Max error',
      numeric: true,
      measure: true,
      value: (row) => row.error,
      show: (row) => errorCell(row)
    },
    {
      title: 'Rule',
      value: (row) => row.rule,
      show: (row) => (row.timed || row.failed ? ruleBadge(row) : kMissing)
    },
    words('Status', 'status', {class: 'status', show: statusCell}),
    words('Plan', 'plan', {class: 'plan'}),
  ];
}

/** The tensor that came closest to its bound, or broke it. */
function tightest(row) {
  let worst = null;
  for (const [name, tensor] of Object.entries(objectOf(row.record.error))) {
    const {max, bound, rule} = objectOf(tensor);
    if (rule === undefined) continue;
    const share = numberOf(max) === null ? Infinity : numberOf(bound) > 0 ? max / bound : 0;
    if (worst === null || share > worst.share) worst = {name, share};
  }
  return worst;
}

function tightestText(row) {
  const worst = row.tightest;
  if (worst === null) return kMissing;
  const share = worst.share === Infinity ? 'not finite' :
      worst.share > 10                   ? factor(worst.share) :
                                           percent(worst.share);
  return `${worst.name}, ${share}`;
}

function accuracyColumns(severalMachines) {
  return [
    ...leadingColumns([], severalMachines),
    {
      title: 'Max error',
      numeric: true,
      measure: true,
      value: (row) => row.error,
      show: (row) => errorCell(row)
    },
    {
      title: 'Mean error',
      numeric: true,
      measure: true,
      value: (row) => row.meanError,
      show: (row) => errorCell(row, row.meanError)
    },
    {
      title: 'Closest to its bound',
      measure: true,
      value: (row) => row.tightest?.share ?? null,
      show: tightestText
    },
    {title: 'Rule', value: (row) => row.rule, show: ruleBadge},
    words('Status', 'status', {
      class: 'status',
      show: (row) => (row.reason ? `${row.status}: ${row.reason}` : row.status)
    }),
    words('Inputs', 'inputs', {class: 'plan'}),
  ];
}

const kOutcomes = [
  ['', 'any', () => true],
  ['ok', 'ok', (row) => row.status === 'ok' && !row.failed],
  ['failed', 'failed', (row) => row.failed],
  ['idle', 'did not run', (row) => row.idle],
];

function searchText(row) {
  return [
    row.problem, row.pass, row.variant, row.machineLabel, row.rule, row.status, row.reason,
    row.plan, row.commit, row.features
  ].join(' ')
      .toLowerCase();
}

/** Choosers and a search box above a table. Every word of the search must be in a row. */
function filterBar(table) {
  const rows = table.rows;
  const chosen = {search: '', implementation: '', pass: '', outcome: ''};
  const found = el('span', {class: 'found', role: 'status'});
  const apply = () => {
    const searched = chosen.search.toLowerCase().split(/\s+/).filter(Boolean);
    const outcome = kOutcomes.find(([key]) => key === chosen.outcome)[2];
    table.filter(
        (row) => (!chosen.implementation || row.implementation === chosen.implementation) &&
            (!chosen.pass || row.pass === chosen.pass) && outcome(row) &&
            searched.every((word) => searchText(row).includes(word)));
    found.textContent = `${table.shown.length} of ${count(rows.length, 'row')}`;
  };
  const choose = (key) => (value) => {
    chosen[key] = value;
    apply();
  };
  const among = (title, key) => {
    const values = distinct(rows, (row) => row[key]).sort(collator.compare);
    if (values.length < 2) return null;
    return chooser(title, [['', 'any'], ...values.map((value) => [value, value])], '', choose(key));
  };
  const search = el('input', {
    type: 'search',
    placeholder: 'words, all of them',
    spellcheck: 'false',
    oninput: () => choose('search')(search.value)
  });
  apply();
  return el(
      'div', {class: 'bar controls'},
      el('label', {class: 'chooser search'}, el('span', {}, 'Filter'), search),
      among('Implementation', 'implementation'), among('Pass', 'pass'),
      chooser('Result', kOutcomes.map(([key, text]) => [key, text]), '', choose('outcome')), found);
}

function renderTable(section, rows, columns) {
  document.getElementById(section).hidden = rows.length === 0;
  if (rows.length === 0) return;
  const idle = (row) => `${row.status}: ${row.reason || 'no reason given'}`;
  const why = (row) =>
      (row.timed || (row.accuracyOnly && (row.tightest || row.error !== null)) ? null : idle(row));
  const rowClass = (row) => (row.failed ? 'failed' : row.idle ? 'idle' : '');
  const title = document.getElementById(`${section}-title`).textContent;
  const table = new DataTable({label: title, columns, rows, why, rowClass});
  bodyOf(section).replaceChildren(filterBar(table), table.node);
}

function renderResults(rows, machines) {
  const settings =
      kSettings.filter((setting) => machines.some((machine) => machine.settings.includes(setting)));
  renderTable(
      'results', rows.filter((row) => !row.accuracyOnly),
      resultColumns(settings, machines.length > 1));
  const checks = rows.filter((row) => row.accuracyOnly);
  for (const row of checks) {
    row.tightest = tightest(row);
    row.inputs = pairsText(row.record.inputs);
  }
  renderTable('accuracy', checks, accuracyColumns(machines.length > 1));
}
