// HTML that a template made. Python hears which button or link was pressed: what it has as `data-at`. A template's own script,
// put before this, may `begin` with what was drawn, and leave what ends it with the part as the root's `__end`.

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".markup");
  // The player may be further than the last step that it reported.
  root.__press = (at) => setTriggerValue("press", { at, step: document.querySelector(".st-key-focus .chart")?.__step });
  root.onclick = (event) => {
    const pressed = event.target.closest("button[data-at], a[data-at]");
    if (!pressed || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    root.__press(pressed.dataset.at);
  };
  // Streamlit also calls this of a part that stays, as in chart.js.
  const end = () => root.isConnected || root.__end?.();
  const text = JSON.stringify(data);
  if (root.__shown === text) return end;
  root.__shown = text;
  const held = root.getRootNode().activeElement?.id;
  root.innerHTML = data.html;
  if (held) root.querySelector(`#${CSS.escape(held)}`)?.focus({ preventScroll: true });
  if (typeof begin === "function") begin(root, data);
  return end;
}
