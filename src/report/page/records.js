// From records, in which anything may be missing or of the wrong kind, to rows that can be relied
// on.

function textOf(value) {
  if (value === null || value === undefined) return '';
  // Digits that JavaScript could not read must not look like those of the record.
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER)
    return `≈ ${value.toExponential(3)}`;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Of a machine; older records have the name alone. */
const gpuName = (machine) => textOf(machine.gpu?.name ?? machine.gpu);

const numberOf = (value) => (typeof value === 'number' && Number.isFinite(value) ? value : null);

const objectOf = (value) =>
    value !== null && typeof value === 'object' && !Array.isArray(value) ? value : {};

function boundsOf(value) {
  const bounds = Array.isArray(value) && value.length === 2 ? value.map(numberOf) : [null];
  return bounds.includes(null) ? null : bounds;
}

/** "key_block 128, threads 2": an object on one line, with those within it. */
function pairsText(value) {
  return Object.entries(objectOf(value))
      .map(([name, part]) => `${name} ${pairsText(part) || textOf(part)}`)
      .join(', ');
}

/** The lines as they were embedded, and what they say. */
function readRecords() {
  const text = document.getElementById('records').textContent;
  const lines = text.split('\n').slice(1, -1).map((line) => line.replace(/,$/, ''));
  return {lines, records: JSON.parse(text).map(objectOf)};
}

/** Everything of a problem that is not its size, in words. */
function featuresOf(fields) {
  const features = [];
  const window = Array.isArray(fields.window) ? fields.window : [];
  if (window.some((side) => numberOf(side) !== null && side >= 0)) {
    features.push(`window ${window.map((side) => (side < 0 ? '∞' : textOf(side))).join(':')}`);
  }
  if (fields.softcap) features.push(`softcap ${textOf(fields.softcap)}`);
  if (fields.alibi) features.push('ALiBi');
  if (fields.sinks) features.push('sinks');
  if (fields.bias) features.push(`bias ${textOf(fields.bias)}`);
  if (fields.dropout) features.push(`dropout ${textOf(fields.dropout)}`);
  if (fields.layout && fields.layout !== 'separate') features.push(textOf(fields.layout));
  if (fields.lengths_q) features.push(`lengths ${textOf(fields.lengths_q)}`);
  const usual = 1 / Math.sqrt(fields.dim);
  if (numberOf(fields.scale) !== null && Math.abs(fields.scale / usual - 1) > 1e-4) {
    features.push(`scale ${fields.scale.toPrecision(3)}`);
  }
  return features.join(', ') || 'none';
}

function measuresOf(record) {
  const ms = objectOf(record.ms);
  const roof = objectOf(record.roof);
  const memory = objectOf(record.memory);
  const error = objectOf(record.error);
  return {
    ms: numberOf(ms.p50),
    interval: boundsOf(ms.ci95),
    min: numberOf(ms.min),
    mean: numberOf(ms.mean),
    max: numberOf(ms.max),
    samples: Array.isArray(record.samples) ? record.samples.length : null,
    tflops: numberOf(objectOf(record.tflops).p50),
    gbps: numberOf(record.gbps),
    roofline: numberOf(record.roofline),
    intensity: numberOf(roof.intensity),
    attainable: numberOf(roof.tflops),
    bound: textOf(roof.bound),
    peak: numberOf(roof.peak_tflops),
    bandwidth: numberOf(roof.bandwidth_gbps),
    memory: numberOf(memory.peak),
    workspace: numberOf(memory.workspace),
    error: numberOf(error.max),
    meanError: numberOf(error.mean),
    rule: textOf(error.rule) || 'not-checked',
    scope: textOf(error.scope),
  };
}

/** What options are that were left to the implementation. */
const kAutomatic = 'automatic';

/** How a GPU was asked to compute, and which; records of the CPU say nothing of it. */
function modeOf(record) {
  const options = objectOf(record.options);
  const given = record.options !== undefined;
  const device = textOf(record.device);
  return {
    gpu: device === 'cpu' ? '' : device,
    tf32: textOf(options.tf32),
    deterministic: textOf(options.deterministic),
    reference: textOf(options.reference),
    cut: given ? textOf(options.variant) || kAutomatic : '',
  };
}

