// Offers the versions that versions.js lists, and goes to the first page of the chosen one.
const choice = document.querySelector(".versions select");
const current = choice.value;
choice.replaceChildren(
  ...VERSIONS.map((name) => new Option(name, name, false, name === current)),
);
choice.addEventListener("change", () => {
  location.href = `${choice.dataset.root}${choice.value}/index.html`;
});
