// HTML that a template made. Python hears which button or link was pressed: what it has as `data-at`. `presses.js` is put before
// this, and a template's own script, which may `begin` with what was drawn.

const SHOWN = new WeakMap(), PRESSED = new WeakMap(), WAITS = new WeakMap();
const AT_LATEST_MS = 300;
// Safari knows no idle time.
const [whenIdle, cancel] = window.requestIdleCallback
  ? [(act) => requestIdleCallback(act, { timeout: AT_LATEST_MS }), (wait) => cancelIdleCallback(wait)]
  : [(act) => setTimeout(act), (wait) => clearTimeout(wait)];

export default function ({ parentElement, data, setStateValue }) {
  const root = parentElement.querySelector(".markup");
  root.onclick = (event) => {
    const pressed = event.target.closest("button[data-at], a[data-at]");
    if (!pressed || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    PRESSED.set(root, withPress(PRESSED.get(root) ?? [], pressed.dataset.at));
    setStateValue("presses", PRESSED.get(root));
  };
  cancel(WAITS.get(root));
  const text = JSON.stringify(data);
  if (SHOWN.get(root) === text) return;
  // What was pressed within is answered at once; else the picture of another run comes first, which lies above.
  const isAnswer = root.contains(root.getRootNode().activeElement) || !root.firstChild;
  if (isAnswer) draw(root, data, text);
  else WAITS.set(root, whenIdle(() => root.isConnected && draw(root, data, text)));
}

function draw(root, data, text) {
  SHOWN.set(root, text);
  const held = root.getRootNode().activeElement?.id;
  root.innerHTML = data.html;
  if (held) root.querySelector(`#${CSS.escape(held)}`)?.focus({ preventScroll: true });
  if (typeof begin === "function") begin(root, data);
}
