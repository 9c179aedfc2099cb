// Tables that can be searched and sorted, and a plot; all from the data in the page.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const at = (id) => document.getElementById(id);
  const make = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const asked = () => ({
    words: at('search').value.trim().toLowerCase(), measure: at('measure').value, setting: at('setting').value,
    view: at('unseen').checked ? 'without_sets_that_chose_a_default' : 'all',
  });
  const percent = (value) => (value === null || value === undefined ? '–' : (100 * value).toFixed(1));
  const number = (value, digits) => (value === null || value === undefined ? '–' : value.toFixed(digits));
  const small = (value) => (typeof value === 'number' && value < 0.0005 ? '< 0.001' : number(value, 3));
  const seconds = (value) => (value === null || value === undefined ? '–' : value < 10 ? value.toFixed(2) : value.toFixed(0));
  const ranked = (measure) => (measure in Object.values(data.views)[0] ? measure : 'auc');
  const sorting = { overview: null, cells: null, decisions: null, traits: null };  // [column, ascending]

  // columns: [title, value to sort by, text, class, hint]; a value that is missing comes last, whichever way
  const fill = (id, columns, rows, mark) => {
    const table = at(id);
    const head = make('tr');
    const order = sorting[id] && columns[sorting[id][0]] ? sorting[id] : null;
    columns.forEach(([title], i) => {
      const cell = make('th');
      cell.scope = 'col';
      const sign = order && order[0] === i ? (order[1] ? ' ▲' : ' ▼') : '';
      const button = make('button', title + sign);
      button.type = 'button';
      cell.setAttribute('aria-sort', sign ? (order[1] ? 'ascending' : 'descending') : 'none');
      button.addEventListener('click', () => {
        sorting[id] = [i, order && order[0] === i ? !order[1] : i === 0];
        draw();
        at(id).querySelectorAll('thead button')[i].focus();
      });
      cell.append(button);
      head.append(cell);
    });
    if (order) {
      const value = columns[order[0]][1];
      const known = (v) => v !== null && v !== undefined;
      rows = [...rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (!known(x) || !known(y)) return Number(!known(x)) - Number(!known(y));
        return (typeof x === 'string' ? x.localeCompare(y) : x - y) * (order[1] ? 1 : -1);
      });
    }
    const body = make('tbody');
    rows.forEach((row) => {
      const line = make('tr', undefined, mark ? mark(row) : '');
      columns.forEach(([, , text, className, hint], i) => {
        const cell = make(i ? 'td' : 'th', text(row), className ? className(row) : '');
        if (!i) cell.scope = 'row';
        if (hint && hint(row)) cell.title = hint(row);
        line.append(cell);
      });
      body.append(line);
    });
    const top = make('thead');
    top.append(head);
    table.replaceChildren(top, body);
  };

  const mark = (row) => (row.control ? 'control' : row.method === data.reference ? 'reference' : '');
  const found = (words) => (row) => !words || row.label.toLowerCase().includes(words) || row.method.toLowerCase().includes(words);

  const drawOverview = ({ words, measure, setting, view }) => {
    const by = ranked(measure);
    const shown = data.views[setting][by][view];
    const name = data.measures[by];
    const limit = shown.critical ? `Ranks over ${shown.n_sets} sets that all ranked methods have tried; a method on too few sets has no rank yet. Mean ranks that differ by less than ${shown.critical.toFixed(2)} do not differ (Nemenyi, 5 %).` : 'There are no ranks yet: too few sets are tried by all methods.';
    at('about-ranks').textContent = `${limit} Wins, ties and losses are those of the reference against the method, by ${name}, with a zone of 1 point; an empty cell counts as a loss. p is of the difference in mean rank to the reference, after Holm.`;
    const record = (row) => (row.against ? `${row.against.wins} / ${row.against.ties} / ${row.against.losses}` : '–');
    fill('overview', [
      ['method', (row) => row.label, (row) => row.label],
      ['sets', (row) => row.n_sets, (row) => (row.n_empty ? `${row.n_sets} + ${row.n_empty} empty` : String(row.n_sets))],
      [`rank by ${name}`, (row) => row.rank, (row) => number(row.rank, 2)],
      ['rank among complete rows', (row) => row.rank_complete, (row) => number(row.rank_complete, 2)],
      ['p', (row) => row.p_holm, (row) => small(row.p_holm)],
      ['wins / ties / losses', (row) => (row.against ? row.against.wins : null), record],
      ['difference', (row) => (row.against ? row.against.difference : null), (row) => (row.against ? percent(row.against.difference) : '–')],
      ...Object.entries(data.measures).map(([key, title]) => [`mean ${title}`, (row) => row[key], (row) => percent(row[key])]),
      ['CPU s', (row) => row.seconds, (row) => seconds(row.seconds)],
      ...(shown.rows.some((row) => row.gpu_seconds) ? [['GPU s', (row) => row.gpu_seconds, (row) => seconds(row.gpu_seconds)]] : []),
    ], shown.rows.filter(found(words)), mark);
  };

  const drawCells = ({ words, measure, setting, view }) => {
    const sets = data.sets.filter((set) => view === 'all' || !set.chose_default);
    const cell = (row, set) => data.cells[`${row.method}|${set.name}|${setting}`];
    const value = (row, set) => (cell(row, set) || {})[measure];
    const rows = data.views[setting][ranked(measure)][view].rows;
    const signs = { better: ' +', worse: ' -', equivalent: ' =' };
    const sign = (row, set) => (measure === 'accuracy' && signs[data.verdicts[setting][`${row.method}|${set.name}`]]) || '';
    const best = new Map(sets.map((set) => {
      const values = rows.filter((row) => !row.control).map((row) => value(row, set)).filter((v) => typeof v === 'number');
      return [set.name, data.smaller.includes(measure) ? Math.min(...values) : Math.max(...values)];
    }));
    fill('cells', [
      ['method', (row) => row.label, (row) => row.label],
      ...sets.filter((set) => rows.some((row) => cell(row, set))).map((set) => [
        set.name + (set.chose_default ? ' *' : ''),
        (row) => value(row, set),
        (row) => (cell(row, set) ? percent(value(row, set)) + sign(row, set) : '·'),
        (row) => (!cell(row, set) ? 'open' : value(row, set) === best.get(set.name) ? 'best' : ''),
        (row) => (cell(row, set) && typeof value(row, set) !== 'number' ? cell(row, set).reason || 'the method has no such figure' : ''),
      ]),
    ], rows.filter(found(words)), mark);
  };

  const drawDecisions = () => {
    const place = (i) => (row) => (row.methods[i] ? `${row.methods[i].label} ${percent(row.methods[i].mean)}` : '–');
    fill('decisions', [
      ['bags', (row) => row.about, (row) => row.about],
      ['sets', (row) => row.sets.length, (row) => String(row.sets.length)],
      ['methods', (row) => row.methods.length, (row) => String(row.methods.length)],
      ...[0, 1, 2].map((i) => [['best', 'second', 'third'][i], place(i), place(i)]),
      ['which sets', (row) => row.sets[0], (row) => row.sets.join(', '), () => 'words'],
    ], data.decisions);
  };

  const drawTraits = () => {
    const known = data.sets.filter((set) => set.traits);
    const of = (name) => (set) => set.traits[name];
    const whole = (name) => (set) => String(set.traits[name]);
    fill('traits', [
      ['set', (set) => set.name, (set) => set.name + (set.chose_default ? ' *' : '')],
      ['bags', of('n_bags'), whole('n_bags')],
      ['positive', of('positive_share'), (set) => percent(set.traits.positive_share)],
      ['instances a bag', of('median_size'), whole('median_size')],
      ['features', of('n_features'), whole('n_features')],
      ['witnesses', of('witness_rate'), (set) => percent(set.traits.witness_rate)],
      ['what it is', (set) => set.title, (set) => `${set.title}. ${set.defects || ''}`, () => 'words'],
    ], known);
  };

  const area = { left: 56, right: 560, top: 16, bottom: 380 };  // of the plot, in its own units
  const drawPlot = ({ words, measure, setting, view }) => {
    const plot = at('plot');
    const draw = (name, attributes, text) => {
      const made = document.createElementNS('http://www.w3.org/2000/svg', name);
      Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
      if (text !== undefined) made.textContent = text;
      plot.append(made);
      return made;
    };
    plot.replaceChildren();
    const time = (row) => row.seconds + (row.gpu_seconds || 0);
    const points = data.views[setting][ranked(measure)][view].rows
      .filter((row) => !row.control && typeof row[measure] === 'number' && time(row) > 0).filter(found(words));
    if (!points.length) return;
    const logs = points.map((row) => Math.log10(time(row)));
    const values = points.map((row) => row[measure]);
    const [left, right] = [Math.min(...logs) - 0.15, Math.max(...logs) + 0.15];
    const pad = 0.05 * (Math.max(...values) - Math.min(...values)) || 0.01;
    const [low, high] = [Math.min(...values) - pad, Math.max(...values) + pad];
    const turned = data.smaller.includes(measure);  // small is good: up is better all the same
    const x = (log) => area.left + (log - left) / (right - left) * (area.right - area.left);
    const y = (value) => { const share = (value - low) / (high - low); return area.top + (turned ? share : 1 - share) * (area.bottom - area.top); };
    draw('path', { class: 'axis', d: `M${area.left} ${area.top}V${area.bottom}H${area.right}`, fill: 'none' });
    for (let power = Math.floor(left); power <= right; power += 1) {
      [1, 2, 5].filter((of) => of === 1 || right - left < 2).map((of) => of * 10 ** power).filter((at) => Math.log10(at) >= left && Math.log10(at) <= right)
        .forEach((seconds) => draw('text', { class: 'tick', x: x(Math.log10(seconds)), y: area.bottom + 18, 'text-anchor': 'middle' }, `${Number(seconds.toPrecision(1))} s`));
    }
    for (let i = 0; i <= 4; i += 1) {
      const value = low + (high - low) * i / 4;
      draw('text', { class: 'tick', x: area.left - 6, y: y(value) + 4, 'text-anchor': 'end' }, percent(value));
    }
    draw('text', { class: 'tick', x: (area.left + area.right) / 2, y: area.bottom + 40, 'text-anchor': 'middle' }, `${data.measures[measure]}, per cent, over seconds of a k-fold`);
    const spots = points.map((row, i) => ({ row, x: x(logs[i]), y: y(values[i]), r: row.method === data.reference ? 6 : 4 }));
    const front = [...spots].sort((a, b) => a.x - b.x || a.y - b.y).filter((spot, i, all) => all.slice(0, i).every((other) => other.y > spot.y));
    draw('path', { class: 'front', d: `M${front.map((spot) => `${spot.x} ${spot.y}`).join('L')}`, fill: 'none' });
    spots.forEach((spot) => {
      const colour = spot.row.method === data.reference ? 'var(--positive)' : 'var(--c0)';
      const dot = draw('circle', { cx: spot.x, cy: spot.y, r: spot.r, stroke: colour, fill: spot.row.gpu_seconds ? 'var(--paper)' : colour });
      const title = document.createElementNS(dot.namespaceURI, 'title');
      title.textContent = `${spot.row.label}: ${data.measures[measure]} ${percent(spot.row[measure])}, ${seconds(spot.row.seconds)} CPU s${spot.row.gpu_seconds ? `, ${seconds(spot.row.gpu_seconds)} GPU s` : ''}`;
      dot.append(title);
    });
    drawLabels(spots, draw);
  };

  // Every label goes to the nearest place that is free of points and of other labels; a line leads to one that is not beside its point.
  const drawLabels = (spots, draw) => {
    const height = 11;
    const gaps = [3, 8, 16, 26, 38, 52, 70, 95, 125];
    const angles = [0, 180, -90, 90, -30, 30, -150, 150, -60, 60, -120, 120, -15, 15, -165, 165, -75, 75, -105, 105];
    const taken = spots.map(({ x, y, r }) => ({ left: x - r - 1, right: x + r + 1, top: y - r - 1, bottom: y + r + 1 }));
    const shared = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left)) * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
    const outside = (box) => Math.max(0, area.left - box.left) + Math.max(0, box.right - 638) + Math.max(0, 2 - box.top) + Math.max(0, box.bottom - area.bottom);
    const crowd = (spot) => spots.filter((other) => Math.hypot(other.x - spot.x, other.y - spot.y) < 40).length;
    const first = (spot) => (spot.row.method === data.reference ? 1000 : crowd(spot));
    [...spots].sort((a, b) => first(b) - first(a)).forEach((spot) => {
      const text = draw('text', { class: 'name' }, spot.row.label);
      const width = text.getComputedTextLength() || 6 * spot.row.label.length;
      const places = gaps.flatMap((gap) => angles.map((angle) => {
        const [cos, sin] = [Math.cos(angle * Math.PI / 180), Math.sin(angle * Math.PI / 180)];
        const [cx, cy] = [spot.x + cos * (spot.r + gap), spot.y + sin * (spot.r + gap + height / 2)];
        const left = Math.abs(cos) < 0.1 ? cx - width / 2 : cos > 0 ? cx : cx - width;
        const box = { left, right: left + width, top: cy - height / 2, bottom: cy + height / 2 };
        return { box, gap, cost: 100 * outside(box) + taken.reduce((sum, other) => sum + shared(box, other), 0) };
      }));
      const best = places.find((place) => place.cost === 0) || places.reduce((a, b) => (b.cost < a.cost ? b : a));
      const { box } = best;
      taken.push(box);
      text.setAttribute('x', box.left);
      text.setAttribute('y', box.bottom - 2);
      if (best.gap > 8) {
        const [nearX, nearY] = [Math.min(Math.max(spot.x, box.left), box.right), Math.min(Math.max(spot.y, box.top), box.bottom)];
        draw('path', { class: 'lead', d: `M${spot.x} ${spot.y}L${nearX} ${nearY}` });
      }
    });
  };

  const draw = () => {
    const wanted = asked();
    if (!(wanted.setting in data.views)) {
      at('about-ranks').textContent = 'Nothing is measured yet.';
      return;
    }
    drawOverview(wanted);
    drawCells(wanted);
    drawDecisions();
    drawTraits();
    drawPlot(wanted);
  };
  ['search', 'measure', 'setting', 'unseen'].forEach((id) => at(id).addEventListener('input', draw));
  draw();
})();
