// One entry of the browser's history for each page. Streamlit adds one whenever the script writes the link, and Back would lead
// to the same page as it was some clicks ago, which writes its link again: it would never leave. Kept for the document's life.

export default function () {
  if (history.__isOnePerPage) return;
  history.__isOnePerPage = true;
  const push = history.pushState.bind(history);
  history.pushState = (state, title, url) => {
    const isSamePage = url !== undefined && new URL(url, location.href).pathname === location.pathname;
    if (isSamePage) history.replaceState(state, title, url);
    else push(state, title, url);
  };
}
