// Hides the contracts that do not match the words, or that passed everywhere.
const text = document.getElementById('text'), only = document.getElementById('only'), said = document.getElementById('said');

function filter() {
  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const entry of document.querySelectorAll('details.contract')) {
    const wanted = words.every(word => entry.dataset.text.includes(word)) && (!only.checked || entry.dataset.state !== 'ok');
    entry.classList.toggle('hidden', !wanted);
    shown += wanted;
  }
  for (const group of document.querySelectorAll('section.group'))
    group.classList.toggle('hidden', !group.querySelector('details.contract:not(.hidden)'));
  said.textContent = shown + ' contracts shown';
}

text.addEventListener('input', filter);
only.addEventListener('change', filter);
document.querySelector('.filter').hidden = false;
