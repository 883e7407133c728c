// Where the records come from: when, which machines, which commits, which commands.

const kCommandsAtFirst = 3;

function fact(title, ...content) { return [el('dt', {}, title), el('dd', {}, ...content)]; }

function dateText(rows) {
  const times = rows.map((row) => row.time).filter(Boolean).sort();
  if (times.length === 0) return 'not recorded';
  const [first, last] = [timeText(times[0]), timeText(times.at(-1))];
  return first === last ? first : `${first} to ${last}`;
}

/** "A", or "A and B more" in order, of what several rows have. */
function valuesText(rows, of) {
  return distinct(rows, of).filter(Boolean).sort(collator.compare).join(', ');
}

/** Peaks by name; the unit is in the name: {"fp32_tflops": 0.33} is "fp32 0.331 TFLOP/s". */
function peaksText(peaks) {
  const units = {tflops: 'TFLOP/s', gbps: 'GB/s'};
  return Object.entries(objectOf(peaks))
      .map(([name, value]) => {
        if (numberOf(value) === null) return `${name} ${pairsText(value) || textOf(value)}`;
        const [, what, unit] = /^(.*?)_?(tflops|gbps)?$/.exec(name);
        return [what, rate(value), units[unit]].filter(Boolean).join(' ');
      })
      .join(', ');
}

function machineLine(machine) {
  const {about, rows} = machine;
  const cores = textOf(about.cores);
  const threads = valuesText(rows.filter((row) => row.timed), (row) => row.threads) ||
      valuesText(rows, (row) => row.threads);
  const parts = [
    gpuName(about) && about.cpu ? textOf(about.cpu) : '',
    textOf(about.architecture),
    cores && `${cores} cores`,
    threads && `${threads} thread${threads === '1' ? '' : 's'} used`,
    valuesText(rows, (row) => row.isa),
    numberOf(about.memory) !== null ? `${bytes(about.memory)} memory` : '',
    about.peaks ? `measured peaks: ${peaksText(about.peaks)}` : '',
  ];
  return [
    el('strong', {}, gpuName(about) || textOf(about.cpu) || 'unnamed machine'),
    el('span', {class: 'muted'}, ` ${parts.filter(Boolean).join(' · ')}`)
  ];
}

function machineList(machines) {
  if (machines.length === 1) return machineLine(machines[0]);
  return el(
      'ul', {class: 'plain'},
      machines.map(
          (machine) =>
              el('li', {}, machineLine(machine),
                 el('span', {class: 'muted'}, ` · ${count(machine.rows.length, 'record')}`))));
}

function commandList(rows) {
  const commands = distinct(rows, (row) => row.command).filter(Boolean);
  if (commands.length === 0) return 'not recorded';
  const list = (some) =>
      el('ul', {class: 'plain'}, some.map((command) => el('li', {}, el('code', {}, command))));
  if (commands.length <= kCommandsAtFirst) return list(commands);
  return el('details', {}, el('summary', {}, count(commands.length, 'command')), list(commands));
}

/** What must not be overlooked when records of different origin stand side by side. */
function originNotices(state, onMachine) {
  const notices = [];
  const {machines, rows} = state;
  if (machines.length > 1) {
    const options =
        [['', `All ${machines.length} machines`], ...machines.map(({key, label}) => [key, label])];
    notices.push(
        el('div', {class: 'notice'},
           el('p', {}, `These records come from ${machines.length} different machines. `,
              'Results are only ever compared within one machine.'),
           el('div', {class: 'controls', id: 'machine'},
              chooser('Show', options, state.machine, onMachine))));
  }
  const commits = distinct(rows, (row) => row.commit).filter(Boolean);
  if (commits.length > 1) {
    notices.push(
        el('p', {class: 'notice'}, `These records come from ${commits.length} different commits: `,
           commits.join(', '),
           '. Where they were timed on one machine, the commit is part of the name.'));
  }
  return notices;
}

function renderHeader(state, onMachine) {
  const {rows, machines} = state;
  document.getElementById('about').replaceChildren(
      el('dl', {class: 'facts'}, fact('Measured', dateText(rows)),
         fact(machines.length === 1 ? 'Machine' : 'Machines', machineList(machines)),
         fact(
             'Commit', valuesText(rows, (row) => row.commit) || 'not recorded',
             el('span', {class: 'muted'},
                ` · strobe ${valuesText(rows, (row) => row.version) || 'of unknown version'}`)),
         fact('Reproduce', commandList(rows))),
      ...originNotices(state, onMachine));
}
