// Puts the page together.

const state = {
  ...loadRows(),
  machine: ''
};
let panels = [];

function renderPlots(rows, severalMachines) {
  const parts = [
    ...kLinePlots.map((plot) => linePanel(plot, rows)), paretoPanel(rows, severalMachines),
    rooflinePanel(rows)
  ];
  panels = parts.filter((part) => part instanceof Panel);
  const missing = parts.filter((part) => typeof part === 'string');
  document.getElementById('plots').hidden = !rows.some((row) => row.timed);
  bodyOf('plots').replaceChildren(
      ...panels.map((panel) => panel.node),
      ...missing.map((sentence) => el('p', {class: 'muted left-out'}, sentence)));
  drawPanels();
}

function drawPanels() {
  for (const panel of panels) panel.draw();
}

function render() {
  const machines = state.machines.filter(({key}) => state.machine === '' || key === state.machine);
  const rows = state.rows.filter((row) => machines.some(({key}) => key === row.machine));
  for (const panel of panels) panel.clear();
  renderSummary(rows, machines.length > 1);
  renderResults(rows, machines);
  renderPlots(rows, machines.length > 1);
}

function offerTheme() {
  const button = document.getElementById('theme');
  const name = () => {
    button.textContent = theme.preferred() === 'dark' ? 'Light' : 'Dark';
  };
  button.setAttribute('aria-label', 'Switch between light and dark');
  button.addEventListener('click', theme.toggle);
  button.hidden = false;
  name();
  theme.onChange(() => {
    name();
    drawPanels();
  });
}

function offerDownload() {
  const link = document.getElementById('download');
  const text = state.lines.map((line) => `${line}\n`).join('');
  link.href = URL.createObjectURL(new Blob([text], {type: 'application/x-ndjson'}));
  link.download = 'records.jsonl';
  link.hidden = false;
}

prepareCharts();
renderHeader(state, (machine) => {
  state.machine = machine;
  render();
});
render();
offerTheme();
offerDownload();
window.addEventListener('scroll', () => {
  document.getElementById('tooltip').hidden = true;
}, {passive: true});
