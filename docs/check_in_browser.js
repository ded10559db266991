/* What check_in_browser.py runs in the browser. It writes its findings to the console. Pages are loaded into a frame,
   whose width can be changed at once. */

const LEAST_CONTRAST = 4.5; // WCAG 2.1, level AA
const N_HEAVIEST = 5;

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function load(frame, address) {
  const loaded = new Promise((resolve) => (frame.onload = resolve));
  frame.src = address;
  await loaded;
}

const nameOf = (element) => `<${element.localName} class="${element.getAttribute("class") ?? ""}">`;

/* Elements that reach beyond the right edge of `box`, and that no element between scrolls or cuts. */
function elementsBeyondEdge(box) {
  const isCut = (element) => {
    for (let outer = element.parentElement; outer && outer !== box && outer.localName !== "body"; outer = outer.parentElement)
      if (getComputedStyle(outer).overflowX !== "visible") return true;
    return false;
  };
  const edge = box.getBoundingClientRect().left + box.clientWidth + 1;
  return [...box.querySelectorAll("*")]
    .filter((element) => element.getBoundingClientRect().right > edge && !isCut(element))
    .map(nameOf);
}

function checkWidths(frame, widths) {
  const page = frame.contentDocument;
  for (const width of widths) {
    frame.style.width = `${width}px`;
    if (page.scrollingElement.clientWidth !== width) console.info(`fault is not laid out in ${width} pixels`);
    // The theme lets the column of the text scroll, which moves the whole text, too.
    const scrolled = [page.scrollingElement, ...page.querySelectorAll(".content")].filter(
      ({ scrollWidth, clientWidth }) => scrollWidth > clientWidth,
    );
    if (scrolled.length)
      console.info(`fault scrolls sideways at ${width} pixels: ${elementsBeyondEdge(scrolled[0]).slice(0, 4).join(" ")}`);
  }
}

/* Red, green, blue from 0 to 1, and opacity. */
const parseColour = (text) => {
  const [red, green, blue, opacity = 1] = text.match(/[\d.]+/g).map(Number);
  return [red / 255, green / 255, blue / 255, opacity];
};

/* The colour behind the text of an element; `known` has those of other elements. */
function groundOf(element, known) {
  if (!element) return [1, 1, 1];
  if (!known.has(element)) {
    const below = groundOf(element.parentElement, known);
    const [red, green, blue, opacity] = parseColour(getComputedStyle(element).backgroundColor);
    known.set(element, [red, green, blue].map((part, i) => opacity * part + (1 - opacity) * below[i]));
  }
  return known.get(element);
}

/* Relative luminance, as WCAG 2.1 defines it. */
const luminance = (colour) => {
  const [red, green, blue] = colour.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};

function contrast(colour, ground) {
  const [darker, brighter] = [colour, ground].map(luminance).sort((a, b) => a - b);
  return (brighter + 0.05) / (darker + 0.05);
}

/* Code is dark on bright pages and bright on dark ones, with enough contrast. */
function checkCode(page) {
  const still = page.createElement("style");
  still.textContent = "* { transition: none !important }"; // colours change at once
  page.head.append(still);
  const elements = [...page.querySelectorAll(".highlight pre, .highlight pre *, code, code *, .sig, .sig *")].filter(
    (element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()),
  );
  for (const theme of ["light", "dark"]) {
    page.body.dataset.theme = theme;
    const faults = new Map(); // one of each kind
    const known = new Map();
    for (const element of elements) {
      const ground = groundOf(element, known);
      const ratio = contrast(parseColour(getComputedStyle(element).color).slice(0, 3), ground);
      if (luminance(ground) < 0.2 !== (theme === "dark")) faults.set(`the ground of ${nameOf(element)}`, "is that of the other theme");
      else if (ratio < LEAST_CONTRAST) faults.set(nameOf(element), `has contrast ${ratio.toFixed(2)}: ${element.textContent}`);
    }
    for (const [name, fault] of faults) console.info(`fault in the ${theme} theme, ${name} ${fault}`);
  }
}

async function checkImages(page) {
  for (const image of page.images) {
    image.loading = "eager";
    await image.decode().catch(() => {});
    if (!image.naturalWidth) console.info(`fault the image ${image.src} is not drawn`);
  }
}

function checkFormulas(page) {
  for (const formula of page.querySelectorAll(".math"))
    if (!formula.querySelector(".katex-html") || formula.querySelector('.katex-error, [mathcolor="#cc0000"]'))
      console.info(`fault the formula ${formula.textContent} is not drawn`);
}

/* Bytes that a server sends for a page and for all that the page loads. */
function bytesOf(frame) {
  const { performance } = frame.contentWindow;
  const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return files.reduce((sum, file) => sum + file.encodedBodySize, 0);
}

/* Milliseconds until the first text or image of a page is drawn. */
async function firstPaint(frame) {
  for (let waits = 0; waits < 500; waits++) {
    const [paint] = frame.contentWindow.performance.getEntriesByName("first-contentful-paint");
    if (paint) return paint.startTime;
    await pause(10);
  }
  return NaN;
}

/* One of the pages that answer is among the first three results. */
async function checkSearch(frame, words, answers) {
  await load(frame, `search.html?q=${encodeURIComponent(words)}`);
  let links = [];
  for (let waits = 0; links.length < 3 && waits < 200; waits++) {
    await pause(10);
    links = [...frame.contentDocument.querySelectorAll("#search-results ul.search > li > a")];
  }
  const first = links.slice(0, 3).map((link) => new URL(link.href).pathname.slice(1));
  if (!answers.some((answer) => first.includes(answer)))
    console.info(`fault "${words}" finds ${first.join(", ")} first, and none of ${answers.join(", ")}`);
}

async function checkAll(widthsOfPages, searches) {
  const frame = document.createElement("iframe");
  frame.style.cssText = "border: 0; height: 900px";
  document.body.append(frame);
  const bytes = new Map();
  for (const [address, widths] of Object.entries(widthsOfPages)) {
    console.info(`loading ${address}`);
    await load(frame, address);
    bytes.set(address, bytesOf(frame));
    console.info(`weight ${bytes.get(address)}`);
    await checkImages(frame.contentDocument);
    checkFormulas(frame.contentDocument);
    checkWidths(frame, widths);
    checkCode(frame.contentDocument);
  }
  for (const [words, answers] of Object.entries(searches)) {
    console.info("loading search.html");
    await checkSearch(frame, words, answers);
  }
  const heaviest = [...bytes.keys()].sort((a, b) => bytes.get(b) - bytes.get(a)).slice(0, N_HEAVIEST);
  for (const address of heaviest) {
    console.info(`loading ${address}`);
    await load(frame, address);
    console.info(`paint ${await firstPaint(frame)}`);
  }
  console.info("ended");
}
