// Copies the page's address. The clipboard is closed to pages from another machine without https: there the older way
// is tried, and if that fails too the link stands selected, ready for the keyboard.

export default function ({ parentElement }) {
  const button = parentElement.querySelector("button"), box = parentElement.querySelector("input");
  const WORDS = "Copy the link";
  const show = () => { box.value = location.href; };
  const answer = (words) => {
    button.textContent = words;
    setTimeout(() => { button.textContent = WORDS; }, 2000);
  };
  show();
  box.onfocus = () => { show(); box.select(); };
  button.onclick = async () => {
    show();
    box.select();
    try {
      await navigator.clipboard.writeText(box.value);
      answer("Copied");
    } catch {
      box.focus();
      answer(document.execCommand("copy") ? "Copied" : "Press Ctrl-C");
    }
  };
  // The step may move while this stands open.
  const timer = setInterval(() => { if (box.value !== location.href && !box.matches(":focus")) show(); }, 500);
  return () => clearInterval(timer);
}
