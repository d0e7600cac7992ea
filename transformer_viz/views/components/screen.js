// Tells Python whether the page is narrow, keeps what Python wants to know at the next visit, and tells the printer how wide the
// page is: charts are drawn for the window, and paper is another width. A page as wide as the window is printed smaller, and
// whole.

const NARROW_PX = 768, YEAR_S = 31_536_000;
const made = () => document.head.appendChild(Object.assign(document.createElement("style"), { id: "paper" }));
const PAPER = document.getElementById("paper") ?? made();

export default function ({ data, setStateValue }) {
  const isNarrow = window.innerWidth < NARROW_PX;
  if (data.narrow !== isNarrow) setStateValue("narrow", isNarrow);
  const folder = location.pathname.slice(0, location.pathname.lastIndexOf("/") + 1);
  if (data.cookie) document.cookie = `${data.cookie}; path=${folder}; max-age=${YEAR_S}; samesite=lax`;
  measure();
  addEventListener("resize", measure);
}

function measure() {
  PAPER.textContent = `@page { size: ${innerWidth}px ${Math.ceil(innerWidth * Math.SQRT2)}px; margin: 0; }`;
}
