// What Streamlit's links do not say: that they are the page's navigation, and which of them is of the page that is open. They
// come later than this, and another one is marked when another page opens.

export default function () {
  const row = document.querySelector(".st-key-pages");
  row.role = "navigation";
  row.ariaLabel = "Pages";
  const mark = () => {
    for (const link of row.querySelectorAll("a")) link.ariaCurrent = link.closest('[class*="-here"]') ? "page" : null;
  };
  mark();
  const changes = new MutationObserver(mark);
  changes.observe(row, { childList: true, subtree: true, attributeFilter: ["class"] });
  return () => changes.disconnect();
}
