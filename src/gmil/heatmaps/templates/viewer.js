(() => {
  'use strict';
  const box = document.currentScript.closest('.slide-maps');
  const data = JSON.parse(box.querySelector('script[type="application/json"]').textContent);
  const part = (name, within = box) => within.querySelector(`.sm-${name}`);
  const make = (tag, attributes = {}, text = '') => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== '') element.textContent = text;
    return element;
  };
  const short = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : 'no score');
  const MOST_CELLS = 2e6;
  const LISTED = 20;
  const state = { value: data.value, scale: data.scale };
  part('value').value = state.value;
  part('scale').value = state.scale;

  // ---- patches of a slide, unpacked when they are first shown
  const unpack = async (slide) => {
    const bytes = Uint8Array.from(atob(slide.packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    const view = await new Response(stream).arrayBuffer();
    const [n, whole] = [slide.n, (at) => new Int32Array(view, 4 * at * slide.n, slide.n)];
    const along = (steps) => { let sum = 0; return Float64Array.from(steps, (step) => (sum += step) * slide.step); };
    const floats = (at) => new Float32Array(view, 4 * at * n, n);
    const models = slide.results.length;
    const sides = slide.side === null ? floats(2 + models) : new Float32Array(n).fill(slide.side);
    const [x, y, scores] = [along(whole(0)), along(whole(1)), slide.results.map((_, i) => floats(2 + i))];
    return { n, x, y, sides, values: { score: scores, percentile: scores.map(ranks) }, bounds: bounds(slide, x, y, sides) };
  };
  // Patches with a value, the highest first: sorted once for every quantity and model.
  const ordered = (patches, model) => {
    patches.orders ??= {};
    const values = patches.values[state.value][model];
    return (patches.orders[`${state.value} ${model}`] ??=
      Uint32Array.from(values.keys()).filter((i) => Number.isFinite(values[i])).sort((a, b) => values[b] - values[a] || a - b));
  };
  const patchesOf = (slide) => (slide.patches ??= unpack(slide));
  // Mean ranks in per cent, as the files have them.
  const ranks = (scores) => {
    const order = Array.from(scores.keys()).filter((i) => Number.isFinite(scores[i])).sort((a, b) => scores[a] - scores[b]);
    const found = new Float32Array(scores.length).fill(NaN);
    for (let i = 0; i < order.length;) {
      let j = i;
      while (j < order.length && scores[order[j]] === scores[order[i]]) j += 1;
      for (let k = i; k < j; k += 1) found[order[k]] = 50 * (i + j + 1) / order.length;
      i = j;
    }
    return found;
  };
  const bounds = (slide, x, y, sides) => {
    if (slide.picture) return { left: 0, top: 0, width: slide.picture.width, height: slide.picture.height };
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < x.length; i += 1) {
      left = Math.min(left, x[i]); right = Math.max(right, x[i] + sides[i]);
      top = Math.min(top, y[i]); bottom = Math.max(bottom, y[i] + sides[i]);
    }
    return { left, top, width: right - left, height: bottom - top };
  };

  // ---- colours
  const cohort = data.models.map((_, model) => {
    const all = data.slides.map((slide) => slide.results[model].limits);
    return [Math.min(...all.map((l) => l[0])), Math.max(...all.map((l) => l[1]))];
  });
  const limitsOf = (slide, model) => {
    if (state.value === 'percentile') return [0, 100];
    return state.scale === 'cohort' ? cohort[model] : slide.results[model].limits;
  };
  const palette = new Uint32Array(new Uint8ClampedArray(data.colours.flatMap((colour) => [...colour, 255])).buffer);

  // The mean of all patches over each cell, as a picture that panning and zooming only move: no lag with many patches.
  const rasterize = (patches, values, limits, threshold, mostCells = MOST_CELLS, finest = 8) => {
    const { bounds: b, n, x, y, sides } = patches;
    const [side, coarsest] = [sides[n >> 1], Math.sqrt(b.width * b.height / mostCells)];
    const cell = coarsest < side ? side / Math.min(finest, Math.floor(side / coarsest)) : coarsest;  // a patch is whole cells
    const [width, height] = [Math.max(1, Math.ceil(b.width / cell - 0.05)), Math.max(1, Math.ceil(b.height / cell - 0.05))];
    const [sums, counts] = [new Float32Array(width * height), new Uint16Array(width * height)];
    const clip = (v, most) => Math.max(0, Math.min(most, v));
    const first = (start, from) => Math.ceil((start - from) / cell - 0.5 - 1e-6);
    for (let i = 0; i < n; i += 1) {
      if (!Number.isFinite(values[i]) || values[i] < threshold) continue;
      const x0 = first(x[i], b.left), y0 = first(y[i], b.top);
      const x1 = clip(Math.max(x0 + 1, first(x[i] + sides[i], b.left)), width), y1 = clip(Math.max(y0 + 1, first(y[i] + sides[i], b.top)), height);
      for (let row = clip(y0, height); row < y1; row += 1) {
        for (let at = row * width + clip(x0, width); at < row * width + x1; at += 1) { sums[at] += values[i]; counts[at] += 1; }
      }
    }
    const picture = new ImageData(width, height);
    const [pixels, low, levels] = [new Uint32Array(picture.data.buffer), limits[0], palette.length / (limits[1] - limits[0])];
    for (let at = 0; at < sums.length; at += 1) {
      if (counts[at]) pixels[at] = palette[Math.max(0, Math.min(palette.length - 1, Math.floor((sums[at] / counts[at] - low) * levels)))];
    }
    const canvas = new OffscreenCanvas(width, height);
    canvas.getContext('2d').putImageData(picture, 0, 0);
    return { canvas, width: width * cell, height: height * cell };
  };

  // ---- words about a slide
  const isWrong = (slide, model = 0) => slide.given !== null && slide.given !== slide.results[model].predicted;
  const percent = (p) => `${(100 * p).toFixed(p > 0.995 || p < 0.005 ? 1 : 0)}\u00a0%`;
  const stated = (slide, model) => {
    const { predicted, label, probability } = slide.results[model];
    return probability === null ? predicted : `${predicted} (${predicted === label ? '' : `${label}: `}${percent(probability)})`;
  };

  // ---- gallery
  const orders = {
    certain: (a, b) => b.results[0].certainty - a.results[0].certainty,
    uncertain: (a, b) => a.results[0].certainty - b.results[0].certainty,
    probability: (a, b) => (b.results[0].probability ?? 0) - (a.results[0].probability ?? 0),
    wrong: (a, b) => isWrong(b) - isWrong(a) || orders.certain(a, b),
    name: (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }),
  };
  const gallery = part('gallery');
  let matching = data.slides;
  const sketch = async (card) => {
    const slide = data.slides[card.dataset.slide];
    const patches = await patchesOf(slide);
    const [canvas, small] = [card.querySelector('canvas'), rasterize(patches, ...shown(slide, patches, 0), -Infinity, 6e4, 2)];
    const ratio = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [canvas.clientWidth * ratio || 150, canvas.clientHeight * ratio || 90];
    const fit = Math.min((canvas.width - 8) / small.width, (canvas.height - 8) / small.height);
    const context = canvas.getContext('2d');
    context.imageSmoothingEnabled = fit * small.width / small.canvas.width < 1;
    const [width, height] = [Math.max(1, fit * small.width), Math.max(1, fit * small.height)];
    context.drawImage(small.canvas, (canvas.width - width) / 2, (canvas.height - height) / 2, width, height);
    card.dataset.drawn = 'yes';
  };
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) { seen.unobserve(target); sketch(target); }
  }, { rootMargin: '200px' });
  const cardOf = (slide, number) => {
    const card = make('button', { type: 'button', class: 'sm-card', 'aria-pressed': 'false', 'data-slide': number });
    const words = make('span', isWrong(slide) ? { class: 'sm-wrong' } : {}, `${isWrong(slide) ? `✗ ${slide.given}, predicted ` : ''}${stated(slide, 0)}`);
    card.append(make('canvas', { 'aria-hidden': 'true' }), make('b', {}, slide.name || '(no name)'), words);
    card.addEventListener('click', () => { panes[0].show(slide); part('canvas', panes[0].host).focus({ preventScroll: true }); });
    const item = make('li');
    item.append(card);
    return item;
  };
  const fill = () => {
    const wanted = part('search').value.trim().toLowerCase();
    matching = data.slides.filter((slide) =>
      [slide.name, slide.bag, slide.given ?? '', slide.results[0].predicted].some((text) => text.toLowerCase().includes(wanted)));
    matching = [...matching].sort(orders[part('order').value]);
    seen.disconnect();
    gallery.replaceChildren(...matching.map((slide) => cardOf(slide, data.slides.indexOf(slide))));
    for (const card of gallery.querySelectorAll('.sm-card')) seen.observe(card);
    part('found').textContent = `${matching.length} of ${data.slides.length} slides`;
    for (const pane of panes) pane.list();
    mark();
  };
  const mark = () => {
    for (const card of gallery.querySelectorAll('.sm-card')) {
      card.setAttribute('aria-pressed', panes.some((pane) => pane.slide === data.slides[card.dataset.slide]));
    }
  };
  const shown = (slide, patches, model) => [patches.values[state.value][model], limitsOf(slide, model)];

  // ---- a pane: one slide under one model
  class Pane {
    constructor(number) {
      this.host = box.querySelector('template').content.firstElementChild.cloneNode(true);
      this.host.setAttribute('aria-label', number ? 'Second map' : 'Map');
      this.model = data.models.length > 1 ? number : 0;
      this.view = { x: 0.5, y: 0.5, zoom: 1 };
      this.canvas = part('canvas', this.host);
      this.pointers = new Map();
      this.chosen = null;
      part('panes').append(this.host);
      this.listen();
      this.list();
    }

    get(name) { return part(name, this.host); }

    list() {
      const names = matching.includes(this.slide) || !this.slide ? matching : [this.slide, ...matching];
      this.get('slide').replaceChildren(...names.map((slide) => make('option', { value: data.slides.indexOf(slide) }, slide.name || '(no name)')));
      if (this.slide) this.get('slide').value = data.slides.indexOf(this.slide);
      this.get('model')?.replaceChildren(...data.models.map((name, i) => make('option', { value: i }, name)));
      if (this.get('model')) this.get('model').value = this.model;
    }

    listen() {
      this.get('slide').addEventListener('change', (event) => this.show(data.slides[event.target.value]));
      this.get('model')?.addEventListener('change', (event) => { this.model = Number(event.target.value); this.show(this.slide); });
      this.get('previous').addEventListener('click', () => this.turn(-1));
      this.get('next').addEventListener('click', () => this.turn(1));
      this.get('in').addEventListener('click', () => this.zoomBy(1.6));
      this.get('out').addEventListener('click', () => this.zoomBy(1 / 1.6));
      this.get('fit').addEventListener('click', () => this.move({ x: 0.5, y: 0.5, zoom: 1 }));
      this.get('threshold').addEventListener('input', () => {  // a slow machine draws what it can
        if (!this.sliding) requestAnimationFrame(() => { this.sliding = false; this.redraw(); });
        this.sliding = true;
      });
      this.get('opacity').addEventListener('input', () => this.paint());
      this.canvas.addEventListener('wheel', (event) => {
        event.preventDefault();
        this.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.offsetX, event.offsetY);
      }, { passive: false });
      this.canvas.addEventListener('pointerdown', (event) => this.press(event));
      this.canvas.addEventListener('pointermove', (event) => this.drag(event));
      for (const name of ['pointerup', 'pointercancel']) this.canvas.addEventListener(name, (event) => this.release(event));
      this.canvas.addEventListener('keydown', (event) => this.key(event));
      new ResizeObserver(() => this.paint()).observe(this.canvas);
      this.get('top').addEventListener('keydown', (event) => {
        const step = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key];
        const next = step && event.target.closest('li')?.[step]?.querySelector('button');
        if (next) { next.focus(); event.preventDefault(); }
      });
    }

    turn(step) {
      const at = matching.indexOf(this.slide);
      if (matching.length) this.show(matching[(at + step + matching.length) % matching.length]);
    }

    async show(slide) {
      if (!slide) return;
      const isOther = slide !== this.slide;
      this.slide = slide;
      const patches = await patchesOf(slide);
      if (this.slide !== slide) return;  // another was chosen meanwhile
      this.patches = patches;
      if (isOther) {
        this.chosen = null;
        this.view = { x: 0.5, y: 0.5, zoom: 1 };
        this.get('threshold').value = 0;
        this.image = null;
        if (slide.picture) {
          const image = new Image();
          image.src = slide.picture.source;
          image.decode().then(() => { if (this.slide === slide) { this.image = image; this.paint(); } }, () => {});
        }
      }
      this.describe();
      this.redraw();
      this.list();
      mark();
      if (this === panes[0]) box.dispatchEvent(new CustomEvent('shown', { detail: slide.bag }));
    }

    describe() {
      const { slide, model } = this;
      const result = slide.results[model];
      const facts = [['predicted', stated(slide, model)], ['label', slide.given ?? 'not given'], ['patches', slide.n]];
      if (slide.bag !== slide.name) facts.push(['bag', slide.bag]);
      this.get('facts').replaceChildren(...facts.flatMap(([what, value]) => [`${what} `,
        make('b', what === 'label' && isWrong(slide, model) ? { class: 'sm-wrong' } : {}, String(value)), ' · ']).slice(0, -1));
      this.canvas.setAttribute('aria-label', `Map of slide ${slide.name}, ${slide.n} patches`);
      this.get('veil').hidden = !slide.picture;
      const files = result.files.map((file) => make('a', { href: file }, decodeURIComponent(file.split('/').at(-1))));
      this.get('files').replaceChildren(...files.flatMap((link) => [link, ' · ']).slice(0, -1));
    }

    // Everything that depends on values, limits and threshold.
    redraw() {
      if (!this.patches) return;
      [this.values, this.limits] = shown(this.slide, this.patches, this.model);
      const order = ordered(this.patches, this.model);
      const [low, high] = order.length ? [this.values[order.at(-1)], this.values[order[0]]] : [0, 0];
      const at = Number(this.get('threshold').value) / 1000;
      this.threshold = at === 0 ? -Infinity : low + at * (high - low);
      let [above, end] = [0, order.length];  // those that are not hidden come first
      while (above < end) {
        const middle = (above + end) >> 1;
        if (this.values[order[middle]] >= this.threshold) above = middle + 1; else end = middle;
      }
      this.order = Array.from(order.subarray(0, Math.min(above, LISTED)));
      this.get('threshold').nextElementSibling.textContent =
        `${at === 0 ? 'none hidden' : `${state.value} ${short(this.threshold)}`}: ${above} of ${this.slide.n} patches`;
      this.raster = rasterize(this.patches, this.values, this.limits, this.threshold);
      this.legend(low, high);
      this.rank();
      this.paint();
    }

    legend(low, high) {
      const context = this.get('colours').getContext('2d');
      const line = context.createImageData(256, 1);
      data.colours.forEach((colour, i) => { line.data.set(colour, 4 * i); line.data[4 * i + 3] = 255; });
      context.putImageData(line, 0, 0);
      const [first, last] = this.get('ends').children;
      first.textContent = `${low < this.limits[0] ? '≤ ' : ''}${short(this.limits[0])}`;
      last.textContent = `${high > this.limits[1] ? '≥ ' : ''}${short(this.limits[1])}`;
      const meaning = this.slide.results[this.model].legend;
      this.get('meaning').textContent = state.value === 'percentile' ? `Percentile within the slide of: ${meaning}` : meaning;
    }

    // The list of the highest patches.
    rank() {
      const { score, percentile } = this.patches.values;
      this.get('top').replaceChildren(...this.order.map((i, place) => {
        const words = [`${place + 1}.`, short(score[this.model][i]), `${percentile[this.model][i].toFixed(1)} %`, `x ${this.patches.x[i]}, y ${this.patches.y[i]}`];
        const button = make('button', { type: 'button', 'data-patch': i, 'aria-label': `Patch ${place + 1}: score ${words[1]}, percentile ${words[2]}, ${words[3]}` });
        button.append(...words.map((word) => make('span', {}, word)));
        button.addEventListener('click', () => this.choose(i, true));
        const item = make('li');
        item.append(button);
        return item;
      }));
      this.light();
    }

    choose(i, goes = false) {
      this.chosen = i;
      if (goes) {
        const { bounds: b, x, y, sides } = this.patches;
        const zoom = Math.max(this.view.zoom, 24 / (sides[i] * this.fit()));
        this.move({ x: (x[i] + sides[i] / 2 - b.left) / b.width, y: (y[i] + sides[i] / 2 - b.top) / b.height, zoom });
      }
      this.light();
      this.paint();
    }

    light() {
      const i = this.chosen;
      for (const button of this.get('top').querySelectorAll('button')) {
        const on = i !== null && button.dataset.patch === String(i);
        button.setAttribute('aria-current', on);
        if (on) this.get('top').scrollTop = button.parentElement.offsetTop - this.get('top').offsetTop - 60;
      }
      const { x, y, values } = this.patches;
      this.get('selected').textContent = i === null ? '' :
        `Patch at x ${x[i]}, y ${y[i]}: score ${short(values.score[this.model][i])}, percentile ${short(values.percentile[this.model][i])}`;
    }

    // ---- the view: its middle as a share of the slide, and how much larger than to fit
    fit() {
      const { bounds: b } = this.patches;
      return 0.96 * Math.min(this.canvas.clientWidth / b.width, this.canvas.clientHeight / b.height);
    }

    move(view, isEcho = false) {
      if (!this.patches) return;
      this.view = { x: Math.max(0, Math.min(1, view.x)), y: Math.max(0, Math.min(1, view.y)), zoom: Math.max(0.5, Math.min(400, view.zoom)) };
      this.paint();
      if (!isEcho && part('link').checked) for (const pane of panes) if (pane !== this) pane.move(this.view, true);
    }

    zoomBy(factor, px = this.canvas.clientWidth / 2, py = this.canvas.clientHeight / 2) {
      if (!this.patches) return;
      const zoom = Math.max(0.5, Math.min(400, this.view.zoom * factor));
      const { bounds: b } = this.patches;
      const [before, after] = [this.fit() * this.view.zoom, this.fit() * zoom];
      const [dx, dy] = [px - this.canvas.clientWidth / 2, py - this.canvas.clientHeight / 2];
      this.move({ x: this.view.x + dx * (1 / before - 1 / after) / b.width, y: this.view.y + dy * (1 / before - 1 / after) / b.height, zoom });
    }

    panBy(dx, dy) {
      const [scale, { bounds: b }] = [this.fit() * this.view.zoom, this.patches];
      this.move({ ...this.view, x: this.view.x - dx / scale / b.width, y: this.view.y - dy / scale / b.height });
    }

    press(event) {
      this.canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
      this.moved = this.pointers.size > 1 ? Infinity : 0;
    }

    drag(event) {
      const before = this.pointers.get(event.pointerId);
      if (!before || !this.patches) return;
      const now = [event.offsetX, event.offsetY];
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {  // two fingers
        const [was, is] = [Math.hypot(before[0] - other[0], before[1] - other[1]), Math.hypot(now[0] - other[0], now[1] - other[1])];
        if (was > 0) this.zoomBy(is / was, (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
        this.panBy((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
      } else {
        this.moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
        this.panBy(now[0] - before[0], now[1] - before[1]);
      }
      this.pointers.set(event.pointerId, now);
    }

    release(event) {
      if (!this.pointers.delete(event.pointerId) || this.moved > 4 || event.type === 'pointercancel') return;
      const found = this.patchAt(event.offsetX, event.offsetY);
      if (found !== null) this.choose(found);
    }

    patchAt(px, py) {
      const { bounds: b, n, x, y, sides } = this.patches;
      const scale = this.fit() * this.view.zoom;
      const at = [b.left + this.view.x * b.width + (px - this.canvas.clientWidth / 2) / scale, b.top + this.view.y * b.height + (py - this.canvas.clientHeight / 2) / scale];
      let [best, nearest] = [null, Infinity];
      for (let i = 0; i < n; i += 1) {
        if (x[i] <= at[0] && at[0] < x[i] + sides[i] && y[i] <= at[1] && at[1] < y[i] + sides[i] && this.values[i] >= this.threshold) {
          const distance = Math.hypot(x[i] + sides[i] / 2 - at[0], y[i] + sides[i] / 2 - at[1]);
          if (distance < nearest) [best, nearest] = [i, distance];
        }
      }
      return best;
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.patches) return;
      const [w, h] = [this.canvas.clientWidth / 8, this.canvas.clientHeight / 8];
      const next = (step) => {
        const at = this.order.indexOf(this.chosen);
        if (this.order.length) this.choose(this.order[(at < 0 ? (step > 0 ? 0 : this.order.length - 1) : at + step + this.order.length) % this.order.length], true);
      };
      const actions = {
        ArrowLeft: () => this.panBy(w, 0), ArrowRight: () => this.panBy(-w, 0), ArrowUp: () => this.panBy(0, h), ArrowDown: () => this.panBy(0, -h),
        '+': () => this.zoomBy(1.5), '=': () => this.zoomBy(1.5), '-': () => this.zoomBy(1 / 1.5), 0: () => this.move({ x: 0.5, y: 0.5, zoom: 1 }),
        Home: () => this.move({ x: 0.5, y: 0.5, zoom: 1 }), n: () => next(1), p: () => next(-1),
      };
      const action = actions[event.key] ?? actions[event.key.toLowerCase()];
      if (action) { action(); event.preventDefault(); }
    }

    paint() {
      if (!this.raster || this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.draw(); });
    }

    draw() {
      const { canvas, raster, patches: { bounds: b, x, y, sides } } = this;
      const ratio = devicePixelRatio || 1;
      const [width, height] = [canvas.clientWidth, canvas.clientHeight];
      if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
      if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
      const context = canvas.getContext('2d');
      const scale = this.fit() * this.view.zoom;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      context.setTransform(ratio * scale, 0, 0, ratio * scale,
        ratio * (width / 2 - scale * (b.left + this.view.x * b.width)), ratio * (height / 2 - scale * (b.top + this.view.y * b.height)));
      if (this.image) { context.imageSmoothingEnabled = true; context.drawImage(this.image, b.left, b.top, b.width, b.height); }
      const opacity = Number(this.get('opacity').value);
      this.get('opacity').nextElementSibling.textContent = `${opacity} %`;
      context.globalAlpha = this.image ? opacity / 100 : 1;
      context.imageSmoothingEnabled = scale * ratio * raster.width / raster.canvas.width < 1;
      context.drawImage(raster.canvas, b.left, b.top, raster.width, raster.height);
      context.globalAlpha = 1;
      if (this.chosen !== null) {
        const i = this.chosen;
        for (const [colour, wide] of [['#000', 5], ['#fff', 2]]) {
          context.strokeStyle = colour;
          context.lineWidth = wide / scale;
          context.strokeRect(x[i], y[i], sides[i], sides[i]);
        }
      }
      canvas.dataset.view = [this.view.x, this.view.y, this.view.zoom].map((v) => v.toFixed(4)).join(' ');
    }
  }

  const panes = [];
  const redrawAll = () => {
    for (const card of gallery.querySelectorAll('.sm-card')) seen.observe(card);
    for (const pane of panes) pane.redraw();
  };
  part('value').addEventListener('change', (event) => {
    state.value = event.target.value;
    for (const pane of panes) pane.get('threshold').value = 0;
    part('scale').disabled = state.value === 'percentile';
    redrawAll();
  });
  part('scale').addEventListener('change', (event) => { state.scale = event.target.value; redrawAll(); });
  part('scale').disabled = state.value === 'percentile';
  part('search').addEventListener('input', fill);
  part('order').addEventListener('change', fill);
  part('pair').addEventListener('click', () => {
    const isPair = panes.length === 1;
    part('pair').setAttribute('aria-pressed', isPair);
    part('together').hidden = !isPair;
    part('panes').classList.toggle('sm-two', isPair);
    if (isPair) {
      panes.push(new Pane(1));
      const at = matching.indexOf(panes[0].slide);
      panes[1].show(data.models.length > 1 ? panes[0].slide : matching[(at + 1) % matching.length] ?? panes[0].slide);
    } else panes.pop().host.remove();
    mark();
  });
  // A page around this one may choose the slide, by the name of its bag.
  box.addEventListener('choose', (event) => {
    const slide = data.slides.find((s) => s.bag === event.detail);
    if (slide && slide.bag !== panes[0].slide?.bag) panes[0].show(slide);
  });

  if (typeof DecompressionStream === 'undefined' || typeof OffscreenCanvas === 'undefined') {
    part('found').textContent = 'This browser is too old to show the maps; the PNG files are there.';
    return;
  }
  panes.push(new Pane(0));
  fill();
  panes[0].show(matching[0]);
  if (data.models.length > 1) part('pair').click();
})();
