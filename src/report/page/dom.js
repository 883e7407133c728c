// Building the document. Whatever comes from a record goes through here as text, never as markup.

/** An element with attributes ("onclick" and its like are listeners) and children. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) {
      node.addEventListener(name.slice(2), value);
    } else {
      node.setAttribute(name, value === true ? '' : value);
    }
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** A labelled list to choose one value from. `options` are [value, text]. */
function chooser(label, options, value, onchange) {
  const select =
      el('select', {onchange: () => onchange(select.value)},
         options.map(([key, text]) => el('option', {value: key}, text)));
  select.value = value;
  return el('label', {class: 'chooser'}, el('span', {}, label), select);
}

/** Joins nodes or texts with a separator between them. */
function joined(parts, separator) {
  return parts.flatMap((part, i) => (i === 0 ? [part] : [separator, part]));
}

function bodyOf(section) { return document.querySelector(`#${section} > .body`); }
