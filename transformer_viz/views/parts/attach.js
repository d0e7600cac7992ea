// Put before each bridge: calls `attach` now and whenever the page has changed, since Streamlit draws charts on its own
// schedule, before or after a component, and draws them anew. Returns what ends it.
function keepAttached(attach) {
  attach();
  let waits = false;
  const observer = new MutationObserver(() => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      attach();
    });
  });
  observer.observe(document.querySelector(".stMain") ?? document.body, { childList: true, subtree: true });
  return () => observer.disconnect();
}
