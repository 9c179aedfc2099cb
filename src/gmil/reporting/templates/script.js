{% include "copy_image.js" %}
{% include "theme.js" %}
(() => {
  'use strict';

  // ---- the bag explorer
  const make = (tag, attributes = {}, text = '') => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== '') element.textContent = text;
    return element;
  };
  const draw = (tag, attributes = {}, text = '') => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== '') element.textContent = text;
    return element;
  };
  const short = (value) => {
    if (value === null || value === undefined) return '–';
    if (typeof value !== 'number' || Number.isInteger(value)) return String(value);
    const size = Math.abs(value);
    return size >= 1e6 || size < 1e-3 ? value.toExponential(2) : value.toPrecision(4).replace(/\.?0+$/, '');
  };

  const brief = (text, most) =>  // long names often differ at their ends only
    (text.length <= most ? text : `${text.slice(0, Math.ceil(most / 2))}…${text.slice(1 - Math.floor(most / 2))}`);

  const explore = (section) => {
    const data = JSON.parse(section.querySelector('script[type="application/json"]').textContent);
    const box = section.querySelector('.explorer');
    const [search, order, list] = ['input', '.order', '.list'].map((s) => box.querySelector(s));
    const [title, facts, time, rows] = ['.title', '.facts', '.timeline', '.rows'].map((s) => box.querySelector(s));
    const map = section.querySelector('svg .chosen');
    const column = Object.fromEntries(data.columns.map((c, i) => [i < data.columns.length - data.n_info ? c : `info ${c}`, i]));
    const timeColumn = data.time === null ? undefined : column[`info ${data.time}`];
    const slides = section.querySelector('.slide-maps');
    let matching = data.bags;
    let chosen = null;

    const role = (center) => data.roles[center] || '';
    const isWrong = (bag) => bag.label !== null && bag.label !== bag.predicted;
    const orders = {
      number: (a, b) => a.number - b.number,
      decision: (a, b) => (b.decision ?? -Infinity) - (a.decision ?? -Infinity),
      wrong: (a, b) => isWrong(b) - isWrong(a) || a.number - b.number,
      size: (a, b) => b.n_instances - a.n_instances,
    };

    const fill = () => {
      const wanted = search.value.trim().toLowerCase();
      matching = data.bags.filter((bag) =>
        [bag.name, bag.label ?? '', bag.predicted].some((text) => text.toLowerCase().includes(wanted)));
      matching = [...matching].sort(orders[order.value]);
      list.replaceChildren(...matching.map((bag) => make('option', { value: bag.number },
        `${isWrong(bag) ? '✗ ' : ''}${brief(bag.name, 18)}  ·  ${brief(bag.predicted, 16)}`)));
      section.querySelector('.found').textContent = `${matching.length} of ${data.bags.length} bags`;
      if (!matching.includes(chosen)) show(matching[0] ?? null);
      else list.value = chosen.number;
    };

    const light = (instance) => {
      for (const part of section.querySelectorAll('[data-instance]')) {
        const on = part.dataset.instance === String(instance);
        if (part.tagName === 'TR') part.setAttribute('aria-selected', on);
        else part.classList.toggle('lit', on);
      }
      const row = chosen?.rows.find((r) => r[column.instance] === instance);
      for (const center of section.querySelectorAll('[data-center]')) {
        center.classList.toggle('lit', row !== undefined && 'centre' in column && center.dataset.center === String(row[column.centre]));
      }
    };

    const scoreCell = (score, largest) => {
      const cell = make('td', { class: 'score' });
      const gauge = make('span', { class: 'gauge', 'aria-hidden': 'true' });
      const width = largest > 0 ? Math.abs(score) / largest * 50 : 0;
      const bar = make('i', { class: score >= 0 ? 'up' : 'down' });
      bar.style.width = `${width}%`;
      bar.style.left = `${score >= 0 ? 50 : 50 - width}%`;
      gauge.append(bar);
      cell.append(gauge, make('span', { class: 'number' }, short(score)));
      return cell;
    };

    const table = (bag) => {
      const names = data.columns.map((c, i) => [c, i]).filter(([c, i]) => !(['x', 'y'].includes(c) && i < data.columns.length - data.n_info));
      const head = make('tr');
      head.append(...names.map(([c]) => make('th', { scope: 'col' }, c)));
      const largest = 'score' in column ? Math.max(...bag.rows.map((r) => Math.abs(r[column.score]))) : 0;
      const body = bag.rows.map((values) => {
        const line = make('tr', { 'data-instance': values[column.instance], tabindex: 0, 'aria-selected': 'false' });
        line.append(...names.map(([, i]) => {
          if (i === column.score) return scoreCell(values[i], largest);
          const cell = make('td');
          if (i === column.centre) {
            const kind = role(values[i]);
            const mark = { positive: ' C+', negative: ' C−', both: ' C±' }[kind] || '';
            cell.append(make('span', { class: `chip ${kind}` }, `${values[i]}${mark}`));
          } else cell.textContent = short(values[i]);
          return cell;
        }));
        const choose = () => light(values[column.instance]);
        line.addEventListener('click', choose);
        line.addEventListener('focus', choose);
        line.addEventListener('keydown', (event) => {
          const next = { ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling }[event.key];
          if (next) { next.focus(); event.preventDefault(); }
        });
        return line;
      });
      const made = make('table');
      const [top, rest] = [make('thead'), make('tbody')];
      top.append(head);
      rest.append(...body);
      made.append(top, rest);
      rows.replaceChildren(made);
    };

    const spread = (values) => {
      const known = values.filter((v) => v !== null);
      const [low, high] = [Math.min(...known), Math.max(...known)];
      return high > low ? [low, high] : [low - 1, high + 1];
    };

    const timeline = (bag) => {
      const known = timeColumn === undefined ? [] : bag.rows.filter((r) => r[timeColumn] !== null);
      time.querySelector('svg')?.remove();
      time.hidden = known.length === 0;
      if (time.hidden) return;
      const [t0, t1] = spread(known.map((r) => r[timeColumn]));
      const scores = known.map((r) => ('score' in column ? r[column.score] : 0));
      const [s0, s1] = spread([0, ...scores]);
      const longest = Math.max(short(s0).length, short(s1).length);
      const [width, height, left, bottom] = [Math.max(260, time.clientWidth), 176, 16 + 7 * longest, 36];
      const picture = draw('svg', { class: 'plot time', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `instances along ${data.time}` });
      const x = (t) => left + (t - t0) / (t1 - t0) * (width - left - 14);
      const y = (s) => height - bottom - 8 - (s - s0) / (s1 - s0) * (height - bottom - 24);
      picture.append(draw('line', { class: 'base', x1: left, x2: width - 8, y1: y(0), y2: y(0) }));
      for (const [at, anchor] of [[t0, 'start'], [(t0 + t1) / 2, 'middle'], [t1, 'end']]) {
        picture.append(draw('text', { class: 'tick', x: x(at), y: height - 20, 'text-anchor': anchor }, short(at)));
      }
      picture.append(draw('text', { class: 'axis', x: (left + width) / 2, y: height - 4, 'text-anchor': 'middle' }, data.time));
      for (const value of [s0, s1]) {
        picture.append(draw('text', { class: 'tick', x: left - 6, y: y(value) + 4, 'text-anchor': 'end' }, short(value)));
      }
      known.forEach((r, i) => {
        picture.append(draw('line', { class: 'stem', x1: x(r[timeColumn]), x2: x(r[timeColumn]), y1: y(0), y2: y(scores[i]) }));
        const kind = 'centre' in column ? role(r[column.centre]) : '';
        const dot = draw('circle', { class: `at ${kind}`, 'data-instance': r[column.instance], cx: x(r[timeColumn]), cy: y(scores[i]), r: 4.5 });
        dot.append(draw('title', {}, `instance ${r[column.instance]}, ${data.time} ${short(r[timeColumn])}, score ${short(scores[i])}`));
        dot.addEventListener('click', () => light(r[column.instance]));
        picture.append(dot);
      });
      time.append(picture);
    };

    const place = (bag) => {
      if (!map) return;
      const s = data.scales;
      const along = (v, low, high, from, to) => from + (v - low) / (high - low) * (to - from);
      map.replaceChildren(...bag.rows.map((r) => {
        const [cx, cy] = [along(r[column.x], s.xlow, s.xhigh, s.x0, s.x1), along(r[column.y], s.ylow, s.yhigh, s.y0, s.y1)];
        const point = draw('path', { class: 'member', 'data-instance': r[column.instance], d: `M${cx},${cy - 6}l6,6l-6,6l-6,-6z` });
        point.append(draw('title', {}, `instance ${r[column.instance]} of ${bag.name}`));
        point.addEventListener('click', () => light(r[column.instance]));
        return point;
      }));
    };

    const show = (bag) => {
      chosen = bag;
      if (bag === null) {
        title.textContent = 'No bag matches';
        for (const part of [facts, rows, map]) part?.replaceChildren();
        time.hidden = true;
        return;
      }
      list.value = bag.number;
      title.textContent = `Bag ${bag.name}`;
      const stated = [['predicted', bag.predicted], ['label', bag.label ?? 'not given'], ['decision', short(bag.decision)], ['instances', bag.n_instances]];
      facts.replaceChildren(...stated.map(([what, value]) => {
        const part = make('span', what === 'label' && isWrong(bag) ? { class: 'wrong' } : {}, `${what} `);
        part.append(make('b', {}, String(value)));
        return part;
      }));
      timeline(bag);
      table(bag);
      place(bag);
      light(bag.rows[0]?.[column.instance]);
      slides?.dispatchEvent(new CustomEvent('choose', { detail: bag.name }));
    };

    const turn = (step) => {
      if (matching.length === 0) return;
      const at = matching.indexOf(chosen);
      show(matching[(at + step + matching.length) % matching.length]);
    };

    slides?.addEventListener('shown', (event) => {
      const bag = data.bags.find((b) => b.name === event.detail);
      if (bag && bag !== chosen) show(bag);
    });
    search.addEventListener('input', fill);
    search.addEventListener('keydown', (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) { turn(step); event.preventDefault(); }
      if (event.key === 'Enter') rows.querySelector('tbody tr')?.focus();
    });
    order.addEventListener('change', fill);
    window.addEventListener('resize', () => { if (chosen) timeline(chosen); });
    list.addEventListener('change', () => show(matching.find((bag) => String(bag.number) === list.value) ?? null));
    box.querySelector('.previous').addEventListener('click', () => turn(-1));
    box.querySelector('.next').addEventListener('click', () => turn(1));
    for (const center of section.querySelectorAll('svg [data-center]')) {
      center.addEventListener('click', () => {
        const row = chosen?.rows.find((r) => String(r[column.centre]) === center.dataset.center);
        if (row) light(row[column.instance]);
      });
    }
    fill();
  };
  document.querySelectorAll('[data-model]').forEach((section) => { if (section.querySelector('.explorer')) explore(section); });

  // ---- every plot can be copied, with the legend above it
  for (const figure of document.querySelectorAll('figure')) {
    if (!figure.matches('.timeline') && !figure.querySelector('svg')) continue;
    const above = figure.closest('.plots')?.previousElementSibling;
    const legend = above?.matches('.legend') ? [above] : [];
    const title = () => figure.querySelector('b')?.textContent || figure.querySelector('svg').getAttribute('aria-label');
    addCopyButton(figure, () => [...legend, figure], title);
  }

  // ---- on paper nothing is folded
  const folded = () => document.querySelectorAll('details:not([open])');
  let opened = [];
  window.addEventListener('beforeprint', () => { opened = [...folded()]; for (const part of opened) part.open = true; });
  window.addEventListener('afterprint', () => { for (const part of opened) part.open = false; });
})();
