/* Draws each formula of the page with KaTeX. Sphinx writes them as \(…\) and \[…\] in elements of the class "math". */
document.addEventListener("DOMContentLoaded", () => {
  if (typeof katex === "undefined") return; // a page without formulas does not load KaTeX
  for (const element of document.querySelectorAll(".math")) {
    const source = element.textContent.trim();
    katex.render(source.slice(2, -2), element, {
      displayMode: source.startsWith("\\["),
      throwOnError: false, // shows the source of a wrong formula in red
    });
  }
});
