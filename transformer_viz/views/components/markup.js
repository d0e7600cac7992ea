// HTML that a template made. Python hears which button or link was pressed: what it has as `data-at`. A template's own script,
// put before this, may `begin` with what was drawn.

const SHOWN = new WeakMap();

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".markup");
  root.onclick = (event) => {
    const pressed = event.target.closest("button[data-at], a[data-at]");
    if (!pressed || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    setTriggerValue("press", pressed.dataset.at);
  };
  const text = JSON.stringify(data);
  if (SHOWN.get(root) === text) return;
  SHOWN.set(root, text);
  const held = root.getRootNode().activeElement?.id;
  root.innerHTML = data.html;
  if (held) root.querySelector(`#${CSS.escape(held)}`)?.focus({ preventScroll: true });
  if (typeof begin === "function") begin(root, data);
}
