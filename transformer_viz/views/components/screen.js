// Tells Python whether the page is narrow, and the printer how wide it is: charts are drawn for the window, and paper is
// another width. A page as wide as the window is printed smaller, and whole.

const NARROW_PX = 768;
const made = () => document.head.appendChild(Object.assign(document.createElement("style"), { id: "paper" }));
const PAPER = document.getElementById("paper") ?? made();

export default function ({ data, setStateValue }) {
  const isNarrow = window.innerWidth < NARROW_PX;
  if (data.narrow !== isNarrow) setStateValue("narrow", isNarrow);
  measure();
  addEventListener("resize", measure);
}

function measure() {
  PAPER.textContent = `@page { size: ${innerWidth}px ${Math.ceil(innerWidth * Math.SQRT2)}px; margin: 0; }`;
}
