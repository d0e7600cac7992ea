// Streamlit takes a text of several lines when the box is left. Heard for the document's life: who hears twice is heard once.

export default function () {
  document.addEventListener("keydown", send, true);
}

function send(event) {
  const isPlain = event.key === "Enter" && !event.shiftKey && !event.isComposing;
  if (!isPlain || !event.target.matches?.(".st-key-text textarea, .st-key-b_text textarea")) return;
  event.preventDefault();
  event.target.blur();
}
