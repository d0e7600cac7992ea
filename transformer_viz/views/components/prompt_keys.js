// Streamlit takes a text of several lines when the box is left.

export default function () {
  document.addEventListener("keydown", send, true);
  return () => document.removeEventListener("keydown", send, true);
}

function send(event) {
  const isPlain = event.key === "Enter" && !event.shiftKey && !event.isComposing;
  if (!isPlain || !event.target.matches?.(".st-key-text textarea, .st-key-b_text textarea")) return;
  event.preventDefault();
  event.target.blur();
}
