// What happens when the page opens.
(() => {
  const {element, button} = odecast;
  document.documentElement.classList.add('scripts');

  // Light, dark, or what the system says.
  const themes = ['auto', 'light', 'dark'], names = {auto: '◐ auto', light: '☀ light', dark: '☾ dark'};
  const store = (value) => {
    try {
      if (value === undefined) return localStorage.getItem('odecast-theme');
      localStorage.setItem('odecast-theme', value);
    } catch { /* pages opened from disk may have no storage */ }
    return null;
  };
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    toggle.textContent = names[theme];
    for (const redraw of odecast.onTheme) redraw();
  };
  const toggle = button('', 'Colours: light, dark or as the system', () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length];
    store(next);
    apply(next);
  });
  toggle.className = 'theme';
  document.querySelector('header nav').append(toggle);
  const stored = store();
  apply(themes.includes(stored) ? stored : 'auto');
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const redraw of odecast.onTheme) redraw();
  });

  // Clipboards need a secure page, which a file need not be.
  const copy = async (text, from) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = element('textarea', {class: 'offscreen'});
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand('copy');
      area.remove();
    }
    const label = from.textContent;
    from.textContent = 'Copied';
    setTimeout(() => { from.textContent = label; }, 1500);
  };
  for (const command of document.querySelectorAll('.command')) {
    const b = button('Copy', 'Copy the command', () => copy(command.querySelector('code').textContent, b));
    command.append(b);
  }
  for (const block of document.querySelectorAll('.equations[data-latex]')) {
    const b = button('Copy LaTeX', 'Copy the equations as LaTeX', () => copy(block.dataset.latex, b));
    block.after(element('div', {class: 'toolbar'}, b));
  }
  for (const root of document.querySelectorAll('figure[data-still]'))
    root.append(element('div', {class: 'toolbar'},
                        button('SVG', 'Save this figure as SVG', () => odecast.saveStatic(root, root.id))));

  // A table that goes on to the right fades out there.
  for (const scroll of document.querySelectorAll('.scroll')) {
    const look = () => scroll.classList.toggle('more', scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 2);
    scroll.addEventListener('scroll', look, {passive: true});
    new ResizeObserver(look).observe(scroll);
  }

  const data = JSON.parse(document.getElementById('page-data').textContent);
  const columns = odecast.unpack(data.columns, document.getElementById('page-numbers').textContent.trim());
  for (const root of document.querySelectorAll('figure[data-figure]'))
    odecast.makeFigure(root, data.figures[root.dataset.figure], columns, data.columns);
  for (const root of document.querySelectorAll('figure[data-attractor]'))
    odecast.makeAttractor(root, data.attractors[root.dataset.attractor], columns, data.columns);
  document.documentElement.dataset.ready = 'yes';
})();
