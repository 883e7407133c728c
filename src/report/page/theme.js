// Light or dark: as the system has it until the reader chooses. Runs before anything is drawn.
'use strict';
const theme = (() => {
  const kKey = 'strobe-theme';
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  const listeners = [];
  let chosen = null;
  let printing = false;

  // Storage may be switched off, and then throws even when it is merely looked at.
  try {
    chosen = window.localStorage.getItem(kKey);
  } catch {
    chosen = null;
  }

  const preferred = () =>
      (chosen === 'dark' || chosen === 'light' ? chosen :
           system.matches                      ? 'dark' :
                                                 'light');

  function apply() {
    document.documentElement.dataset.theme = printing ? 'light' : preferred();
    for (const listener of listeners) listener();
  }

  function toggle() {
    chosen = preferred() === 'dark' ? 'light' : 'dark';
    try {
      window.localStorage.setItem(kKey, chosen);
    } catch {
      // Then it is remembered for as long as the page is open.
    }
    apply();
  }

  // Paper is white and has a width of its own. The plots are pictures by then, so they are drawn
  // again for it.
  const print = (on) => () => {
    printing = on;
    document.documentElement.toggleAttribute('data-printing', on);
    apply();
  };
  window.addEventListener('beforeprint', print(true));
  window.addEventListener('afterprint', print(false));
  system.addEventListener('change', apply);
  apply();
  return {toggle, preferred, onChange: (listener) => listeners.push(listener)};
})();
