// One entry of the browser's history for each page, with the whole query. Streamlit adds one for each change that comes from
// the server, and before it leaves a page takes out of the address what the next one does not have. Kept for the document's
// life.

export default function ({ data }) {
  if (!history.__isOnePerPage) keepOne();
  if (data.to) press(data.to);
}

// The link of a page, as soon as it is there.
function press(title) {
  const links = [...document.querySelectorAll(".st-key-pages a")];
  const link = links.find((one) => one.querySelector("p")?.textContent === title);
  if (link) link.click();
  else requestAnimationFrame(() => press(title));
}

function keepOne() {
  history.__isOnePerPage = true;
  const push = history.pushState.bind(history);
  let pressed = location.href;
  // Of two clicks the second comes while the first is on its way.
  addEventListener("click", ({ isTrusted, detail }) => { if (isTrusted && detail < 2) pressed = location.href; }, true);
  history.pushState = (state, title, url) => {
    const path = new URL(url ?? "", location.href).pathname;
    if (path === location.pathname) return history.replaceState(state, title, url);
    if (new URL(pressed).pathname === location.pathname) history.replaceState(history.state, "", pressed);
    push(state, title, url);
  };
}
