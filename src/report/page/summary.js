// The short answer: who is fastest, what was checked, what did not run.

/** A result that may win: it ran, and its check did not fail. */
const mayWin = (row) => row.timed && !row.failed;

/** Contenders of one problem on one machine, fastest first. */
function standings(rows) {
  const contenders = [...groupBy(rows.filter(mayWin), (row) => row.variant).values()];
  return contenders.map(latest).sort((a, b) => a.ms - b.ms);
}

function overlap(a, b) {
  return a.interval !== null && b.interval !== null && a.interval[0] <= b.interval[1] &&
      b.interval[0] <= a.interval[1];
}

function makeContest(rows) {
  const [first, ...others] = standings(rows);
  const repeats = rows.filter(mayWin).length - (first ? others.length + 1 : 0);
  return {
    problem: rows[0].problem,
    pass: rows[0].pass,
    machine: rows[0].machineLabel,
    repeats,
    first,
    others,
    disqualified: distinct(rows.filter((row) => row.failed), (row) => row.variant),
    tie: others.length > 0 && overlap(first, others[0]),
  };
}

function contests(rows) {
  const groups = groupBy(
      rows.filter((row) => !row.accuracyOnly),
      (row) => JSON.stringify([row.machine, row.problem, row.pass]));
  return [...groups.values()].map(makeContest);
}

function lead(contest) {
  const {first, others} = contest;
  if (others.length === 0) return kMissing;
  return joined(
      others.map(
          (other) =>
              el('span', {class: 'pair'}, el('b', {}, factor(other.ms / first.ms)),
                 ` ${other.variant}`)),
      ', ');
}

function remarks(contest) {
  const words = [];
  if (contest.tie) {
    words.push(`not separated from ${contest.others[0].variant}: the 95 % intervals overlap`);
  }
  if (contest.disqualified.length > 0) {
    words.push(`failed, so not ranked: ${contest.disqualified.join(', ')}`);
  }
  if (contest.repeats > 0) words.push('measured more than once; the latest counts');
  return words.join('; ');
}

function contestTable(all, severalMachines) {
  const columns = [
    {title: 'Problem', value: (c) => c.problem, show: (c) => el('code', {}, c.problem)},
    {title: 'Pass', value: (c) => c.pass, show: (c) => c.pass},
    severalMachines && {title: 'Machine', value: (c) => c.machine, show: (c) => c.machine},
    {
      title: 'Fastest',
      value: (c) => c.first?.variant ?? null,
      measure: true,
      show: (c) => el('strong', {}, c.first.variant)
    },
    {
      title: 'Median (ms)',
      numeric: true,
      measure: true,
      value: (c) => c.first?.ms ?? null,
      show: (c) => milliseconds(c.first.ms)
    },
    {
      title: 'TFLOP/s',
      numeric: true,
      measure: true,
      value: (c) => c.first?.tflops ?? null,
      show: (c) => rate(c.first.tflops)
    },
    {
      title: 'Faster than',
      measure: true,
      show: lead,
      value: (c) => (c.first && c.others.length > 0 ? c.others[0].ms / c.first.ms : null)
    },
    {title: 'Remarks', class: 'remarks', value: remarks, show: remarks},
  ].filter(Boolean);
  const why = (c) => (c.first ? null : 'No implementation has a valid time.');
  return new DataTable({label: 'Fastest implementation of each problem', columns, rows: all, why})
      .node;
}

function tile(figure, label, kind = '') {
  return el('div', {class: `tile ${kind}`}, el('b', {}, String(figure)), el('span', {}, label));
}

function tiles(rows) {
  const passed = rows.filter((row) => row.rule === 'pass' && !row.failed).length;
  const failed = rows.filter((row) => row.failed).length;
  const idle = rows.filter((row) => row.idle).length;
  const unchecked = rows.length - passed - failed - idle;
  return el(
      'div', {class: 'tiles'}, tile(rows.length, rows.length === 1 ? 'record' : 'records'),
      tile(distinct(rows, (row) => row.problem).length, 'problems'),
      tile(distinct(rows, (row) => row.implementation).length, 'implementations'),
      tile(passed, 'checks passed', 'good'), tile(failed, 'failed', failed > 0 ? 'bad' : ''),
      tile(unchecked, 'not checked'), tile(idle, 'did not run'));
}

/** Loud: a wrong result makes its time worthless. */
function alarm(rows) {
  const failed = rows.filter((row) => row.failed);
  if (failed.length === 0) return null;
  const told = failed.slice(0, 10);
  const what = (row) =>
      row.reason || `max error ${row.error === null ? 'not finite' : errorText(row.error)}`;
  return el(
      'div', {class: 'alarm', role: 'alert'},
      el('p', {}, el('strong', {}, `${count(failed.length, 'result')} failed. `),
         'A result that breaks the rule is wrong, however fast it is, and is not ranked.'),
      el('ul', {},
         told.map(
             (row) =>
                 el('li', {}, el('strong', {}, row.variant), ' on ', el('code', {}, row.problem),
                    `: ${what(row)}`)),
         failed.length > told.length ? el('li', {}, `and ${failed.length - told.length} more`) :
                                       null));
}

/** What did not run, with the same reason told once. */
function idleList(rows) {
  const idle = rows.filter((row) => row.idle);
  if (idle.length === 0) return null;
  const groups =
      groupBy(idle, (row) => JSON.stringify([row.implementation, row.status, row.reason]));
  const line = (same) => {
    const problems = distinct(same, (row) => row.problem);
    return el(
        'li', {}, el('strong', {}, same[0].implementation),
        `, ${same[0].status}: ${same[0].reason || 'no reason given'} `,
        el('span', {class: 'muted'}, '(',
           problems.length > 3 ? count(problems.length, 'problem') :
                                 joined(problems.map((problem) => el('code', {}, problem)), ', '),
           ')'));
  };
  return el(
      'div', {}, el('h3', {}, 'Did not run'),
      el('ul', {class: 'idle'}, [...groups.values()].map(line)));
}

function renderSummary(rows, severalMachines) {
  const all = contests(rows);
  const table = all.length > 0 ? contestTable(all, severalMachines) : null;
  const parts = [tiles(rows), alarm(rows), table, idleList(rows)];
  bodyOf('summary').replaceChildren(...parts.filter(Boolean));
}
