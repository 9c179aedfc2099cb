// The name of a bag in a table chooses it in the explorer of its model.
document.querySelectorAll('a[data-bag]').forEach((link) => link.addEventListener('click', () => {
  const section = document.querySelector(link.getAttribute('href')).closest('[data-model]');
  const [search, list] = ['input[type="search"]', '.list'].map((s) => section.querySelector(s));
  search.value = '';
  search.dispatchEvent(new Event('input'));
  list.value = link.dataset.bag;
  list.dispatchEvent(new Event('change'));
}));
