// The theme of the page: that of the system, until the person chooses another.
(() => {
  'use strict';
  const root = document.documentElement;
  const button = document.getElementById('theme');
  const remembered = () => { try { return localStorage.getItem('gmil-theme'); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem('gmil-theme', theme); } catch { /* a page without storage */ } };
  const isDark = () => (root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const name = () => { button.textContent = isDark() ? 'Light theme' : 'Dark theme'; };
  if (button) {
    if (remembered()) root.dataset.theme = remembered();
    name();
    button.addEventListener('click', () => {
      root.dataset.theme = isDark() ? 'light' : 'dark';
      remember(root.dataset.theme);
      name();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', name);
  }
})();
