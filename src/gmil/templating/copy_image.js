// "Copy as image": a plot and its words as a PNG, as the page shows them and twice as large. Nothing is loaded from
// elsewhere: plots become SVG documents of their own, words and backgrounds are painted where the browser put them.
const addCopyButton = (() => {
  const [SCALE, MARGIN, SHOWN_MS] = [2, 8, 2000];
  const LEFT_OUT = '.copy, .head';
  const STYLES = ['color', 'display', 'fill', 'fill-opacity', 'font-family', 'font-size', 'font-weight', 'opacity',
    'stroke', 'stroke-dasharray', 'stroke-width', 'text-anchor', 'vector-effect'];

  // An SVG document that needs no style sheet.
  const standalone = (svg, box) => {
    const copy = svg.cloneNode(true);
    const originals = [svg, ...svg.querySelectorAll('*')];
    [copy, ...copy.querySelectorAll('*')].forEach((element, i) => {
      const style = getComputedStyle(originals[i]);
      for (const name of STYLES) element.style.setProperty(name, style.getPropertyValue(name));
    });
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    copy.setAttribute('width', box.width);
    copy.setAttribute('height', box.height);
    return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  };

  // Every word with its place; a word that is broken over lines comes letter by letter.
  const places = function* (node, start, end) {
    const range = document.createRange();
    range.setStart(node, start);
    range.setEnd(node, end);
    const boxes = range.getClientRects();
    if (boxes.length > 1 && end - start > 1) {
      for (let i = start; i < end; i += 1) yield* places(node, i, i + 1);
    } else if (boxes.length > 0) yield [node.data.slice(start, end), boxes[0]];
  };
  const words = function* (element) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (node.parentElement.closest(`svg, ${LEFT_OUT}`)) continue;
      const style = getComputedStyle(node.parentElement);
      for (const match of node.data.matchAll(/\S+/g)) {
        for (const [text, box] of places(node, match.index, match.index + match[0].length)) yield [text, box, style];
      }
    }
  };

  const radius = (style, box) => {
    const given = style.borderTopLeftRadius;
    return given.endsWith('%') ? parseFloat(given) / 100 * box.height : parseFloat(given) || 0;
  };
  const paint = async (context, element, left, top) => {
    const origin = element.getBoundingClientRect();
    const at = (box) => [box.left - origin.left + left, box.top - origin.top + top];
    for (const part of element.querySelectorAll('*')) {
      const [style, box] = [getComputedStyle(part), part.getBoundingClientRect()];
      if (part.closest(`svg, ${LEFT_OUT}`) || box.width === 0) continue;
      const border = parseFloat(style.borderTopWidth);
      const [x, y] = at(box);
      const [width, height] = [box.width - border, box.height - border];
      context.beginPath();
      context.roundRect(x + border / 2, y + border / 2, width, height, Math.min(radius(style, box), height / 2));
      context.fillStyle = style.backgroundColor;
      context.fill();
      if (border > 0) {
        Object.assign(context, { strokeStyle: style.borderTopColor, lineWidth: border });
        context.stroke();
      }
    }
    for (const svg of element.querySelectorAll('svg')) {
      const box = svg.getBoundingClientRect();
      if (svg.parentElement.closest('svg') || box.width === 0) continue;
      const image = new Image();
      image.src = standalone(svg, box);
      await image.decode();
      context.drawImage(image, ...at(box), box.width, box.height);
    }
    for (const [text, box, style] of words(element)) {
      context.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      context.fillStyle = style.color;
      const [x, y] = at(box);
      context.fillText(text, x, y + context.measureText(text).fontBoundingBoxAscent);
    }
  };

  // A picture of elements, one below the other; those inside one parent keep their places along its width.
  const picture = async (elements) => {
    const boxes = elements.map((element) => element.getBoundingClientRect());
    const lefts = elements.map((element, i) =>
      (element.parentElement === elements[0].parentElement ? boxes[i].left - boxes[0].left : 0));
    const widths = elements.map((element, i) =>  // a list of names may be far wider than what is in it
      (element.matches('ul') ? Math.max(...[...element.children].map((e) => e.getBoundingClientRect().right)) - boxes[i].left : boxes[i].width));
    const canvas = document.createElement('canvas');
    canvas.width = Math.ceil(SCALE * (Math.max(...widths.map((width, i) => lefts[i] + width)) + 2 * MARGIN));
    canvas.height = Math.ceil(SCALE * (boxes.reduce((sum, box) => sum + box.height, 0) + 2 * MARGIN));
    const context = canvas.getContext('2d');
    context.scale(SCALE, SCALE);
    context.fillStyle = getComputedStyle(document.body).backgroundColor;
    context.fillRect(0, 0, canvas.width, canvas.height);
    let top = MARGIN;
    for (const [i, element] of elements.entries()) {
      await paint(context, element, MARGIN + lefts[i], top);
      top += boxes[i].height;
    }
    return new Promise((resolve) => { canvas.toBlob(resolve, 'image/png'); });
  };

  const save = (blob, name) => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = `${name.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '').slice(0, 80) || 'plot'}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };

  // To the clipboard, or to a file where the browser does not allow that.
  const deliver = async (made, name) => {
    try {
      await navigator.clipboard.write([new ClipboardItem({ 'image/png': made })]);
      return 'Copied';
    } catch {
      save(await made, name);
      return 'Saved as PNG';
    }
  };

  // ``host`` gets the button; ``shown()`` returns the elements of the picture, ``name()`` what it is called.
  return (host, shown, name) => {
    const button = document.createElement('button');
    Object.assign(button, { type: 'button', className: 'copy', textContent: 'Copy as image' });
    button.title = 'To the clipboard, or as a file where the browser does not allow that';
    button.setAttribute('aria-live', 'polite');
    button.addEventListener('click', async () => {
      button.textContent = await deliver(picture(shown()), name());
      setTimeout(() => { button.textContent = 'Copy as image'; }, SHOWN_MS);
    });
    host.prepend(button);
  };
})();
