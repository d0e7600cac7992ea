// HTML that a template made. Python hears which button or link was pressed: what it has as `data-at`. `presses.js` is put before
// this, and a template's own script, which may `begin` with what was drawn.

const SHOWN = new WeakMap(), PRESSED = new WeakMap();

export default function ({ parentElement, data, setStateValue }) {
  const root = parentElement.querySelector(".markup");
  root.onclick = (event) => {
    const pressed = event.target.closest("button[data-at], a[data-at]");
    if (!pressed || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    PRESSED.set(root, withPress(PRESSED.get(root) ?? [], pressed.dataset.at));
    setStateValue("presses", PRESSED.get(root));
  };
  const text = JSON.stringify(data);
  if (SHOWN.get(root) === text) return;
  SHOWN.set(root, text);
  const held = root.getRootNode().activeElement?.id;
  root.innerHTML = data.html;
  if (held) root.querySelector(`#${CSS.escape(held)}`)?.focus({ preventScroll: true });
  if (typeof begin === "function") begin(root, data);
}
