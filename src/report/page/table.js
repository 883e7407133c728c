// A table that sorts by any column and shows the rows that pass a filter.

const kRowsAtFirst = 200;

/** Numbers by value, texts as people sort them, and what is missing last in either direction. */
function compareValues(a, b, direction) {
  const missing = (value) => value === null || value === '';
  if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
  const order = typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(a, b);
  return direction * order;
}

/**
 * Columns are {title, value(row) to sort by, show(row), numeric, measure}. A row without a
 * measurement (`why(row)` says why) has one wide cell in place of the columns marked `measure`.
 */
class DataTable {
  constructor({label, columns, rows, why = () => null, rowClass = () => ''}) {
    Object.assign(this, {label, columns, rows, why, rowClass});
    this.shown = rows;
    this.sorted = {column: null, direction: 1};
    this.limit = kRowsAtFirst;
    this.body = el('tbody');
    this.heads = columns.map((column) => this.head(column));
    const table = el('table', {}, el('thead', {}, el('tr', {}, this.heads)), this.body);
    // Scrolls within itself, and by keyboard too.
    const scroll =
        el('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label}, table);
    this.more =
        el('button', {type: 'button', class: 'quiet controls', onclick: () => this.showAll()});
    this.rest = el('p', {class: 'rest'}, el('span'), ' ', this.more);
    this.node = el('div', {class: 'table'}, scroll, this.rest);
    this.render();
  }

  head(column) {
    const button = el('button', {type: 'button', onclick: () => this.sortBy(column)}, column.title);
    // On paper the title is not a button: browsers do not repeat those on the next page.
    return el(
        'th', {
          scope: 'col',
          'aria-sort': 'none',
          'data-title': column.title,
          class: column.numeric ? 'number' : null
        },
        button);
  }

  sortBy(column) {
    const again = this.sorted.column === column;
    this.sorted = {column, direction: again ? -this.sorted.direction : 1};
    this.heads.forEach((head, i) => {
      const order = this.sorted.direction > 0 ? 'ascending' : 'descending';
      head.setAttribute('aria-sort', this.columns[i] === column ? order : 'none');
    });
    this.render();
  }

  filter(keep) {
    this.shown = this.rows.filter(keep);
    this.render();
  }

  showAll() {
    this.limit = Infinity;
    this.render();
  }

  render() {
    const {column, direction} = this.sorted;
    const rows = [...this.shown];
    if (column) rows.sort((a, b) => compareValues(column.value(a), column.value(b), direction));
    const visible = rows.slice(0, this.limit);
    this.body.replaceChildren(...visible.map((row) => this.row(row)));
    if (rows.length === 0) {
      this.body.append(
          el('tr', {},
             el('td', {colspan: this.columns.length, class: 'why'}, 'No row passes the filter.')));
    }
    this.rest.hidden = visible.length === rows.length;
    this.rest.firstChild.textContent = `The first ${visible.length} of ${rows.length} rows.`;
    this.more.textContent = 'Show all';
  }

  row(row) {
    const why = this.why(row);
    const cell = (column) =>
        el('td', {class: column.numeric ? 'number' : column.class}, column.show(row));
    if (why === null) return el('tr', {class: this.rowClass(row)}, this.columns.map(cell));
    const first = this.columns.findIndex((column) => column.measure);
    const measures = this.columns.filter((column) => column.measure).length;
    return el(
        'tr', {class: this.rowClass(row)}, this.columns.slice(0, first).map(cell),
        el('td', {colspan: measures, class: 'why'}, el('div', {}, why)),
        this.columns.slice(first + measures).map(cell));
  }
}