function makeRow(record, index) {
  const machine = objectOf(record.machine);
  const fields = objectOf(record.fields);
  const row = {
    record,
    index,
    fields,
    ...measuresOf(record),
    ...modeOf(record),
    implementation: textOf(record.implementation) || '(unnamed)',
    problem: textOf(record.problem) || '(no problem given)',
    pass: textOf(record.pass),
    status: textOf(record.status) || '(no status)',
    reason: textOf(record.reason),
    features: featuresOf(fields),
    plan: pairsText(record.plan),
    threads: textOf(machine.threads),
    isa: textOf(machine.isa),
    cache: textOf(objectOf(record.sampling).cache),
    commit: textOf(record.commit),
    version: textOf(record.version),
    command: textOf(record.command),
    time: textOf(record.time),
  };
  row.timed = row.ms !== null && row.ms > 0;
  row.failed = row.rule === 'fail' || row.status === 'failed';
  row.idle = !row.timed && !row.failed && row.status !== 'ok';
  // `verify` checks and does not time; a timed run that came to nothing has no `inputs`.
  row.accuracyOnly = !row.timed && record.inputs !== undefined;
  return row;
}

/**
 * What a row is told apart by beside its implementation, where a machine has several of them. What
 * is usual is shown as nothing.
 */
const kSettings = [
  {key: 'gpu', title: 'GPU', show: (value) => value},
  {key: 'tf32', title: 'TF32', show: (value) => (value === 'true' ? 'tf32' : '')},
  {
    key: 'deterministic',
    title: 'Deterministic',
    show: (value) => (value === 'true' ? 'deterministic' : '')
  },
  {
    key: 'reference',
    title: 'Reference',
    show: (value) => (value === kAutomatic ? '' : `${value} reference`)
  },
  {key: 'cut', title: 'Variant', show: (value) => (value === kAutomatic ? '' : value)},
  {
    key: 'threads',
    title: 'Threads',
    show: (value) => (value === '1' ? '1 thread' : `${value} threads`)
  },
  {key: 'isa', title: 'ISA', show: (value) => value},
  {key: 'cache', title: 'Caches', show: (value) => `${value} caches`},
  {key: 'commit', title: 'Commit', show: (value) => `commit ${value.slice(0, 12)}`},
];

function machineName(machine) {
  const name = gpuName(machine) || textOf(machine.cpu) || 'unnamed machine';
  return name.replace(/\((R|TM)\)/g, '').replace(/\s+/g, ' ').trim();
}

/** The machines of the rows, each with a short label that no other has. */
function findMachines(rows) {
  const machines = new Map();
  for (const row of rows) {
    const machine = objectOf(row.record.machine);
    const parts = ['architecture', 'cpu', 'gpu', 'cores', 'memory'].map((part) => machine[part]);
    row.machine = JSON.stringify(parts);
    if (!machines.has(row.machine)) {
      machines.set(
          row.machine, {key: row.machine, about: machine, name: machineName(machine), rows: []});
    }
    machines.get(row.machine).rows.push(row);
  }
  const all = [...machines.values()];
  const details =
      [(about) => `${textOf(about.cores)} cores`, (about) => bytes(numberOf(about.memory))];
  const shared = (machine) => all.filter((other) => other.label === machine.label).length > 1;
  for (const machine of all) machine.label = machine.name;
  for (const detail of details) {
    for (const machine of all.filter(shared))
      machine.longer = `${machine.label}, ${detail(machine.about)}`;
    for (const machine of all) machine.label = machine.longer ?? machine.label;
  }
  all.filter(shared).forEach((machine, i) => {
    machine.label += ` (${i + 1})`;
  });
  return all;
}

/** Names each row's contender: the implementation, and the settings that differ on its machine. */
function nameVariants(machines) {
  for (const machine of machines) {
    const timed = machine.rows.filter((row) => row.timed);
    machine.settings =
        kSettings.filter(({key}) => new Set(timed.map((row) => row[key]).filter(Boolean)).size > 1);
    for (const row of machine.rows) {
      row.machineLabel = machine.label;
      const settings = machine.settings.filter(({key}) => row[key]);
      const shown = settings.map(({key, show}) => show(row[key]));
      row.variant = [row.implementation, ...shown].filter(Boolean).join(' · ');
    }
  }
}

function loadRows() {
  const {lines, records} = readRecords();
  const rows = records.map(makeRow);
  const machines = findMachines(rows);
  nameVariants(machines);
  return {lines, rows, machines};
}

/** Rows by a key, in the order in which the keys turn up. */
function groupBy(rows, keyOf) {
  const groups = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return groups;
}

const distinct = (rows, of) => [...new Set(rows.map(of))];

/** Of rows that measured the same, the one that was measured last. */
function latest(rows) { return rows.reduce((last, row) => (row.time >= last.time ? row : last)); }
