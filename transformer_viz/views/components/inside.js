// What `inside.html` cannot do by itself: the numbers of a vector one at a time, the way a station a press, going on by
// keyboard in the explanation.

const OF_ROOT = new WeakMap();

function begin(root, data) {
  if (!OF_ROOT.has(root)) OF_ROOT.set(root, new Inside(root));
  OF_ROOT.get(root).drawn(data);
}

class Inside {
  constructor(root) {
    this.root = root;
    root.addEventListener("pointermove", (event) => event.target.closest(".strip") && this.point(...placeOn(event)));
    root.addEventListener("focusin", ({ target }) => {
      if (target.matches(".strip")) this.point(target, Number(target.dataset.place ?? 0));
    });
    for (const name of ["pointerout", "focusout"]) root.addEventListener(name, () => delete root.dataset.axis);
    root.addEventListener("click", (event) => this.click(event), true);
    root.addEventListener("keydown", (event) => this.key(event));
  }

  drawn({ place, words, wanted }) {
    this.words = words;
    this.show(wanted);
    const isSame = String(place) === String(this.place);
    this.place = place;
    this.to(isSame ? this.station : undefined);
    if (this.isByKey) this.enter();
    this.isByKey = false;
  }

  // Somebody asked why: the reason is brought into sight, also where it was drawn already.
  show(wanted) {
    const before = document.__insideWanted ?? 0;
    document.__insideWanted = wanted;
    if (wanted > before) (this.root.querySelector(".reason") ?? this.root.querySelector(".explained")).scrollIntoView({ block: "center" });
  }

  // Who goes by keyboard goes on from there. Enter is a click without a place.
  click(event) {
    const { target } = event, isByKey = !event.detail;
    if (target.closest(".walk")) return this.to((this.station ?? -1) + 1);
    if (target.closest(".strip") && !isByKey) this.point(...placeOn(event));
    const isHere = target.closest("[data-at]")?.dataset.at === this.root.querySelector(".explained").dataset.number;
    if (isByKey && isHere) this.enter();
    this.isByKey = isByKey && !isHere && Boolean(target.closest("[data-at]"));
  }

  enter() {
    const explained = this.root.querySelector(".explained");
    (explained.querySelector(".explained > :not(nav) [data-at]") ?? explained).focus();
  }

  // A place of a vector is what a press asks for; it is marked in all vectors that lie along the same axis.
  point(strip, place) {
    const { label, axis, values } = strip.dataset, numbers = values.split(" ");
    strip.dataset.place = place;
    if (strip.id) strip.dataset.at = `${strip.id}.${place + 1}`;
    strip.querySelector(".tip").textContent = filled(this.words.tip, {
      name: label, place: place + 1, n: numbers.length, number: numbers[place],
    });
    strip.classList.toggle("late", place > numbers.length / 2);
    this.root.dataset.axis = axis;
    this.root.style.setProperty("--at", place);
  }

  // Tab and Enter are the browser's; the arrows go along a vector, and Escape goes back along the way that one came.
  key(event) {
    const { key, target } = event, step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const explained = this.root.querySelector(".explained");
    if (event.altKey || event.metaKey || event.ctrlKey) return;
    if (target.matches(".lens-rows")) return event.stopPropagation();
    const back = [...explained.querySelectorAll("nav button")].at(-1);
    if (key === "Escape" && this.station !== undefined) this.to(undefined);
    else if (key === "Escape" && back) back.click();
    else if (key === "Escape" && explained.contains(target)) this.root.querySelector(".now")?.focus();
    else if (target.matches(".strip") && step) {
      const last = target.dataset.values.split(" ").length - 1;
      this.point(target, Math.max(0, Math.min(last, Number(target.dataset.place) + step)));
      this.root.querySelector(".said").textContent = target.querySelector(".tip").textContent;
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Each press shows one station more; after the last all are there again.
  to(place) {
    const stations = [...this.root.querySelectorAll("[data-station]")];
    const now = stations[place], next = stations[(place ?? -1) + 1];
    this.station = now && place;
    this.root.firstElementChild.classList.toggle("walking", Boolean(now));
    stations.forEach((station, i) => {
      station.classList.toggle("lit", station === now);
      station.classList.toggle("seen", i < this.station);
    });
    const title = next?.querySelector("h2").textContent.replace(/^\d+/, "");
    this.root.querySelector(".walk").textContent = !now ? this.words.walk : next ? filled(this.words.next, { title }) : this.words.all;
    this.root.querySelector(".said").textContent = now?.querySelector("header").textContent ?? "";
  }
}

// A template of the page's language with its places filled in.
function filled(template, fields) {
  return template.replace(/\{(\w+)\}/g, (_, name) => fields[name]);
}

// A vector, and which of its numbers the pointer is on.
function placeOn({ target, clientX }) {
  const strip = target.closest(".strip"), { left, width } = strip.getBoundingClientRect();
  const n = strip.dataset.values.split(" ").length;
  return [strip, Math.max(0, Math.min(n - 1, Math.floor((n * (clientX - left)) / width)))];
}
